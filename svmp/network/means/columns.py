"""A variable of a mean as a matrix of (rows, inner indices).

Where no index array varies along the inner index k, the element that a row reads at k is that at
k = 0 plus an offset, the same in all rows: element(r, k) = element(r, 0) + offset(k).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints, take_rows
from svmp.network.reader import Reader

KEPT = 1 << 22
"""Most numbers that are kept from one sweep to the next."""
PLACES, ORDERS = 1 << 16, 6
"""Most places that are kept for an array of rows, and for how many arrays: the rows by each key,
and those of the table. Drawn rows, of which there are fewer, are not asked for again."""
FEW = 8
"""Where fewer than one in this many rows is read, nothing is computed for the others."""
ONE = np.zeros(1, dtype=np.int64)
"""The first row, where all rows are alike."""


@dataclass(frozen=True, eq=False)
class Column:
    """A variable of a regular term, as a matrix of (rows, inner indices).

    Attributes
    ----------
    offset
        Element at each inner index, less that at the first.
    vector
        Whether it is an MvNormal and the inner index is the entry.
    same
        Whether all rows read the same elements.
    """

    reader: Reader
    offset: Ints
    vector: bool
    same: bool

    @classmethod
    def of(cls, reader: Reader) -> Column | None:
        """Return the column of a variable; None if its elements do not form a grid."""
        variable, inner = reader.variable, reader.scope.inner
        if reader.keyed_by_inner:
            return None
        vector, plate = bool(variable.event_dims), variable.plate
        if vector and (reader.carried or (reader.index[-1],) != inner.labels):
            return None
        every = np.arange(inner.size)
        offset = np.zeros(inner.size, dtype=np.int64)
        for index, label in zip(reader.index, plate.labels, strict=False):
            if isinstance(index, str) and index in inner.labels:
                offset += inner.coordinate(index, every) * plate.stride(label)
        return cls(reader, offset, vector, not reader.labels - set(inner.labels))

    @cached_property
    def name(self) -> str:
        return self.reader.variable.name

    @cached_property
    def _packed(self) -> bool:
        """Whether the elements of a row follow each other, from a multiple of their number on."""
        size, plate = len(self.offset), self.reader.variable.plate
        if size <= 1:
            return False
        own = self.reader.scope.inner.labels
        indices = zip(self.reader.index, plate.labels, strict=False)
        others = [plate.stride(label) for index, label in indices if index not in own]
        return bool(
            np.array_equal(self.offset, np.arange(size)) and not any(s % size for s in others)
        )

    @cached_property
    def _firsts(self) -> Ints:
        """`first` of all rows."""
        every = np.arange(self.reader.scope.rows.size)
        return self.reader.element(every, np.zeros_like(every))

    def first(self, rows: Ints) -> Ints:
        """Return the first element per row; length 1 if it is constant."""
        if self.same:
            return self.reader.element(ONE, ONE)
        if not is_kept(len(rows), self.reader.scope.rows.size, 1):
            return self.reader.element(rows, np.zeros_like(rows))
        return take_rows(self._firsts, rows)

    def take_means(self, q: Beliefs, rows: Ints) -> Array:
        """Return E[x] at every (row, inner index), as `take` does."""
        kept, moments = self._kept.get(id(rows)), q.moments[self.name]
        if self.vector or kept is None or kept[0] is not rows:
            return self.take(self.means(q), rows)
        means = moments[:, 0]
        if self._packed:
            means = np.ascontiguousarray(means).reshape(-1, len(self.offset))
        return means.take(kept[1], axis=0)

    def take(self, table: Array, rows: Ints) -> Array:
        """Return the values of a table at every (row, inner index); one row if all are the same.

        The table has one value for each element of a Normal, and for each entry of an MvNormal.
        """
        kept = self._kept.get(id(rows))
        place = self._place(rows) if kept is None or kept[0] is not rows else kept[1]
        if self.vector:
            return table.take(place, axis=0)
        if self._packed:
            lines = np.ascontiguousarray(table).reshape(-1, len(self.offset))
            return lines.take(place, axis=0)
        return table[place]

    @cached_property
    def _kept(self) -> dict[int, tuple[Ints, Ints]]:
        """By identity of an array of rows, the array and its `_place`."""
        return {}

    def _place(self, rows: Ints) -> Ints:
        """Return where `take` reads a table; kept for rows that every sweep asks for."""
        place = self.first(rows)
        if not self.vector:
            packed, offset = self._packed, self.offset
            place = place // len(offset) if packed else place[:, None] + offset
        if place.size <= PLACES and 2 * len(rows) > self.reader.scope.rows.size:
            if len(self._kept) >= ORDERS:
                self._kept.clear()
            self._kept[id(rows)] = rows, place
        return place

    def means(self, q: Beliefs) -> Array:
        """Return E[x] in the layout of `take`."""
        moments = q.moments[self.name]
        return moments[:, : len(self.offset)] if self.vector else moments[:, 0]

    def squares(self, q: Beliefs) -> Array:
        """E[x^2] of Normals."""
        return q.moments[self.name][:, 1]

    def matrices(self, q: Beliefs) -> Array:
        """E[x x^T] of MvNormals."""
        size = len(self.offset)
        return q.moments[self.name][:, size:].reshape(-1, size, size)

    def take_matrices(self, q: Beliefs, rows: Ints) -> Array:
        """Return E[x x^T] of each row; one matrix if all are the same."""
        if self.vector:
            return self.take(self.matrices(q), rows)
        means, every = self.take(self.means(q), rows), np.arange(len(self.offset))
        found = means[:, :, None] * means[:, None, :]
        found[:, every, every] = self.take(self.squares(q), rows)
        return np.asarray(found)

    def take_products(self, q: Beliefs, rows: Ints, place: Ints) -> Array:
        """Return E[x_k x] of each row, with k the inner index at its place."""
        if self.vector:
            return np.asarray(self.matrices(q)[self.first(rows), place])
        shape, here = (len(rows), len(self.offset)), np.arange(len(rows))
        means = np.broadcast_to(self.take(self.means(q), rows), shape)
        squares = np.broadcast_to(self.take(self.squares(q), rows), shape)
        found = means * means[here, place, None]
        found[here, place] = squares[here, place]
        return np.asarray(found)


def is_kept(rows: int, all_rows: int, numbers: int) -> bool:
    """Whether to compute some numbers for all rows and to keep them, where some rows are read."""
    return all_rows * numbers <= KEPT and FEW * rows >= all_rows
