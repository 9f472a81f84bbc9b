"""Terms of vectors over a table whose cells are all pairs of two plates: products of matrices.

In factor analysis, mu_ab = x_a . w_b; in the regression of several outcomes on the same numbers,
x_a is known. With E[x] and E[x x^T] of one plate as the lines of matrices, (a, k) and (a, kl),
means and variances of all cells are products with those of the other plate, and so are the sums
over cells of the messages to either: no cell reads a vector of its own.

    Var[mu_ab] = sum_kl Cov[x_a]_kl E[w_b w_b^T]_kl + E[x_a]_k E[x_a]_l Cov[w_b]_kl
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Grid, Ints, Kinds
from svmp.network.means.columns import Column
from svmp.network.means.row_sums import times_matrix

NONE: Mapping[str, Array] = {}
FEW = 5
"""Fewest vectors for which products of all pairs of known numbers are formed. A logistic regression
has one: weighted products of the matrix of known numbers with itself are 20 times faster there."""
MOST = 1 << 21
"""Most products of known numbers that are kept."""


class Vectors(NamedTuple):
    """The factor of one plate: a variable, or known numbers with their products."""

    column: Column | None
    numbers: Array | None = None
    products: Array | None = None

    def means(self, q: Beliefs) -> Array:
        """E[x] of each element."""
        if self.column is None:
            assert self.numbers is not None
            return self.numbers
        return self.column.means(q)

    def squares(self, q: Beliefs) -> Array:
        """E[x x^T] of each element, flattened."""
        if self.column is None:
            assert self.products is not None
            return self.products
        return self.column.matrices(q).reshape(len(self.means(q)), -1)

    def covariances(self, q: Beliefs) -> Array | None:
        """Cov[x] of each element, flattened; None for known numbers."""
        return None if self.column is None else self.squares(q) - outer(self.means(q))


@dataclass(frozen=True, eq=False)
class TableProduct:
    """A term over the pairs of two plates, the second of which varies fastest.

    Attributes
    ----------
    first, second
        The factors of both plates.
    """

    scale: float
    first: Vectors
    second: Vectors
    rows: Grid

    @classmethod
    def of(
        cls,
        scale: float,
        matrix: tuple[Array, Kinds] | None,
        columns: tuple[Column, ...],
        rows: Grid,
    ) -> TableProduct | None:
        """Return a term in this form; None if it has another.

        `matrix` has known numbers by kind of rows, if they are the term's only constant.
        """
        factors = {tuple(c.reader.variable.plate.labels): Vectors(c) for c in columns}
        if not all(c.reader.index[:-1] == c.reader.variable.plate.labels for c in columns):
            return None
        if matrix is not None:
            numbers, kinds = matrix
            few = columns[0].reader.variable.size < FEW
            if few or numbers.size * numbers.shape[1] > MOST:
                return None
            factors[tuple(kinds.grid.labels)] = Vectors(None, numbers, outer(numbers))
        if len(factors) != 2 or len(columns) + (matrix is not None) != 2:
            return None
        for one, other in (tuple(factors), tuple(factors)[::-1]):
            if one and other and one + other == rows.labels:
                return cls(scale, factors[one], factors[other], rows)
        return None

    def mean(self, q: Beliefs, change: Mapping[str, Array] = NONE) -> Array:
        """E[mu] of all cells, with other means of some variables."""
        one, other = (
            change[f.column.name] if f.column and f.column.name in change else f.means(q)
            for f in (self.first, self.second)
        )
        return self.scale * times_matrix(one, other.T).ravel()

    def variance(self, q: Beliefs) -> Array:
        """Var[mu] of all cells."""
        total = np.zeros(self.rows.size)
        spread = self.first.covariances(q)
        if spread is not None:
            total += times_matrix(spread, self.second.squares(q).T).ravel()
        spread = self.second.covariances(q)
        if spread is not None:
            first = self.first.products
            first = outer(self.first.means(q)) if first is None else first
            total += times_matrix(first, spread.T).ravel()
        return self.scale**2 * total

    def message(self, q: Beliefs, name: str, rows: Ints, incoming: Array, mean: Array) -> Array:
        """Return the sum of the messages of rows to each element of a variable.

        `incoming` are the messages to (mu, mu^2) of these rows, and `mean` is their E[mu].
        """
        linear, square = np.zeros(self.rows.size), np.zeros(self.rows.size)
        square[rows] = incoming[:, 1]
        linear[rows] = incoming[:, 0] + 2 * incoming[:, 1] * mean
        linear -= 2 * square * self.mean(q)
        second = self.second.column is not None and self.second.column.name == name
        others = self.first if second else self.second
        shape = (-1, len(self.second.means(q)))
        cells = [x.reshape(shape).T if second else x.reshape(shape) for x in (linear, square)]
        vector = self.scale * times_matrix(cells[0], others.means(q))
        matrix = self.scale**2 * times_matrix(cells[1], others.squares(q))
        return np.concatenate([vector, matrix], axis=1)


def outer(means: Array) -> Array:
    """Return the product of each vector with itself, flattened."""
    return np.asarray((means[:, :, None] * means[:, None, :]).reshape(len(means), -1))
