"""How far to trust a fit: linear response, PSIS, calibration, restarts and comparison."""
