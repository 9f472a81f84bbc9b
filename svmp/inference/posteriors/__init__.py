"""Posteriors as users read them."""
