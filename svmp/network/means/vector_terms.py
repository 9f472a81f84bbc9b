"""Terms of a mean vector that are sums of whole vectors, mu = sum_k c_k x_k, with known numbers c.

This is multivariate regression, random slopes with a predictor of the group, and the mean of a
group. The vectors x_k of a row are different elements, and so independent, and

    E[mu] = sum_k c_k E[x_k],    Cov[mu] = sum_k c_k^2 Cov[x_k].

A message (m_1, M_2) to (mu, mu mu^T) becomes, to (x_k, x_k x_k^T),

    (c_k (m_1 + 2 M_2 (E[mu] - c_k E[x_k])),  c_k^2 M_2).

Entries are not listed: these are products of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints, is_range
from svmp.network.means.columns import KEPT
from svmp.network.means.row_sums import times_matrix
from svmp.network.means.terms import LinearTerm, dimension
from svmp.network.reader import Reader


@dataclass(frozen=True, eq=False)
class VectorTerm:
    """A sum of vectors times known numbers, over the rows of a table.

    Attributes
    ----------
    term
        The same term over a table with a row for each entry of the vectors.
    size
        Length of the vectors.
    kept
        The numbers of all rows.
    """

    term: LinearTerm
    size: int
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, term: LinearTerm, axis: str, size: int) -> VectorTerm | None:
        """Return a term in this form, `axis` being that of the vector; None if it has another."""
        if term.design is not None or len(term.readers) != 1:
            return None
        (reader,), inner = term.readers, set(term.scope.inner.labels)
        vectors = bool(reader.variable.event_dims) and dimension(reader.variable) == size
        if not vectors or reader.index[-1] != axis or axis in reader.plate_labels:
            return None
        if reader.keyed_by_inner or reader.carried != inner:
            return None
        known = all(axis not in {str(a) for a in array.axes} for array in term.constants)
        return cls(term, size) if known else None

    @property
    def reader(self) -> Reader:
        """Which element of its variable a row reads."""
        return self.term.readers[0]

    @property
    def width(self) -> int:
        """Number of vectors in the sum."""
        return self.term.scope.inner.size

    def _look_up(self, rows: Ints) -> tuple[Array, Ints]:
        """Return c and the elements, (rows, width); one line of elements if all are the same."""
        every = np.arange(self.width)
        places, inner = np.repeat(rows * self.size, self.width), np.tile(every, len(rows))
        numbers = np.full(len(places), self.term.scale)
        for array in self.term.constants:
            numbers *= self.term.scope.look_up(array, places, inner)
        same = not self.reader.plate_labels - set(self.term.scope.inner.labels)
        if same:
            elements = self.reader.element(np.zeros_like(every), every)[None]
        else:
            elements = self.reader.element(places, inner).reshape(-1, self.width)
        return numbers.reshape(-1, self.width), elements

    def _at(self, rows: Ints) -> tuple[Array, Ints]:
        """Return `_look_up`; that of all rows is kept."""
        count = self.term.scope.rows.size // self.size
        if len(rows) < count or count * self.width > KEPT or not is_range(rows):
            return self._look_up(rows)
        if "rows" not in self.kept:
            self.kept["rows"] = self._look_up(rows)
        found: tuple[Array, Ints] = self.kept["rows"]
        return found

    def _total(self, numbers: Array, elements: Ints, values: Array) -> Array:
        """Return the sum over k of c_k times the values of the element."""
        if len(elements) == 1:
            return times_matrix(numbers, values[elements[0]])
        total = numbers[:, :1] * values[elements[:, 0]]
        for k in range(1, self.width):
            total += numbers[:, k, None] * values[elements[:, k]]
        return total

    def mean(self, q: Beliefs, rows: Ints) -> Array:
        """E[mu] of each row."""
        return self._total(*self._at(rows), q.moments[self.reader.variable.name][:, : self.size])

    def covariance(self, q: Beliefs, rows: Ints) -> Array:
        """Cov[mu] of each row, flattened."""
        numbers, elements = self._at(rows)
        moments = q.moments[self.reader.variable.name]
        means = moments[:, : self.size]
        spread = moments[:, self.size :] - (means[:, :, None] * means[:, None, :]).reshape(
            len(means), -1
        )
        return self._total(numbers**2, elements, spread)

    def slopes(self, elements: Ints, rows: Ints) -> Array:
        """Return the number that the element at the same position has in the mean of each row."""
        numbers, _ = self._at(rows)
        if self.width == 1:
            return numbers[:, 0]
        return numbers[np.arange(len(rows)), self.reader.inner_of(elements)]


def vector_terms(
    terms: tuple[LinearTerm, ...], axis: str, size: int
) -> dict[str, VectorTerm] | None:
    """Return terms in this form by variable; None if some are not, or share a variable."""
    found: dict[str, VectorTerm] = {}
    for term in terms:
        vector = VectorTerm.of(term, axis, size)
        if vector is None or vector.reader.variable.name in found:
            return None
        found[vector.reader.variable.name] = vector
    return found
