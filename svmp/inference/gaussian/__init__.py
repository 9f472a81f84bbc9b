"""Solving Gaussians: rows of linear equations, their order of elimination, and factors."""
