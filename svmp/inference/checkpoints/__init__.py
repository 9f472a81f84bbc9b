"""Runs in files, to be resumed."""
