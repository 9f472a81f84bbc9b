"""The rows of a table sorted by one of their foreign keys."""

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
"""Bytes in a cache line."""
SAMPLE_SIZE = 2**16
"""Size of a sample of values that estimates their mean and spread well enough."""
CENTRED = 100.0
"""Largest |mean| of data that are read in single precision, in standard deviations."""


@dataclass(frozen=True, eq=False)
class Column:
    """A foreign key of a table: the key of every row, and the number of keys."""

    key: Array32
    size: int

    @classmethod
    def of(cls, reader: Reader, width: int) -> Column:
        """Return the keys by which rows read an operand with `width` elements for each key."""
        key = reader.key
        if key is None:
            rows = np.arange(reader.scope.rows.size)
            key = reader.element(rows, np.zeros_like(rows)) // width
        return cls(key.astype(np.int32).ravel(), reader.variable.size // width)


@dataclass(frozen=True, eq=False)
class Keyed:
    """Rows of a table, sorted by one of their keys.

    Attributes
    ----------
    rows
        Row numbers in the order of the key; None if the table has all rows in that order.
    begin, end
        Where the rows of each key begin and end.
    columns
        Their other keys, (columns, rows).
    target
        The observed values, or None where they are hidden.
    coefficients
        Coefficients of the terms that have some, (terms, rows).
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
        """Number of rows of each key."""
        return self.end - self.begin

    @cached_property
    def longest(self) -> int:
        """Number of rows of the longest key."""
        return int(self.counts.max(initial=0))

    def at(self, places: Ints, counts: Ints) -> Keyed:
        """Return the rows at some places, of which each key has `counts`."""
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
    """Return the index of a column in a list, to which it is appended if it is new."""
    for number, other in enumerate(columns):
        if other.size == column.size and np.array_equal(other.key, column.key):
            return number
    columns.append(column)
    return len(columns) - 1


def precision_of(variable: Symbol) -> Precision:
    """Return the precision in which rows are read: that of the data, if these are centred."""
    if variable.observed is None or variable.observed.dtype == np.float64:
        return np.float64
    values = variable.values
    exact = values.min(initial=0) > -(2**24) and values.max(initial=0) < 2**24
    return np.float32 if exact and is_centred(values[:: stride(len(values))]) else np.float64


def stride(count: int) -> int:
    """Return the distance between the values of a sample of about `SAMPLE_SIZE` values."""
    return count // SAMPLE_SIZE + 1


def is_centred(values: Numbers) -> bool:
    """Whether single precision has enough digits for the differences between values.

    >>> is_centred(np.array([1.0, 2.0])), is_centred(np.array([1e9, 1e9 + 1]))
    (True, False)
    """
    return bool(abs(values.mean(dtype=np.float64)) <= CENTRED * values.std(dtype=np.float64))


def plain(numbers: Numbers) -> Numbers:
    """Return a contiguous, writable array, for which the loops are compiled; copy if needed."""
    return np.require(numbers, requirements=("C", "W"))


def side_by_side(sizes: list[int], dtype: Any) -> tuple[Numbers, Ints]:
    """Return an array with space for parts of some sizes, and the start of each part.

    Parts start at cache lines, so that the numbers of a key lie in as few lines as possible.
    """
    line = CACHE_LINE // np.dtype(dtype).itemsize
    ends = [*accumulate((-(-size // line) * line for size in sizes), initial=line)]
    numbers = np.empty(ends[-1], dtype=dtype)
    skip = -numbers.__array_interface__["data"][0] % CACHE_LINE // numbers.itemsize
    return numbers[skip:], np.array(ends[:-1]) - line
