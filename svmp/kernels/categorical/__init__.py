"""Loops for Categoricals of the rows: topics and mixtures."""
