"""Means that are linear in each Gaussian variable, and their sums over rows."""
