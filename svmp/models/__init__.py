"""Ready declarations of common networks."""

from svmp.models.factorization import (
    GammaPrior,
    NormalPrior,
    UserItemPairs,
    UserNoise,
    matrix_factorization,
)

__all__ = ["GammaPrior", "NormalPrior", "UserItemPairs", "UserNoise", "matrix_factorization"]
