"""Sorting rows by a key, and gathering numbers of rows, in loops that read each row once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.kernels.machine.compiling import claim, shared
from svmp.kernels.machine.threads import share, threads_for
from svmp.network.grid import Ints

BLOCK = 16_384
"""Rows that a thread takes at a time."""


@shared
def count_keys(keys: NDArray[np.int32], ends: Ints) -> bool:
    """Count the rows of each key; return whether the keys are sorted already."""
    before, ordered = keys.dtype.type(0), True
    for key in keys:
        ends[np.uintp(key)] += 1
        ordered &= key >= before
        before = key
    return ordered


@shared
def scatter(keys: NDArray[np.int32], begin: Ints, order: NDArray[np.int32]) -> None:
    """Write the row numbers of each key, from where that key begins."""
    for row in range(len(keys)):
        key = np.uintp(keys[row])
        order[np.uintp(begin[key])] = row
        begin[key] += 1


@shared
def gather(taken: Ints, numbers: NDArray[Any], order: NDArray[Any], out: NDArray[Any]) -> None:
    """Write the numbers at some rows."""
    first = claim(taken, BLOCK)
    while first < len(out):
        for i in range(first, min(first + BLOCK, len(out))):
            out[i] = numbers[np.uintp(order[i])]
        first = claim(taken, BLOCK)


def by_key(keys: NDArray[np.int32], count: int) -> tuple[Ints, NDArray[Any] | None]:
    """Sort rows by key, stably.

    Return where the rows of each key begin, and the order of the rows; None if already sorted.

    >>> pointers, order = by_key(np.array([1, 0, 1], np.int32), 3)
    >>> pointers.tolist(), order.tolist()
    ([0, 1, 3, 3], [1, 0, 2])
    """
    keys, pointers = read_only(keys), np.zeros(count + 1, dtype=np.int64)
    ordered = count_keys(keys, pointers[1:])
    np.cumsum(pointers, out=pointers)
    if ordered:
        return pointers, None
    order = np.empty(len(keys), dtype=np.int32)
    scatter(keys, pointers[:-1].copy(), order)
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
