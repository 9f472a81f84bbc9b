"""Ready declarations of common networks."""

from svmp.models.factorization import (
    GammaPrior,
    NormalPrior,
    Pairs,
    UserNoise,
    matrix_factorization,
)

__all__ = ["GammaPrior", "NormalPrior", "Pairs", "UserNoise", "matrix_factorization"]
