"""What a fit has afterwards: its posteriors, and what is computed from them."""
