"""Divide one table into parts by a column, so that rows with the same value stay together.

Values are taken in ascending order and cut into blocks of about equal numbers of rows: each of the
P blocks ends where it is nearest to 1 / P of the rows, the next to 1 / (P - 1) of those left, and
so on, with at least one value in each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svmp.errors import ModelError
from svmp.network.dims.data_columns import Columns
from svmp.network.dims.frames import columns_of
from svmp.network.keywords import known_keywords
from svmp.network.validation import shown
from svmp.parts.sources import InMemory


@known_keywords
def split(columns: Mapping[str, ArrayLike] | Columns, *, by: str, parts: int) -> InMemory:
    """Divide arrays into parts by one of them.

    Parameters
    ----------
    columns
        Arrays of equal length by name.
    by
        The column to divide by: rows with equal values are in the same part.
    parts
        Number of parts; there are fewer if there are not that many values.

    Returns
    -------
    InMemory
        The parts, each a `Columns` with its rows in their order.

    >>> source = split({"user": [3, 1, 3, 2], "rating": [4, 5, 3, 1]}, by="user", parts=2)
    >>> [source.load(part).user.tolist() for part in range(len(source))]
    [[1, 2], [3, 3]]
    """
    table = columns if isinstance(columns, Columns) else Columns(columns, "the table")
    check_count(parts, "parts")
    if not len(table):
        raise ModelError("the table has no rows to divide into parts")
    keys = table.keys(by)
    block = blocks(np.bincount(keys), parts)[keys]
    order = np.argsort(block, kind="stable")
    ends = np.cumsum(np.bincount(block))
    pieces = np.split(order, ends[:-1])
    return InMemory(tuple(table.take(rows, f"part {p}") for p, rows in enumerate(pieces)))


@known_keywords
def frames(frame: Any, *, by: str, parts: int) -> InMemory:
    """Divide one data frame (pandas, Polars, PyArrow) into parts by a column; see `split`.

    Parameters
    ----------
    frame
        The data frame.
    by
        The column to divide by: rows with equal values are in the same part.
    parts
        Number of parts; there are fewer if there are not that many values.

    Returns
    -------
    InMemory
        The parts, each a `Columns`.
    """
    return split(columns_of(frame, "the table"), by=by, parts=parts)


def blocks(counts: NDArray[np.int64], parts: int) -> NDArray[np.int32]:
    """Return the block of each value, given its number of rows; blocks are consecutive from 0.

    >>> blocks(np.array([5, 1, 1, 1, 2]), 2)
    array([0, 1, 1, 1, 1], dtype=int32)
    """
    ends = np.cumsum(counts)
    parts = min(parts, len(counts))
    block = np.zeros(len(counts), np.int32)
    first = 0
    for left in range(parts, 1, -1):  # `left` blocks share the values from `first` on
        before = ends[first] - counts[first]
        share = before + (ends[-1] - before) / left
        last = int(np.searchsorted(ends, share))
        if share - (ends[last] - counts[last]) < ends[last] - share:
            last -= 1  # the block is nearer to its share without this value
        first = min(max(last, first) + 1, len(counts) - left + 1)
        block[first:] += 1
    return block


def check_count(number: Any, name: str) -> None:
    """Raise unless an argument is a positive whole number."""
    if type(number) is not int or number < 1:
        raise ModelError(f"{name} must be a whole number from 1, not {shown(number)}")
