"""Sequential recursions over the rows of sequences."""
