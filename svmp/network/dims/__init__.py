"""Dims and their labels: sizes, keys along them, data frames, and which elements are the same."""
