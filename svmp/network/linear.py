"""A mean that is linear in each Gaussian variable: biases, regressions, (bi-, tri-)linear models.

The mean of a row is a sum of entries, mu = sum_e c_e prod_f x_f(e). An entry reads one element of
each of its operands. As a function of one element x it is mu = a . x + b, where a and b are random
and depend on the other variables. So a message (m_1, m_2) to (mu, mu^2) becomes, to (x, x x^T),

    (m_1 E[a] + 2 m_2 E[a b],  m_2 E[a a^T]).

For the paper's matrix factorization this is equation (6). All expectations are exact, even where
two entries of a row share a variable (x y + y) or read entries of one vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from svmp.families.family import Array, stack
from svmp.network.beliefs import Beliefs
from svmp.network.colouring import greedy_colours
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints, Labelled, Scope, ragged
from svmp.network.reader import Reader
from svmp.network.slot import Slot


@dataclass(frozen=True, eq=False)
class Entries:
    """Some entries of one term: owners, rows, inner indices and coefficients."""

    owner: Ints
    rows: Ints
    inner: Ints
    coefficient: Array

    def __getitem__(self, chosen: Ints) -> Entries:
        return Entries(
            self.owner[chosen], self.rows[chosen], self.inner[chosen], self.coefficient[chosen]
        )


@dataclass(frozen=True, eq=False)
class LinearTerm:
    """One term of a mean in normal form, bound to the rows of a table."""

    scale: float
    constants: tuple[Labelled, ...]
    readers: tuple[Reader, ...]
    scope: Scope
    design: Labelled | None

    @property
    def separable(self) -> bool:
        """Whether no two entries of a row share an element or read entries of one vector."""
        inner = set(self.scope.inner.labels)
        return all(dimension(r.variable) == 1 and r.carried == inner for r in self.readers)

    def reader(self, variable: Symbol) -> Reader | None:
        return next((r for r in self.readers if r.variable is variable), None)

    def entries(self, rows: Ints) -> Entries:
        """List every entry of these rows; the owner is the position in `rows`."""
        if self.design is None:
            owner, inner = np.divmod(
                np.arange(len(rows) * self.scope.inner.size), self.scope.inner.size
            )
            return self._entries(owner, rows[owner], inner, 1.0)
        line = np.zeros(len(rows), dtype=np.int64)
        if len(self.design.axes) == 2:  # otherwise all rows have the same line of the matrix
            line = self.scope.rows.coordinate(str(self.design.axes[0]), rows)
        matrix: Any = self.design.values
        starts = matrix.indptr[line].astype(np.int64)
        owner, place = ragged(starts, matrix.indptr[line + 1] - starts)
        inner = matrix.indices[place].astype(np.int64)
        return self._entries(owner, rows[owner], inner, matrix.data[place])

    def _entries(self, owner: Ints, rows: Ints, inner: Ints, value: Array | float) -> Entries:
        coefficient = np.full(len(rows), self.scale) * value
        for array in self.constants:
            coefficient *= self.scope.look_up(array, rows, inner)
        return Entries(owner, rows, inner, coefficient)

    def touching(self, reader: Reader, elements: Ints, rows: Ints) -> Entries:
        """List the entries of each row that read the element at the same position."""
        if self.design is None and reader.carried == set(self.scope.inner.labels):
            inner = reader.inner_of(elements)
            found = self._entries(np.arange(len(rows)), rows, inner, 1.0)
        else:
            found = self.entries(rows)
        here = reader.element(found.rows, found.inner) == elements[found.owner]
        return found if here.all() else found[np.flatnonzero(here)]

    def mean(self, q: Beliefs, at: Entries, skip: Symbol | None = None) -> Array:
        """E[c prod x_f] of each entry, leaving one variable out."""
        value = at.coefficient
        for reader in self.readers:
            if reader.variable is not skip:
                value = value * first_moment(q, reader, at)
        return value


@dataclass(frozen=True, eq=False)
class Linear(Slot):
    """The mean of the Normal `name` as a sum of terms."""

    name: str
    terms: tuple[LinearTerm, ...]

    @property
    def varies(self) -> bool:
        return True

    @property
    def variables(self) -> list[Symbol]:
        seen = {r.variable.name: r.variable for t in self.terms for r in t.readers}
        return list(seen.values())

    @property
    def arrays(self) -> tuple[Labelled, ...]:
        return tuple(c for t in self.terms for c in (*t.constants, t.design) if c is not None)

    def mean(self, q: Beliefs, rows: Ints) -> Array:
        """E[mu] of each row: stored in q, or computed."""
        if self.name in q.means:
            return q.means[self.name][rows]
        if self.name in q.row_moments:
            return q.row_moments[self.name](q, rows)[:, 0]
        total = np.zeros(len(rows))
        for term in self.terms:
            at = term.entries(rows)
            total += np.bincount(at.owner, term.mean(q, at), len(rows))
        return total

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        if self.name in q.row_moments:
            return q.row_moments[self.name](q, rows)
        mean = self.mean(q, rows)
        return stack(mean, mean**2 + self.variance(q, rows))

    def variance(self, q: Beliefs, rows: Ints) -> Array:
        """Var[mu] of each row: the sum of the covariances of entries that share a variable."""
        total = np.zeros(len(rows))
        for i, left in enumerate(self.terms):
            for right in self.terms[i:]:
                a = left.entries(rows)
                if left is right and left.separable:
                    b = a
                elif share_variable(left, right):
                    a, b = pair_by_owner(a, right.entries(rows))
                else:
                    continue
                cross = second_moment(q, left, a, right, b) - left.mean(q, a) * right.mean(q, b)
                total += (1 if left is right else 2) * np.bincount(a.owner, cross, len(rows))
        return total

    def message(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints, incoming: Array
    ) -> Array:
        size, count = dimension(variable), len(rows)
        linear, square = incoming[:, 0], incoming[:, 1]
        reading = list(self._reading_entries(q, variable, elements, rows))
        slope = np.zeros((count, size))
        own = np.zeros(count)
        for _, reader, at, a in reading:
            slope += scatter(a, at.owner, reader.component(at.rows, at.inner), slope.shape)
            own += np.bincount(at.owner, a * first_moment(q, reader, at), count)
        rest = self.mean(q, rows) - own
        vector = slope * (linear + 2 * square * rest)[:, None]
        vector += 2 * square[:, None] * self._shared_with_rest(q, variable, elements, rows, reading)
        matrix = square[:, None] * self._squared_slope(q, variable, count, reading)
        return np.concatenate([vector, matrix], axis=1)

    def _reading_entries(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints
    ) -> Iterator[ReadingEntry]:
        """Yield the entries of every row that read the element, with E[c prod of the others]."""
        for term in self.terms:
            reader = term.reader(variable)
            if reader is not None:
                at = term.touching(reader, elements, rows)
                yield term, reader, at, term.mean(q, at, skip=variable)

    def _squared_slope(
        self, q: Beliefs, variable: Symbol, count: int, reading: list[ReadingEntry]
    ) -> Array:
        """E[a a^T] of each row, flattened."""
        size = dimension(variable)
        total = np.zeros((count, size * size))
        for left, left_reader, left_at, _ in reading:
            for right, right_reader, right_at, _ in reading:
                if left is right and size == 1 and left.separable:
                    a = b = left_at
                else:
                    a, b = pair_by_owner(left_at, right_at)
                value = second_moment(q, left, a, right, b, skip=variable)
                component = left_reader.component(a.rows, a.inner)
                component = component * size + right_reader.component(b.rows, b.inner)
                total += scatter(value, a.owner, component, total.shape)
        return total

    def _shared_with_rest(
        self,
        q: Beliefs,
        variable: Symbol,
        elements: Ints,
        rows: Ints,
        reading: list[ReadingEntry],
    ) -> Array:
        """cov[a, b] of each row: not zero where an entry without x shares another variable."""
        total = np.zeros((len(rows), dimension(variable)))
        for term, reader, at, _ in reading:
            for other in self.terms:
                if term is other and term.separable:
                    continue
                if not share_variable(term, other, skip=variable):
                    continue
                a, b = pair_by_owner(at, other.entries(rows))
                again = other.reader(variable)
                if again is not None:
                    apart = again.element(b.rows, b.inner) != elements[a.owner]
                    a, b = a[np.flatnonzero(apart)], b[np.flatnonzero(apart)]
                value = second_moment(q, term, a, other, b, skip_left=variable)
                value -= term.mean(q, a, skip=variable) * other.mean(q, b)
                component = reader.component(a.rows, a.inner)
                total += scatter(value, a.owner, component, total.shape)
        return total

    def pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        found = []
        for term in self.terms:
            reader = term.reader(variable)
            if reader is not None:
                at = term.entries(rows)
                found.append((reader.element(at.rows, at.inner), at.rows))
        elements, where = (np.concatenate(part) for part in zip(*found, strict=True))
        return elements, where

    def labels(self, variable: Symbol) -> set[str]:
        found: set[str] = set()
        for term in self.terms:
            reader = term.reader(variable)
            if reader is not None:
                design = () if term.design is None else term.design.axes  # of elements read
                found |= reader.labels | {str(axis) for axis in design}
        return found

    def width(self, variable: Symbol) -> int:
        widths = []
        for term in self.terms:
            reader = term.reader(variable)
            if reader is not None and term.design is not None:
                design: Any = term.design.values
                widths.append(int(np.diff(design.indptr).max(initial=0)))
            elif reader is not None:
                widths.append(reader.width)
        return sum(widths)

    def shares_rows(self, variable: Symbol) -> bool:
        reads = [(t, r) for t in self.terms if (r := t.reader(variable)) is not None]
        term, reader = reads[0]
        every = reader.carried == set(term.scope.inner.labels) and term.scope.inner.size > 0
        return len(reads) == 1 and term.design is None and every and not reader.keyed_by_inner

    def first_pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        reader = next(r for t in self.terms if (r := t.reader(variable)) is not None)
        return reader.element(rows, np.zeros_like(rows)), rows

    def firsts(self, variable: Symbol) -> Ints | None:
        reader = next(r for t in self.terms if (r := t.reader(variable)) is not None)
        return reader.everywhere() if self.shares_rows(variable) else None

    def base(self, variable: Symbol, elements: Ints) -> Ints:
        reads = [r for t in self.terms if (r := t.reader(variable)) is not None]
        return reads[0].base_of(elements) if len(reads) == 1 else elements

    def colours(self, variable: Symbol, rows: Callable[[], Ints]) -> Ints | None:
        """Elements in one sum are co-parents and must not be updated together."""
        reads = [(t, r) for t in self.terms if (r := t.reader(variable)) is not None]
        if len(reads) == 1:
            ((term, reader),) = reads
            if term.design is None and not reader.keyed_by_inner:
                return reader.inner_of(np.arange(variable.size)) if reader.carried else None
        elements, where = self.pairs(variable, rows())
        return greedy_colours(elements, where, variable.size)

    def shift(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints, change: Array
    ) -> Array:
        """Return the change of E[mu] of each row when the element's mean changes by `change`."""
        total = np.zeros(len(rows))
        for _, reader, at, a in self._reading_entries(q, variable, elements, rows):
            component = reader.component(at.rows, at.inner)
            total += np.bincount(at.owner, a * change[at.owner, component], len(rows))
        return total


