"""Covariances of linear response in a saved fit: the names of variables, and one matrix.

They are those that a fit of a small network predicts with; a fit that is loaded has no model from
which to compute them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from svmp.families.family import Array
from svmp.posterior.marginals.posterior import Posterior
from svmp.posterior.record.covariance import Covariance
from svmp.saving.schema import Tensor, Tensors, need

KEY = "response/matrix"
SYMMETRIC = 1e-9
"""Largest difference of the matrix from its transpose, relative to its size."""


def pack(found: Covariance) -> tuple[list[str], Tensors]:
    """Return the description and the array of some covariances."""
    return list(found.names), {KEY: np.ascontiguousarray(found.matrix)}


def declared(names: Sequence[str], variables: Mapping[str, Any]) -> dict[str, Tensor]:
    """Declare the matrix, whose variables and size must be those of q."""
    if not names:
        return {}
    kinds = [variables.get(name, {"family": ""})["family"] for name in names]
    known = set(kinds) <= {"Normal", "MvNormal", "Gamma"} and len(set(names)) == len(names)
    need(known, "damaged: there are covariances of unknown variables")
    size = sum(
        prod(variables[name]["plate"]) * (variables[name]["length"] if kind == "MvNormal" else 1)
        for name, kind in zip(names, kinds, strict=True)
    )
    need(size, "damaged: there are covariances of variables without elements")
    return {KEY: Tensor((size, size), trouble)}


def trouble(matrix: Array) -> str | None:
    """Refuse a matrix that is not symmetric and positive definite."""
    if not np.isfinite(matrix).all():
        return "has numbers that are not finite"
    if np.abs(matrix - matrix.T).max() > SYMMETRIC * np.abs(matrix).max():
        return "is not symmetric"
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return "is not positive definite"
    return None


def unpack(
    names: Sequence[str], tensors: Tensors, posteriors: Mapping[str, Posterior]
) -> Covariance | None:
    """Return the covariances of a file, whose array is as declared."""
    if not names:
        return None
    means = [posteriors[name].mean for name in names]
    shapes, mean = tuple(m.shape for m in means), np.concatenate([m.ravel() for m in means])
    return Covariance(tuple(names), shapes, mean, tensors[KEY])
