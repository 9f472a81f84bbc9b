"""Fewer sweeps: over-relaxation, and rotations of factors."""
