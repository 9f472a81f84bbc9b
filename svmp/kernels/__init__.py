"""Fused loops for the hot factors, each with its plain twin in `network/`."""
