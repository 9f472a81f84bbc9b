"""What is saved in files is declared and checked here."""
