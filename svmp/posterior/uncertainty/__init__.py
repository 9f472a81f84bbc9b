"""Covariances beyond those of q."""
