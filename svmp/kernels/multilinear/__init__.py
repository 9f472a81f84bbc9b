"""Loops for means and logits that are linear in each parent: biases, dot products, tensors."""
