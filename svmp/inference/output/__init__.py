"""What a fit gives out: summaries, data frames, xarray, ArviZ and figures, all with labels."""
