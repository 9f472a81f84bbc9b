"""Terms of vectors over a table whose cells are all combinations of plates: products of matrices.

In factor analysis, mu_ab = x_a . w_b; in the regression of several outcomes on the same numbers,
x_a is known. With E[x] and E[x x^T] of one plate as the lines of matrices, (a, k) and (a, kl),
means and variances of all cells are products with those of the other plate, and so are the sums
over cells of the messages to either: no cell reads a vector of its own.

    Var[mu_ab] = sum_kl Cov[x_a]_kl E[w_b w_b^T]_kl + E[x_a]_k E[x_a]_l Cov[w_b]_kl

Three plates or more are divided in two sides, each of which is taken as one plate: its lines are
the products of a line of each of its plates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Grid, Ints, Kinds, is_range, take_rows
from svmp.network.means.columns import Column
from svmp.network.means.row_sums import times_matrix

NONE: Mapping[str, Array] = {}
FEW = 5
"""Fewest vectors for which products of all pairs of known numbers are formed; two, if these have at
most as many entries. A logistic regression has one vector: weighted products of the matrix of known
numbers with itself are 20 times faster there."""
MOST = 1 << 21
"""Most products of known numbers that are kept, and most numbers of a side of several plates."""


class Vectors(NamedTuple):
    """The factor of one plate: a variable, or known numbers with their products."""

    column: Column | None
    numbers: Array | None = None
    products: Array | None = None

    @property
    def name(self) -> str | None:
        """Name of the variable; None for known numbers."""
        return None if self.column is None else self.column.name

    @property
    def lines(self) -> int:
        """Number of elements of the plate."""
        if self.column is None:
            assert self.numbers is not None
            return len(self.numbers)
        return self.column.reader.variable.size

    def means(self, q: Beliefs, change: Mapping[str, Array] = NONE) -> Array:
        """E[x] of each element, with other means of some variables."""
        if self.column is None:
            assert self.numbers is not None
            return self.numbers
        return change[self.column.name] if self.column.name in change else self.column.means(q)

    def squares(self, q: Beliefs) -> Array:
        """E[x x^T] of each element, flattened."""
        if self.column is None:
            assert self.products is not None
            return self.products
        return self.column.matrices(q).reshape(self.lines, -1)

    def squared_means(self, q: Beliefs) -> Array:
        """E[x] E[x]^T of each element, flattened."""
        return outer(self.means(q)) if self.products is None else self.products


@dataclass(frozen=True, eq=False)
class TableProduct:
    """A term over all combinations of the elements of two plates or more.

    Attributes
    ----------
    factors
        Those of the plates, in the order of the table's axes: that of the last varies fastest.
    """

    scale: float
    factors: tuple[Vectors, ...]

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
            count, width = columns[0].reader.variable.size, numbers.shape[1]
            few = count == 1 or count < FEW < width
            if few or numbers.size * width > MOST:
                return None
            factors[tuple(kinds.grid.labels)] = Vectors(None, numbers, outer(numbers))
        if () in factors or not 2 <= len(factors) == len(columns) + (matrix is not None):
            return None
        order = sorted(factors, key=lambda labels: rows.labels.index(labels[0]))
        if tuple(label for labels in order for label in labels) != rows.labels:
            return None
        found = cls(scale, tuple(factors[labels] for labels in order))
        small = found.largest_side * len(columns[0].offset) ** 2 <= MOST
        return found if len(order) == 2 or small else None

    @property
    def size(self) -> int:
        """Number of cells."""
        return prod(factor.lines for factor in self.factors)

    @property
    def largest_side(self) -> int:
        """Most combinations of the elements of all plates but one."""
        return self.size // max(1, min(factor.lines for factor in self.factors))

    @cached_property
    def _sides(self) -> tuple[tuple[Vectors, ...], tuple[Vectors, ...]]:
        """The factors before and after the division that leaves the fewest lines."""
        counts = [factor.lines for factor in self.factors]
        places = range(1, len(counts))
        place = min(places, key=lambda i: prod(counts[:i]) + prod(counts[i:]))
        return self.factors[:place], self.factors[place:]

    def mean(self, q: Beliefs, change: Mapping[str, Array] = NONE) -> Array:
        """E[mu] of all cells, with other means of some variables."""
        one, other = (combined(f.means(q, change) for f in side) for side in self._sides)
        return self.scale * times_matrix(one, other.T).ravel()

    def variance(self, q: Beliefs) -> Array:
        """Var[mu] of all cells."""
        first, second = self._sides
        means = combined(f.squared_means(q) for f in first)
        squares = combined(f.squares(q) for f in second)
        total = np.zeros((len(means), len(squares)))
        if any(f.column is not None for f in first):
            spread = combined(f.squares(q) for f in first) - means
            total += times_matrix(spread, squares.T)
        if any(f.column is not None for f in second):
            spread = squares - combined(f.squared_means(q) for f in second)
            total += times_matrix(means, spread.T)
        return self.scale**2 * total.ravel()

    def message(
        self, q: Beliefs, name: str, rows: Ints, incoming: Array, mean: Array | None
    ) -> Array:
        """Return the sum of the messages of rows to each element of a variable.

        `incoming` are the messages to (mu, mu^2) of these rows, and `mean` is their E[mu]; None if
        the term is all of it.
        """
        linear, square = incoming[:, 0], incoming[:, 1]
        if mean is not None:
            linear = linear + 2 * square * (mean - take_rows(self.mean(q), rows))
        if len(rows) < self.size or not is_range(rows):
            some, (linear, square) = (linear, square), np.zeros((2, self.size))
            linear[rows], square[rows] = some
        place = [factor.name for factor in self.factors].index(name)
        before, after = self.factors[:place], self.factors[place + 1 :]
        others, count = before + after, self.factors[place].lines
        shape = prod(f.lines for f in before), count, prod(f.lines for f in after)
        cells = [x.reshape(shape).swapaxes(0, 1).reshape(count, -1) for x in (linear, square)]
        vector = self.scale * times_matrix(cells[0], combined(f.means(q) for f in others))
        matrix = self.scale**2 * times_matrix(cells[1], combined(f.squares(q) for f in others))
        return np.concatenate([vector, matrix], axis=1)


def combined(tables: Iterable[Array]) -> Array:
    """Return the product of a line of each table, for all combinations of lines.

    >>> combined([np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]])]).ravel()
    array([ 3.,  5.,  6., 10.])
    """
    return reduce(lambda one, other: (one[:, None] * other).reshape(-1, other.shape[1]), tables)


def outer(means: Array) -> Array:
    """Return the product of each vector with itself, flattened."""
    return np.asarray((means[:, :, None] * means[:, None, :]).reshape(len(means), -1))
