"""A run from iteration to iteration: its limits, its record, and how it ends."""
