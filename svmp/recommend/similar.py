"""Who is like whom: the correlation of what factors add to scores, over the other side.

With S = Cov[u] over all users, two items with factors v and w have the similarity

    c = v' S w / sqrt(v' S v  w' S w),

which is the same however the factors are scaled or turned. Its variance under q is, to first order,
g_v' Cov[v] g_v + g_w' Cov[w] g_w, with g the gradients of c.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp.recommend.side import Floats, Keys, Side, dot
from svmp.recommend.top import best

SHORT = 1e-20
"""Factors of no length are like nothing, and nobody knows how much so."""
ALL = np.array([0, 1])
"""Where those begin and end that a single row leaves out."""


def metric(others: Side) -> Floats:
    """Return a root R of S = R R', so that factors times R have plain inner products."""
    apart = others.mean - others.mean.mean(axis=0, dtype=np.float64)
    between = apart.T @ apart / max(len(apart), 1)
    within = others.cov.mean(axis=0, dtype=np.float64)
    total = between + (within if others.full else np.diag(within))
    try:
        return np.linalg.cholesky(total)
    except np.linalg.LinAlgError:  # by rounding, where factors differ by many orders
        values, vectors = np.linalg.eigh(total)
        return vectors * np.sqrt(np.maximum(values, 0))


@dataclass(frozen=True, eq=False)
class Similarity:
    """One side as it is compared: turned by R, and of length 1.

    Attributes
    ----------
    side, others
        Those that are compared, and those over whom.
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
        """Turn a side."""
        root = metric(others)
        turned = side.mean @ root
        length = np.maximum(np.linalg.norm(turned, axis=1), SHORT)
        unit = (turned / length[:, None]).astype(np.float32)
        return cls(side, others, root, unit, length)

    def most(self, key: int, n: int) -> tuple[Keys, Floats, Floats]:
        """Return the n elements most like one, their similarity and its standard deviation."""
        side, root, unit, length = self.side, self.root, self.unit, self.length
        similarity = dot(unit, unit[key])
        order = np.zeros((1, min(n, len(side) - 1)), np.int64)
        best(similarity[None].copy(), order.shape[1], ALL, np.array([key]), order)
        order = order[0]
        c = similarity[order]
        to_other = (unit[key] - c[:, None] * unit[order]) / length[order, None]
        to_one = (unit[order] - c[:, None] * unit[key]) / length[key]
        var = _quadratic(side.cov[order], to_other @ root.T)
        var += _quadratic(np.broadcast_to(side.cov[key], side.cov[order].shape), to_one @ root.T)
        return order, c, np.sqrt(np.minimum(var, 1.0))  # none is more uncertain than -1 or 1


def _quadratic(cov: Floats, g: Floats) -> Floats:
    """Return g' Cov g, row by row."""
    if cov.ndim == 3:
        return np.einsum("ri,rij,rj->r", g, cov, g)
    return np.einsum("rk,rk->r", cov, g**2)
