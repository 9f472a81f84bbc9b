"""Fits and checkpoints in files."""
