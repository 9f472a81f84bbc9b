"""Joint Gaussians: which variables, and what their q is."""
