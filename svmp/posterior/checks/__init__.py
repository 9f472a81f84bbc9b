"""How far to trust a fit, and which of several fits is better."""
