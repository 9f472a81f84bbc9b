"""Sorting rows by a key, and gathering numbers of rows, in loops that read each row once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.kernels.machine.compiling import claim, shared
from svmp.kernels.machine.threads import share, threads_for, threads_in_use
from svmp.network.grid import Ints

BLOCK = 16_384
"""Rows that a thread takes at a time."""


@shared
def count_keys(
    taken: Ints, keys: NDArray[np.int32], size: int, counts: Ints, ordered: NDArray[np.bool_]
) -> None:
    """Count the rows of each key in parts of `size` rows; note which parts are sorted already."""
    part = claim(taken, 1)
    while part < len(counts):
        first, line = part * size, counts[part]
        before, rising = keys.dtype.type(0), True
        if 0 < first < len(keys):
            before = keys[first - 1]
        for row in range(first, min(first + size, len(keys))):
            key = keys[row]
            line[np.uintp(key)] += 1
            rising &= key >= before
            before = key
        ordered[part] = rising
        part = claim(taken, 1)


@shared
def scatter(
    taken: Ints, keys: NDArray[np.int32], size: int, begin: Ints, order: NDArray[np.int32]
) -> None:
    """Write the row numbers of each key, from where that key begins for a part of the rows."""
    part = claim(taken, 1)
    while part < len(begin):
        first, line = part * size, begin[part]
        for row in range(first, min(first + size, len(keys))):
            key = np.uintp(keys[row])
            order[np.uintp(line[key])] = row
            line[key] += 1
        part = claim(taken, 1)


@shared
def gather(taken: Ints, numbers: NDArray[Any], order: NDArray[Any], out: NDArray[Any]) -> None:
    """Write the numbers at some rows."""
    first = claim(taken, BLOCK)
    while first < len(out):
        for i in range(first, min(first + BLOCK, len(out))):
            out[i] = numbers[np.uintp(order[i])]
        first = claim(taken, BLOCK)


def by_key(keys: NDArray[np.int32], count: int) -> tuple[Ints, NDArray[Any] | None]:
    """Sort rows by key, stably, by counting: each thread counts and writes a part of the rows.

    Return where the rows of each key begin, and the order of the rows; None if already sorted.
    Neither depends on the number of parts.

    >>> pointers, order = by_key(np.array([1, 0, 1], np.int32), 3)
    >>> pointers.tolist(), order.tolist()
    ([0, 1, 3, 3], [1, 0, 2])
    """
    keys = read_only(keys)
    with threads_for(len(keys)):
        parts = threads_in_use() if 2 * count < len(keys) else 1
        size = -(-len(keys) // parts)
        counts, ordered = np.zeros((parts, count), np.int64), np.ones(parts, bool)
        share(count_keys, keys, size, counts, ordered)
        pointers = np.zeros(count + 1, np.int64)
        np.cumsum(counts.sum(axis=0), out=pointers[1:])
        if ordered.all():
            return pointers, None
        begin = np.cumsum(counts, axis=0) - counts + pointers[:-1]
        order = np.empty(len(keys), dtype=np.int32)
        share(scatter, keys, size, begin, order)
    return pointers, order


def take(numbers: NDArray[Any], order: NDArray[Any] | None, dtype: Any = None) -> NDArray[Any]:
    """Return the numbers at some rows, or all numbers if `order` is None, in a given type.

    >>> take(np.array([0.5, 2.5, 4.5]), np.array([2, 0]))
    array([4.5, 0.5])
    """
    dtype = numbers.dtype if dtype is None else dtype
    if order is None:
        return numbers.astype(dtype, copy=False)
    out = np.empty(len(order), dtype=dtype)
    with threads_for(len(order)):
        share(gather, read_only(numbers), read_only(order), out)
    return out


def read_only(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only contiguous view, so that loops are compiled for one kind of array."""
    view = np.ascontiguousarray(numbers).view()
    view.flags.writeable = False
    return view
