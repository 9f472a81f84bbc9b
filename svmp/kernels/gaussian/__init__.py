"""Loops over sparse symmetric matrices: the orders, products and factors of inference/gaussian."""
