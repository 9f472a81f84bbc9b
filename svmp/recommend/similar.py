"""Similarity of items, or users: the correlation of their factor terms over the other side.

With S = Cov[u] over all users, two items with factors v and w have the similarity

    c = v' S w / sqrt(v' S v  w' S w),

which is invariant to scaling and rotation of the factors; biases and slopes do not count. Its
variance under q is, to first order, g_v' Cov[v] g_v + g_w' Cov[w] g_w, with g the gradients of c.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp.recommend.side import Floats, Keys, Side, dot
from svmp.recommend.top import best

SHORT = 1e-20
"""Lower limit of lengths: the similarity of zero factors is 0."""
ALL = np.array([0, 1])
"""Offsets of the places that a single row leaves out."""


def metric(others: Side) -> Floats:
    """Return R with S = R R', so that v' S w is an inner product of factors times R."""
    mean, cov = others.tastes()
    apart = mean - mean.mean(axis=0, dtype=np.float64)
    between = apart.T @ apart / max(len(apart), 1)
    within = cov.mean(axis=0, dtype=np.float64)
    total = between + (within if others.full else np.diag(within))
    try:
        return np.linalg.cholesky(total)
    except np.linalg.LinAlgError:  # by rounding, if factors differ by orders of magnitude
        values, vectors = np.linalg.eigh(total)
        return vectors * np.sqrt(np.maximum(values, 0))


@dataclass(frozen=True, eq=False)
class Similarity:
    """Items, or users, prepared for comparison: factors times R, of length 1.

    Attributes
    ----------
    side, others
        The elements that are compared, and those over which the correlation is taken.
    root
        R.
    unit, length
        Factors times R, divided by their length; and that length.
    """

    side: Side
    others: Side
    root: Floats
    unit: Floats
    length: Floats

    @classmethod
    def of(cls, side: Side, others: Side) -> Similarity:
        """Prepare the elements of a side for comparison."""
        root = metric(others)
        mapped = side.tastes()[0] @ root
        length = np.maximum(np.linalg.norm(mapped, axis=1), SHORT)
        unit = (mapped / length[:, None]).astype(np.float32)
        return cls(side, others, root, unit, length)

    def most(self, key: int, n: int) -> tuple[Keys, Floats, Floats]:
        """Return the n elements most similar to one, the similarities and their deviations."""
        side, root, unit, length = self.side, self.root, self.unit, self.length
        similarity = dot(unit, unit[key])
        order = np.zeros((1, min(n, len(side) - 1)), np.int64)
        best(similarity[None].copy(), order.shape[1], ALL, np.array([key]), order)
        order = order[0]
        c = similarity[order]
        to_other = (unit[key] - c[:, None] * unit[order]) / length[order, None]
        to_one = (unit[order] - c[:, None] * unit[key]) / length[key]
        cov = side.tastes()[1]
        var = _quadratic(cov[order], to_other @ root.T)
        var += _quadratic(np.broadcast_to(cov[key], cov[order].shape), to_one @ root.T)
        return order, c, np.sqrt(np.minimum(var, 1.0))  # a correlation has a variance of at most 1


def _quadratic(cov: Floats, g: Floats) -> Floats:
    """Return g' Cov g of each row."""
    if cov.ndim == 3:
        return np.einsum("ri,rij,rj->r", g, cov, g)
    return np.einsum("rk,rk->r", cov, g**2)