ReadingEntry = tuple[LinearTerm, Reader, Entries, Array]


def dimension(variable: Symbol) -> int:
    """Return the number of entries of one element: 1 for a Normal."""
    return variable.shape[-1] if variable.event_dims else 1


def scatter(values: Array, row: Ints, column: Ints, shape: tuple[int, ...]) -> Array:
    """Sum values into a new array at (row, column)."""
    rows, columns = shape
    flat = np.bincount(row * columns + column, values, rows * columns)
    return flat.reshape(shape).astype(np.float64, copy=False)


def first_moment(q: Beliefs, reader: Reader, at: Entries) -> Array:
    """E[x] of the operand at each entry."""
    moments = q.moments[reader.variable.name]
    return moments[reader.element(at.rows, at.inner), reader.component(at.rows, at.inner)]


def share_variable(left: LinearTerm, right: LinearTerm, skip: Symbol | None = None) -> bool:
    """Whether two terms have a variable in common, other than `skip`."""
    return any(right.reader(r.variable) is not None for r in left.readers if r.variable is not skip)


def pair_by_owner(left: Entries, right: Entries) -> tuple[Entries, Entries]:
    """Pair every entry on the left with every entry on the right that has the same owner."""
    starts = np.searchsorted(right.owner, left.owner, side="left")
    counts = np.searchsorted(right.owner, left.owner, side="right") - starts
    chosen, partner = ragged(starts, counts)
    return left[chosen], right[partner]


def second_moment(
    q: Beliefs,
    left: LinearTerm,
    a: Entries,
    right: LinearTerm,
    b: Entries,
    skip: Symbol | None = None,
    skip_left: Symbol | None = None,
) -> Array:
    """E[entry a * entry b]: second moments where both read one element, means elsewhere."""
    value = a.coefficient * b.coefficient
    for reader in left.readers:
        variable = reader.variable
        if variable is skip or variable is skip_left:
            continue
        expected = first_moment(q, reader, a)
        other = right.reader(variable)
        if other is not None:
            size = dimension(variable)
            element = reader.element(a.rows, a.inner)
            same = element == other.element(b.rows, b.inner)
            entry = size * reader.component(a.rows, a.inner) + other.component(b.rows, b.inner)
            together = q.moments[variable.name][element, size + entry]
            expected = np.where(same, together, expected * first_moment(q, other, b))
        value = value * expected
    for reader in right.readers:
        variable = reader.variable
        if variable is not skip and (variable is skip_left or left.reader(variable) is None):
            value = value * first_moment(q, reader, b)
    return value
