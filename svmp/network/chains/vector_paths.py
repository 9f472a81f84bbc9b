"""What a structured q of vectors says about whole sequences: pairs of rows, and joint draws.

A Gaussian chain is determined by its marginals N(m_t, S_t) and by D_t = Cov[x_t, x_(t-1)]. Given
the row before it, a row is Normal:

    x_t | x_(t-1) ~ N(m_t + G (x_(t-1) - m_(t-1)),  S_t - G D_t'),   G = D_t S_(t-1)^-1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp.families.family import Array
from svmp.families.matrix import apply
from svmp.network.chains.forward_backward import columns
from svmp.network.chains.sequences import Sequences
from svmp.network.grid import Ints


@dataclass(frozen=True, eq=False)
class VectorPaths:
    """The structured q of all sequences of a chain of vectors.

    Attributes
    ----------
    sequences
        The rows of each sequence.
    mean, cov, cross
        E[x_t], Cov[x_t] and Cov[x_t, x_(t-1)] of each row; the last is 0 for first rows.
    """

    sequences: Sequences
    mean: Array
    cov: Array
    cross: Array

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return draws of whole sequences, (size, rows, K)."""
        out = rng.standard_normal((size, *self.mean.shape))
        order, previous = self.sequences.order, self.sequences.previous
        for at in columns(self.sequences.starts, self.sequences.lengths):
            rows = order[at.steps]
            middle, spread = self.mean[rows], self.cov[rows]
            if not at.first:
                gain, spread = self.given_before(rows)
                apart = out[:, previous[rows]] - self.mean[previous[rows]]
                middle = middle + apply(gain, apart)
            out[:, rows] = middle + apply(_root(spread), out[:, rows])
        return out

    def given_before(self, rows: Ints) -> tuple[Array, Array]:
        """Return G and the covariance of rows given the rows before them."""
        before = self.cov[self.sequences.previous[rows]]
        turned = np.swapaxes(self.cross[rows], 1, 2)
        gain = np.swapaxes(np.linalg.solve(before, turned), 1, 2)
        return np.asarray(gain), np.asarray(self.cov[rows] - gain @ turned)


def _root(cov: Array) -> Array:
    """Return a root of every covariance; eigenvalues below 0 are rounding errors."""
    values, vectors = np.linalg.eigh(0.5 * (cov + np.swapaxes(cov, -1, -2)))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])
