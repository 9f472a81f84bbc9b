"""Posteriors and predictions as labelled entries and data frames."""
