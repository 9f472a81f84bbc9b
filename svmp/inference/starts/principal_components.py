"""Principal components of a table with missing cells, as pure functions over arrays.

    y_t = W s_t + noise,   s_t ~ N(0, diag(variance)),   noise ~ N(0, spread I),

with orthonormal W: the largest eigenvalues of the second moments of y and the mean of the others
(Tipping & Bishop 1999). Missing cells, NaN, are filled with W E[s_t] and the eigenvectors computed
again, a few times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmp.families.family import Array

FILLS = 15
"""How often missing cells are filled."""
LEAST = 1e-3
"""Smallest spread of the noise, in units of the smallest variance of a component."""
CHUNK = 1 << 14
"""Rows whose scores are computed at a time."""


class Components(NamedTuple):
    """Principal components.

    Attributes
    ----------
    loadings
        W, (columns, K).
    variance, spread
        Variance of each score, and of the noise.
    """

    loadings: Array
    variance: Array
    spread: float


def principal_components(values: Array, count: int) -> Components:
    """Return the first components of a table, whose columns need a mean of 0.

    >>> table = np.array([[2.0, 0.0], [-2.0, np.nan], [0.0, 0.1], [0.0, -0.1]])
    >>> np.abs(principal_components(table, 1).loadings.round(1))
    array([[1.],
           [0.]])
    """
    missing = ~np.isfinite(values)
    full = np.where(missing, 0.0, values)
    found = _components(full, count)
    for _ in range(FILLS if missing.any() else 0):
        full = np.where(missing, scores(values, found) @ found.loadings.T, full)
        found = _components(full, count)
    return found


def _components(full: Array, count: int) -> Components:
    rows, columns = full.shape
    if columns <= rows:
        size, vectors = np.linalg.eigh(full.T @ full / rows)
    else:
        size, left = np.linalg.eigh(full @ full.T / rows)
        vectors = full.T @ left / np.sqrt(np.maximum(rows * size, 1e-300))
    size, vectors = np.maximum(size[::-1], 0.0), vectors[:, ::-1]
    variance = np.maximum(size[:count], 1e-12 * max(float(size[0]), 1e-300))
    rest = float(size[count:].sum()) / max(columns - count, 1)
    spread = max(rest, LEAST * float(variance.min()))
    return Components(np.ascontiguousarray(vectors[:, :count]), variance, spread)


def scores(values: Array, found: Components) -> Array:
    """Return E[s_t | y_t] of each row; 0 where nothing is observed."""
    result = np.empty((len(values), len(found.variance)))
    prior = np.diag(found.spread / found.variance)
    outer = found.loadings[:, :, None] * found.loadings[:, None, :]
    for start in range(0, len(values), CHUNK):
        some = values[start : start + CHUNK]
        seen = np.isfinite(some)
        gram = np.einsum("ts,sij->tij", seen.astype(np.float64), outer, optimize=True)
        right = np.where(seen, some, 0.0) @ found.loadings
        result[start : start + CHUNK] = np.linalg.solve(gram + prior, right[:, :, None])[:, :, 0]
    return result
