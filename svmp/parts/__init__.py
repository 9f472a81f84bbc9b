"""Rows in parts: the same network declared for each part of the rows."""
