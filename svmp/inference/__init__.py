"""Fitting networks: selection, the engine, starting values, stopping, results."""
