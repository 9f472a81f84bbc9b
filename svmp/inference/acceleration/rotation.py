"""The linear change of factors that raises the bound most.

A product u_m . v_n stays the same under u <- B^T u, v <- B^-1 v for every invertible B, but the
priors Normal(0, 1 / a) of u and Normal(0, 1 / b) of v and the entropies do not. With the second
moments S_u = a sum_m E[u u^T] and S_v = b sum_n E[v v^T], the bound is, up to a constant,

    (M - N) log |det B| - tr(B^T S_u B) / 2 - tr(B^-1 S_v B^-T) / 2.

With S_u = L L^T and L^T S_v L = Q diag(c) Q^T, it is largest for B = L^-T Q diag(x)^(1/2), where
x_k^2 - (M - N) x_k - c_k = 0. Sweeps of coordinate ascent change B slowly, since each needs both
sides to move. Where q factorises, covariances are projected back to the best precisions that are
diagonal, and so the caller has to compare bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from svmp.families.family import Array


class Side(NamedTuple):
    """q of the factors on one side.

    Attributes
    ----------
    mean
        (elements, K).
    precision
        (elements, K, K), or (elements, K) if q factorises over factors.
    prior
        Precision of the prior of every factor.
    """

    mean: Array
    precision: Array
    prior: float

    @property
    def second_moment(self) -> Array:
        """The sum of E[x x^T] over all elements."""
        if self.precision.ndim == 2:
            spread = np.diag((1 / self.precision).sum(axis=0))
        else:
            spread = np.linalg.inv(self.precision).sum(axis=0)
        return np.asarray(self.mean.T @ self.mean + spread)

    def changed(self, matrix: Array, inverse: Array) -> Side:
        """Return q of x^T B: the precisions are B^-1 P B^-T, of which the diagonal may be kept."""
        if self.precision.ndim == 2:
            precision = self.precision @ (inverse**2).T
        else:
            precision = inverse @ self.precision @ inverse.T
        return self._replace(mean=self.mean @ matrix, precision=precision)


def best_change(left: Side, right: Side) -> Array:
    """Return B."""
    root = np.linalg.cholesky(left.prior * left.second_moment)
    found = linalg.eigh(root.T @ (right.prior * right.second_moment) @ root)
    values, vectors = np.maximum(found[0], 0)[::-1], found[1][:, ::-1]
    more = len(left.mean) - len(right.mean)
    square = (more + np.sqrt(more**2 + 4 * values)) / 2
    if more < 0:  # without cancellation
        square = 2 * values / (np.sqrt(more**2 + 4 * values) - more)
    return np.asarray(linalg.solve_triangular(root.T, vectors) * np.sqrt(square))


def rotated(left: Side, right: Side) -> tuple[Side, Side]:
    """Return both sides after the change of factors that raises the bound most."""
    matrix = best_change(left, right)
    inverse = np.linalg.inv(matrix).astype(np.float64, copy=False)
    return left.changed(matrix, inverse), right.changed(inverse.T, matrix.T)
