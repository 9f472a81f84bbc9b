"""Summaries, figures, xarray and ArviZ."""
