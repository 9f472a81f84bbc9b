"""Named axes and flat indices: a plate is a table whose cells are numbered in C order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from svmp.errors import ModelError
from svmp.network.validation import PRIME

Ints = NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.float64, Any)
WIDE = 128
"""Row length from which NumPy adds up rows at full speed."""

KEPT = 1 << 16
"""Most cells whose flat indices are kept."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """An array whose leading axes have names, or None to be aligned with the variable's plate.

    Axes after the named ones belong to each value. `source` is the name of the `svmp.data` that the
    values are from, if it has one.
    """

    values: NDArray[Any]
    axes: tuple[str | None, ...]
    source: str | None = None

    def renamed(self, old: str, new: str) -> Labelled:
        return replace(self, axes=tuple(new if a == old else a for a in self.axes))


@dataclass(frozen=True)
class Grid:
    """Axes in order, with names and sizes; flat indices of cells are in C order."""

    labels: tuple[str, ...]
    shape: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def cells(self) -> Ints:
        """The flat indices of all cells; the same array each time where these are few."""
        return self._cells if self.size <= KEPT else np.arange(self.size)

    @cached_property
    def _cells(self) -> Ints:
        found = np.arange(self.size)
        found.flags.writeable = False
        return found

    def stride(self, label: str) -> int:
        return prod(self.shape[self.labels.index(label) + 1 :])

    def length(self, label: str) -> int:
        return self.shape[self.labels.index(label)]

    def coordinate(self, label: str, flat: Ints) -> Ints:
        """Return the position along one axis of each flat index."""
        axis = self.labels.index(label)
        place = flat if axis == len(self.labels) - 1 else flat // self.stride(label)
        return place if axis == 0 else place % self.shape[axis]

    def locate(self, flat: int) -> tuple[int, ...]:
        """Return the index of one cell, for error messages."""
        return tuple(int(i) for i in np.unravel_index(flat, self.shape))


@dataclass(frozen=True)
class Kinds:
    """The cells of a plate grouped by some of its axes; cells of one kind differ in the others."""

    plate: Grid
    grid: Grid

    @classmethod
    def along(cls, plate: Grid, axes: set[str]) -> Kinds:
        """Group the cells of a plate by some of its axes."""
        labels = tuple(label for label in plate.labels if label in axes)
        return cls(plate, Grid(labels, tuple(plate.length(label) for label in labels)))

    @cached_property
    def each(self) -> int:
        """Number of cells of each kind."""
        return self.plate.size // max(self.grid.size, 1)

    def of(self, cells: Ints) -> Ints:
        """Return the kind of each cell."""
        kind = np.zeros(len(cells), dtype=np.int64)
        for label in self.grid.labels:
            kind += self.plate.coordinate(label, cells) * self.grid.stride(label)
        return kind

    def one_of_each(self, kinds: Ints) -> Ints:
        """Return a cell of each kind."""
        cells = np.zeros(len(kinds), dtype=np.int64)
        for label in self.grid.labels:
            cells += self.grid.coordinate(label, kinds) * self.plate.stride(label)
        return cells

    @cached_property
    def examples(self) -> Ints:
        """A cell of each kind, in the order of the kinds."""
        return self.one_of_each(np.arange(self.grid.size))

    def everywhere(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return for every cell the row of values of its kind."""
        if self.grid.size == 1:
            return np.broadcast_to(values, (self.plate.size, values.shape[-1]))
        known = [
            n if a in self.grid.labels else 1
            for a, n in zip(self.plate.labels, self.plate.shape, strict=True)
        ]
        size = values.shape[-1]
        rows = np.broadcast_to(values.reshape(*known, size), (*self.plate.shape, size))
        return rows.reshape(-1, size)

    def count(self, cells: Ints | None) -> Ints:
        """Return the number of cells of each kind, among some cells or all (None)."""
        if cells is None:
            return self.counts
        return np.bincount(self.of(cells), minlength=self.grid.size)

    @cached_property
    def counts(self) -> Ints:
        """Number of cells of each kind, as an array."""
        found = np.full(self.grid.size, self.each)
        found.flags.writeable = False
        return found

    def mean_without(self, values: NDArray[Any], cells: Ints) -> tuple[Ints, NDArray[Any]]:
        """Return the number of cells of each kind and their mean row, leaving some cells out.

        A kind with no cells left has a mean of 0. The cells left out are usually few, so their
        rows are subtracted from the sum over all cells.
        """
        count, kinds = self.each - self.count(cells), self.of(cells)
        total = self.each * self.mean(values)
        np.subtract.at(total, kinds, values[cells])
        return count, (count > 0)[:, None] * total / np.maximum(count, 1)[:, None]

    def mean(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the mean row of each kind, of values with one row per cell."""
        return self.total(values) / self.each

    def total(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of the rows of each kind, of values with one row per cell."""
        labels, count = self.plate.labels, len(self.grid.labels)
        if self.each == 1:
            return values
        if self.grid.labels == labels[len(labels) - count :]:
            return column_sums(values.reshape(self.each, -1)).reshape(self.grid.size, -1)
        other = tuple(i for i, a in enumerate(labels) if a not in self.grid.labels)
        cells = values.reshape(*self.plate.shape, -1)
        return np.asarray(cells.sum(axis=other)).reshape(self.grid.size, -1)


def column_sums(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the sum over the first axis.

    Short rows are added many side by side, which NumPy does several times faster.

    >>> column_sums(np.arange(6.0).reshape(3, 2))
    array([6., 9.])
    """
    many = max(1, WIDE // max(1, rows.shape[1]))
    whole = len(rows) // many * many
    wide = rows[:whole].reshape(-1, many * rows.shape[1]).sum(axis=0)
    return np.asarray(wide.reshape(many, -1).sum(axis=0) + rows[whole:].sum(axis=0))


class UnalignedError(ModelError):
    """An array with more axes than the variable has dims.

    Attributes
    ----------
    shape
        The shape of the array.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        super().__init__(f"an array has shape {shape}, with more axes than the variable has dims")


class StrayAxisError(ModelError):
    """An array or parent has a dimension that the declared variable does not have."""

    def __init__(self, what: str, label: str, length: int) -> None:
        super().__init__(what)
        self.what, self.label, self.length = what, label.rstrip(PRIME), length


@dataclass(frozen=True)
class Scope:
    """The axes that a term can refer to.

    Attributes
    ----------
    rows
        The axes of the table.
    inner
        The axes that the term sums over, or the diagonal of a matrix.
    """

    rows: Grid
    inner: Grid

    def coordinate(self, label: str, rows: Ints, inner: Ints) -> Ints:
        if label in self.inner.labels:
            return self.inner.coordinate(label, inner)
        return self.rows.coordinate(label, rows)

    def look_up(self, array: Labelled, rows: Ints, inner: Ints) -> NDArray[Any]:
        """Return the array's value at each (row, inner index); one value if it has no axes."""
        if not array.axes:
            return array.values
        if array.axes == self.rows.labels:  # by the flat index, without a division
            events = array.values.shape[len(array.axes) :]
            return take_rows(array.values.reshape(self.rows.size, *events), rows)
        places = tuple(self.coordinate(str(a), rows, inner) for a in array.axes)
        return array.values[places]

    def knows(self, label: str) -> bool:
        return label in self.inner.labels or label in self.rows.labels

    def length(self, label: str) -> int:
        return (self.inner if label in self.inner.labels else self.rows).length(label)

    def align(self, array: Labelled, plate: Grid) -> Labelled:
        """Align the unnamed axes with the last axes of the plate, and check every length."""
        unnamed = array.axes.count(None)
        if unnamed > len(plate.labels):
            raise UnalignedError(np.shape(array.values))
        names = iter(plate.labels[len(plate.labels) - unnamed :])
        axes = tuple(next(names) if a is None else a for a in array.axes)
        values, kept = array.values, []
        for label, length in zip(axes, np.shape(values), strict=False):
            if not self.knows(label):
                raise StrayAxisError("an array", label, length)
        for axis, label in enumerate(axes):
            length = np.shape(values)[axis]
            if length == self.length(label):
                kept.append(label)
            elif length != 1 or array.axes[axis] is not None:
                other = "; if it has another axis, name it with svmp.data(array, dims=...)"
                raise ModelError(
                    f"an array has length {length} along '{label.rstrip(PRIME)}', which has "
                    f"{self.length(label)}{other if array.axes[axis] is None else ''}"
                )
        if len(kept) < len(axes) and not sparse.issparse(values):
            spare = tuple(i for i, a in enumerate(axes) if a not in kept)
            values = np.squeeze(values, axis=spare)
        return Labelled(values, tuple(kept))


def complement(numbers: Ints | None, size: int) -> Ints | None:
    """Return the indices below a size that are not in `numbers`; None if these are all (None).

    >>> complement(np.array([0, 2]), 4)
    array([1, 3])
    """
    if numbers is None:
        return None
    absent = np.ones(size, dtype=bool)
    absent[numbers] = False
    return np.flatnonzero(absent)


def ragged(starts: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Concatenate ranges: return for each member the number of its range, and the member.

    >>> owner, member = ragged(np.array([5, 0]), np.array([2, 3]))
    >>> owner, member
    (array([0, 0, 1, 1, 1]), array([5, 6, 0, 1, 2]))
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - np.repeat(first - starts, counts)


def is_range(rows: Ints) -> bool:
    """Whether rows follow each other without a gap."""
    if not len(rows) or rows[-1] - rows[0] != len(rows) - 1:
        return False
    return bool((rows[1:] > rows[:-1]).all())


def piece(rows: Ints, start: int, length: int) -> Ints:
    """Return some rows from a place on; the array itself if these are all."""
    return rows if start == 0 and len(rows) <= length else rows[start : start + length]


def take_rows(values: NDArray[Number], rows: Ints) -> NDArray[Number]:
    """Return some rows of an array; not a copy if they follow each other."""
    if is_range(rows):
        return values[rows[0] : rows[-1] + 1]
    return values[rows]
