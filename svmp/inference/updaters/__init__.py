"""Updaters: how the elements of a hidden variable get their new q, one file for each way."""
