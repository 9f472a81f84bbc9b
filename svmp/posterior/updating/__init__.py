"""New rows: what a fit has learned is their prior."""
