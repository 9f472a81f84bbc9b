"""What changes from one iteration to the next."""
