"""The linear change of factors that raises the bound most.

A product u_m . v_n stays the same under u <- B^T u, v <- B^-1 v for every invertible B, but the
priors Normal(0, 1 / a_k) of u_k and Normal(0, 1 / b_k) of v_k and the entropies do not. With the
second moments S_u = sum_m E[u u^T] and S_v = sum_n E[v v^T], the bound is, up to a constant,

    (M - N) log |det B| - tr(diag(a) B^T S_u B) / 2 - tr(diag(b) B^-1 S_v B^-T) / 2.

With S_u = L L^T and L^T S_v L = Q diag(c) Q^T, it is largest for B = L^-T Q diag(x / a)^(1/2),
where x_k^2 - (M - N) x_k - a_k b_k c_k = 0 and the largest c is that of the smallest a b: the bound
is convex in the diagonal of a rotated L^T S_v L, so that it is largest at a permutation of c, and
x is such a function of a b c that they are paired in opposite orders.

Precisions that are learned have the expectation (alpha + n / 2) / (beta + s / 2) given the sum s of
the n second moments that they are the precision of. Changing B and them in turn raises the bound
in every step, and needs no more than matrices of K x K numbers.

Sweeps of coordinate ascent change B slowly, since each needs both sides to move. Where q
factorises, covariances are projected back to the best precisions that are diagonal, and so the
caller has to compare bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg

from svmp.families.family import Array

ROUNDS, SMALL = 200, 1e-6
"""Most changes of factors and precisions in turn, and the relative change that ends them."""
Learn = Callable[[Array, Array], tuple[Array, Array]]
"""Returns both precisions of the priors, given the diagonals of both second moments."""


class Side(NamedTuple):
    """q of the factors on one side.

    Attributes
    ----------
    mean
        (elements, K).
    precision
        (elements, K, K), or (elements, K) if q factorises over factors.
    prior
        Precision of the prior of each factor, or one for all.
    """

    mean: Array
    precision: Array
    prior: Array | float

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


def best_matrix(left: Array, right: Array, a: Array, b: Array, more: int) -> Array:
    """Return B, given both second moments, both precisions of the priors, and M - N."""
    root = np.linalg.cholesky(left)
    found = linalg.eigh(root.T @ right @ root)
    largest_first, order = slice(None, None, -1), np.argsort(a * b, kind="stable")
    values, vectors = np.empty(len(left)), np.empty_like(left)
    values[order] = np.maximum(found[0], 0)[largest_first]
    vectors[:, order] = found[1][:, largest_first]
    values *= a * b
    square = (more + np.sqrt(more**2 + 4 * values)) / 2
    if more < 0:  # without cancellation
        square = 2 * values / (np.sqrt(more**2 + 4 * values) - more)
    return np.asarray(linalg.solve_triangular(root.T, vectors) * np.sqrt(square / a))


def best_change(left: Side, right: Side, learn: Learn | None = None) -> Array:
    """Return B; with `learn`, that of the precisions which are learned after the change."""
    width, more = left.mean.shape[1], len(left.mean) - len(right.mean)
    moments = left.second_moment, right.second_moment
    a, b = (np.broadcast_to(side.prior, width) for side in (left, right))
    total = best_matrix(*moments, a, b, more)
    if learn is None:
        return total
    for _ in range(ROUNDS):
        inverse = np.linalg.inv(total)
        spread = total.T @ moments[0] @ total, inverse @ moments[1] @ inverse.T
        before, (a, b) = (a, b), learn(np.diag(spread[0]).copy(), np.diag(spread[1]).copy())
        total = total @ best_matrix(*spread, a, b, more)
        if np.allclose(a, before[0], rtol=SMALL) and np.allclose(b, before[1], rtol=SMALL):
            break
    return np.asarray(total)


def rotated(left: Side, right: Side, learn: Learn | None = None) -> tuple[Side, Side]:
    """Return both sides after the change of factors that raises the bound most."""
    matrix = best_change(left, right, learn)
    inverse = np.linalg.inv(matrix).astype(np.float64, copy=False)
    return left.changed(matrix, inverse), right.changed(inverse.T, matrix.T)
