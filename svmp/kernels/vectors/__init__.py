"""Loops for means and logits with a dot product of MvNormals."""
