"""Terms of a linear mean as lists of entries: which element of each operand an entry reads.

A term of a mean is a sum over inner indices, c prod_f x_f. Entries are listed one by one, with the
row that each belongs to, so that any index array, and rows of a sparse design, can be read. Terms
whose entries form a grid have a faster form (regular.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints, Labelled, Scope, ragged
from svmp.network.means.regular import RegularTerm
from svmp.network.reader import Reader


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

    @cached_property
    def regular(self) -> RegularTerm | None:
        """The term as matrices of (rows, inner indices), if its entries form a grid."""
        if self.design is not None:
            return None
        return RegularTerm.of(self.scale, self.constants, self.readers, self.scope)

    @cached_property
    def most_entries(self) -> int:
        """Largest number of entries of one row."""
        if self.design is None:
            return self.scope.inner.size
        design: Any = self.design.values
        return int(np.diff(design.indptr).max(initial=0))

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
    return _pair(left, left.owner, right, right.owner)


def pair_by(
    left: Entries, left_key: Ints, right: Entries, right_key: Ints
) -> tuple[Entries, Entries]:
    """Pair every entry on the left with every entry on the right that has the same key."""
    order = np.argsort(right_key, kind="stable")
    return _pair(left, left_key, right[order], right_key[order])


def _pair(
    left: Entries, left_key: Ints, right: Entries, ascending: Ints
) -> tuple[Entries, Entries]:
    starts = np.searchsorted(ascending, left_key, side="left")
    counts = np.searchsorted(ascending, left_key, side="right") - starts
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


ReadingEntry = tuple[LinearTerm, Reader, Entries, Array]
"""A term, its reader of a variable, the entries that read it, and E[c prod of the others]."""


def reading_entries(
    terms: Iterable[LinearTerm], q: Beliefs, variable: Symbol, elements: Ints, rows: Ints
) -> Iterator[ReadingEntry]:
    """Yield the entries of every row that read the element at the same position."""
    for term in terms:
        reader = term.reader(variable)
        if reader is not None:
            at = term.touching(reader, elements, rows)
            yield term, reader, at, term.mean(q, at, skip=variable)
