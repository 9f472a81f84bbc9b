"""A mean vector that is linear in each Gaussian variable: multivariate regression, random slopes.

Entry j of the mean of a row is a sum of entries of terms, mu_j = sum_e c_e prod_f x_f(e), as in
linear.py: each (row, j) is a row of a longer table, with the axis of the vector as its last axis.
As a function of one element x of a variable it is mu = A x + b, where A and b are random and depend
on the other variables. So a message (m_1, M_2) to (mu, mu mu^T) becomes, to (x, x x^T),

    (E[A]^T m_1 + 2 E[A^T M_2 b],  E[A^T M_2 A]).

All expectations are exact. Only entries that read one element are correlated, so that covariances
are sums over pairs of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from svmp.families.family import Array
from svmp.families.matrix import flat, join
from svmp.network.beliefs import Beliefs
from svmp.network.colouring import greedy_colours
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints, Labelled
from svmp.network.means.row_sums import sums_by_owner
from svmp.network.means.terms import (
    Entries,
    LinearTerm,
    ReadingEntry,
    dimension,
    first_moment,
    pair_by,
    reading_entries,
    scatter,
    second_moment,
    share_variable,
)
from svmp.network.means.vector_terms import VectorTerm, vector_terms
from svmp.network.reader import Reader
from svmp.network.slot import Slot


@dataclass(frozen=True, eq=False)
class VectorMean(Slot):
    """The mean of an MvNormal as a sum of terms.

    Attributes
    ----------
    terms
        Its terms, over a table with a row for each entry of each vector.
    axis
        Name of the last axis of that table, along the vector.
    size
        Length of the vector.
    """

    terms: tuple[LinearTerm, ...]
    axis: str
    size: int

    @property
    def variables(self) -> list[Symbol]:
        seen = {r.variable.name: r.variable for t in self.terms for r in t.readers}
        return list(seen.values())

    @property
    def arrays(self) -> tuple[Labelled, ...]:
        return tuple(c for t in self.terms for c in (*t.constants, t.design) if c is not None)

    @cached_property
    def _vectors(self) -> dict[str, VectorTerm] | None:
        """Its terms by variable, if they are sums of whole vectors."""
        return vector_terms(self.terms, self.axis, self.size)

    @property
    def row_size(self) -> int:
        """Most numbers that are computed for one row: pairs of entries that may be correlated."""
        if self._vectors is not None:
            return self.size * (self.size + 1) + sum(t.width for t in self._vectors.values())
        entries = self.size * sum(term.scope.inner.size for term in self.terms)
        products = any(len(term.readers) > 1 for term in self.terms)
        widest = max([dimension(v) for v in self.variables], default=1)
        return entries * (entries if products else max(self.size, widest))

    def message_size(self, variable: Symbol) -> int:
        return max(self.row_size, variable.family.size)

    def _entry_rows(self, rows: Ints) -> Ints:
        """Return the rows of the longer table: every entry of the vector of each row."""
        return (rows[:, None] * self.size + np.arange(self.size)).ravel()

    def mean(self, q: Beliefs, rows: Ints) -> Array:
        """E[mu] of each row, of (rows, size)."""
        if self._vectors is not None:
            return np.sum([t.mean(q, rows) for t in self._vectors.values()], axis=0)
        places = self._entry_rows(rows)
        total = np.zeros(len(places))
        for term in self.terms:
            if term.regular is not None:
                total += term.regular.mean(q, places)
                continue
            at = term.entries(places)
            total += np.bincount(at.owner, term.mean(q, at), len(places))
        return total.reshape(len(rows), self.size)

    def covariance(self, q: Beliefs, rows: Ints) -> Array:
        """Cov[mu] of each row, of (rows, size, size)."""
        if self._vectors is not None:
            parts = [t.covariance(q, rows) for t in self._vectors.values()]
            return np.sum(parts, axis=0).reshape(len(rows), self.size, self.size)
        places, shape = self._entry_rows(rows), (len(rows), self.size**2)
        total = np.zeros(shape)
        for i, left in enumerate(self.terms):
            for right in self.terms[i:]:
                if not share_variable(left, right):
                    continue
                a, b = self._correlated(left, left.entries(places), right, right.entries(places))
                cross = second_moment(q, left, a, right, b) - left.mean(q, a) * right.mean(q, b)
                j, k = a.owner % self.size, b.owner % self.size
                total += scatter(cross, a.owner // self.size, j * self.size + k, shape)
                if left is not right:
                    total += scatter(cross, a.owner // self.size, k * self.size + j, shape)
        return total.reshape(len(rows), self.size, self.size)

    def _correlated(
        self, left: LinearTerm, a: Entries, right: LinearTerm, b: Entries
    ) -> tuple[Entries, Entries]:
        """Pair entries of one row; of terms with one variable only those that read one element."""
        if len(left.readers) > 1 or len(right.readers) > 1:
            return pair_by(a, a.owner // self.size, b, b.owner // self.size)
        x, y = left.readers[0], right.readers[0]
        count = x.variable.size
        return pair_by(
            a,
            a.owner // self.size * count + x.element(a.rows, a.inner),
            b,
            b.owner // self.size * count + y.element(b.rows, b.inner),
        )

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        mean = self.mean(q, rows)
        square = mean[:, :, None] * mean[:, None, :] + self.covariance(q, rows)
        return join(mean, flat(square))

    def message(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints, incoming: Array
    ) -> Array:
        if self._vectors is not None:
            slope, pull = self._pulls(q, variable, elements, rows, incoming)
            return join(slope[:, None] * pull, (slope**2)[:, None] * incoming[:, self.size :])
        count, size, width = len(rows), self.size, dimension(variable)
        linear, square = incoming[:, :size], incoming[:, size:].reshape(count, size, size)
        places, wanted = self._entry_rows(rows), np.repeat(elements, self.size)
        reading = list(reading_entries(self.terms, q, variable, wanted, places))
        slope, own = np.zeros((count, size * width)), np.zeros(count * size)
        for _, reader, at, a in reading:
            place = at.owner % size * width + reader.component(at.rows, at.inner)
            slope += scatter(a, at.owner // size, place, slope.shape)
            own += np.bincount(at.owner, a * first_moment(q, reader, at), len(own))
        slopes = slope.reshape(count, size, width)
        rest = self.mean(q, rows) - own.reshape(count, size)
        pull = linear + 2 * np.einsum("rjk,rk->rj", square, rest)
        vector = np.einsum("rjc,rj->rc", slopes, pull)
        vector += 2 * self._shared_with_rest(q, variable, elements, rows, square, reading)
        if all(len(term.readers) == 1 for term, *_ in reading):  # the slopes are known numbers
            matrix = flat(np.swapaxes(slopes, 1, 2) @ square @ slopes)
        else:
            matrix = self._squared_slope(q, variable, square, reading)
        return join(vector, matrix)

    def message_sum(
        self,
        q: Beliefs,
        variable: Symbol,
        elements: Ints,
        owner: Ints,
        rows: Ints,
        incoming: Array,
    ) -> Array:
        if self._vectors is None:
            return super().message_sum(q, variable, elements, owner, rows, incoming)
        slope, pull = self._pulls(q, variable, elements[owner], rows, incoming)
        count, square = len(elements), incoming[:, self.size :]
        return join(
            sums_by_owner(pull, slope, owner, count), sums_by_owner(square, slope**2, owner, count)
        )

    def _pulls(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints, incoming: Array
    ) -> tuple[Array, Array]:
        """Return c_k of the element of each row, and m_1 + 2 M_2 (E[mu] - c_k E[x_k])."""
        assert self._vectors is not None
        term, size = self._vectors[variable.name], self.size
        slope = term.slopes(elements, rows)
        own = slope[:, None] * q.moments[variable.name][elements, :size]
        rest = self.mean(q, rows) - own
        square = incoming[:, size:].reshape(-1, size, size)
        return slope, incoming[:, :size] + 2 * np.einsum("rjk,rk->rj", square, rest)

    def _squared_slope(
        self, q: Beliefs, variable: Symbol, square: Array, reading: list[ReadingEntry]
    ) -> Array:
        """E[A^T M_2 A] of each row, flattened."""
        width, size = dimension(variable), self.size
        total = np.zeros((len(square), width * width))
        for left, left_reader, left_at, _ in reading:
            for right, right_reader, right_at, _ in reading:
                a, b = pair_by(left_at, left_at.owner // size, right_at, right_at.owner // size)
                value = second_moment(q, left, a, right, b, skip=variable)
                value *= square[a.owner // size, a.owner % size, b.owner % size]
                component = left_reader.component(a.rows, a.inner) * width
                component = component + right_reader.component(b.rows, b.inner)
                total += scatter(value, a.owner // size, component, total.shape)
        return total

    def _shared_with_rest(
        self,
        q: Beliefs,
        variable: Symbol,
        elements: Ints,
        rows: Ints,
        square: Array,
        reading: list[ReadingEntry],
    ) -> Array:
        """Return what the covariance of A and b adds to E[A^T M_2 b], see linear.py."""
        size, places = self.size, self._entry_rows(rows)
        total = np.zeros((len(rows), dimension(variable)))
        for term, reader, at, _ in reading:
            for other in self.terms:
                if not share_variable(term, other, skip=variable):
                    continue
                entries = other.entries(places)
                a, b = pair_by(at, at.owner // size, entries, entries.owner // size)
                again = other.reader(variable)
                if again is not None:
                    apart = again.element(b.rows, b.inner) != elements[a.owner // size]
                    a, b = a[np.flatnonzero(apart)], b[np.flatnonzero(apart)]
                value = second_moment(q, term, a, other, b, skip_left=variable)
                value -= term.mean(q, a, skip=variable) * other.mean(q, b)
                value *= square[a.owner // size, a.owner % size, b.owner % size]
                component = reader.component(a.rows, a.inner)
                total += scatter(value, a.owner // size, component, total.shape)
        return total

    def _reads(self, variable: Symbol) -> list[tuple[LinearTerm, Reader]]:
        return [(t, r) for t in self.terms if (r := t.reader(variable)) is not None]

    def pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        places, found = self._entry_rows(rows), []
        for term, reader in self._reads(variable):
            at = term.entries(places)
            found.append((reader.element(at.rows, at.inner), at.rows // self.size))
        elements, where = (np.concatenate(part) for part in zip(*found, strict=True))
        return elements, where

    def labels(self, variable: Symbol) -> set[str]:
        found: set[str] = set()
        for term, reader in self._reads(variable):
            design = () if term.design is None else term.design.axes
            found |= reader.labels | {str(axis) for axis in design}
        return found

    def width(self, variable: Symbol) -> int:
        total = 0
        for term, reader in self._reads(variable):
            inner = term.scope.inner.size if term.design is not None else reader.width
            along = self.size if self.axis in reader.plate_labels else 1
            total += min(inner * along, variable.size)
        return total

    def colours(self, variable: Symbol, rows: Callable[[], Ints]) -> Ints | None:
        """Elements in one sum are co-parents and must not be updated together."""
        if self.width(variable) <= 1:
            return None
        elements, where = self.pairs(variable, rows())
        return greedy_colours(elements, where, variable.size)
