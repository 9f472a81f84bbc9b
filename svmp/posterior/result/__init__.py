"""The result of a fit, with all of its methods."""
