"""The distribution of rows, new or missing, given a fit."""
