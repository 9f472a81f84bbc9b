"""Compiled loops for the most used densities, each with a plain version in `network/`."""
