"""Chains: variables over the rows of a table whose q is structured, one block for each sequence."""
