"""Fitting networks: methods, step policies, updaters, the engine, stopping and results."""
