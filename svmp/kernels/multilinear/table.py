"""The rows of a table by one of their foreign keys, sorted once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.network.expressions import Symbol
from svmp.network.grid import Ints
from svmp.network.reader import Reader

Array32 = NDArray[np.int32]
Numbers = NDArray[Any]
"""Numbers of either precision."""
Precision = type[np.float32] | type[np.float64]
CACHE_LINE = 64
"""Bytes that are read from memory at once."""
SOME = 2**16
"""So many values say about as much of their mean and their spread as all of them."""
CENTRED = 100.0
"""How many standard deviations from 0 data may lie whose rows are read in single precision."""


@dataclass(frozen=True, eq=False)
class Column:
    """A foreign key of a table: that of every row, and how many keys there are."""

    key: Array32
    size: int

    @classmethod
    def of(cls, reader: Reader, width: int) -> Column:
        """Read the first slot of every row, of as many."""
        key = reader.key
        if key is None:
            rows = np.arange(reader.scope.rows.size)
            key = reader.element(rows, np.zeros_like(rows)) // width
        return cls(key.astype(np.int32).ravel(), reader.variable.size // width)


@dataclass(frozen=True, eq=False)
class Keyed:
    """Rows of a table by one of their keys.

    Attributes
    ----------
    rows
        Their numbers, those of one key after another's; None if all stand so in the table.
    begin, end
        Where those of each key begin and end.
    columns
        Their other keys, a line for each column.
    target
        The observed values, or None where they are hidden.
    coefficients
        Those of the terms that have any, a line each.
    """

    rows: Ints | None
    begin: Ints
    end: Ints
    columns: Array32
    target: Numbers | None
    coefficients: Numbers

    @cached_property
    def keys(self) -> Ints:
        """All keys."""
        return np.arange(len(self.begin))

    @cached_property
    def counts(self) -> Ints:
        """How many rows each of them has."""
        return self.end - self.begin

    @cached_property
    def longest(self) -> int:
        """How many the one has that has most."""
        return int(self.counts.max(initial=0))

    def at(self, places: Ints, counts: Ints) -> Keyed:
        """Return some of the rows, by place, and so many for each key."""
        end = np.cumsum(counts)
        return Keyed(
            places if self.rows is None else self.rows[places],
            end - counts,
            end,
            self.columns.take(places, axis=1),
            None if self.target is None else self.target[places],
            self.coefficients.take(places, axis=1),
        )


def place_of(column: Column, columns: list[Column]) -> int:
    """Return the number of a column among others, a new one if it is not there."""
    for number, other in enumerate(columns):
        if other.size == column.size and np.array_equal(other.key, column.key):
            return number
    columns.append(column)
    return len(columns) - 1


def precision_of(variable: Symbol) -> Precision:
    """Return the type in which rows are read: that of the data, if they are not far from zero."""
    if variable.observed is None or variable.observed.dtype == np.float64:
        return np.float64
    values = variable.values
    exact = values.min(initial=0) > -(2**24) and values.max(initial=0) < 2**24
    return np.float32 if exact and is_centred(values[:: stride(len(values))]) else np.float64


def stride(count: int) -> int:
    """Return the distance between values of a sample that says about as much as all of them."""
    return count // SOME + 1


def is_centred(values: Numbers) -> bool:
    """Whether single precision has enough digits for the differences between values.

    >>> is_centred(np.array([1.0, 2.0])), is_centred(np.array([1e9, 1e9 + 1]))
    (True, False)
    """
    return bool(abs(values.mean(dtype=np.float64)) <= CENTRED * values.std(dtype=np.float64))


def plain(numbers: Numbers) -> Numbers:
    """Return an array of the one kind that loops are compiled for, as it is if it is of that."""
    return np.require(numbers, requirements=("C", "W"))


def side_by_side(sizes: list[int], dtype: Any) -> tuple[Numbers, Ints]:
    """Return an array with room for parts of so many numbers, and where each begins.

    That is with a cache line, so that what is read of a key lies in as few as it can.
    """
    line = CACHE_LINE // np.dtype(dtype).itemsize
    ends = [*accumulate((-(-size // line) * line for size in sizes), initial=line)]
    numbers = np.empty(ends[-1], dtype=dtype)
    skip = -numbers.__array_interface__["data"][0] % CACHE_LINE // numbers.itemsize
    return numbers[skip:], np.array(ends[:-1]) - line
