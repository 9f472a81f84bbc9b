"""Updaters: they compute the new natural parameters of hidden variables."""
