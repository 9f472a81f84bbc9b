"""Finding pairs of keys among rows that are sorted by the first of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.kernels.machine.compiling import CHUNK, claim, shared
from svmp.kernels.machine.sorting import by_key, read_only
from svmp.kernels.machine.threads import share, threads_for
from svmp.network.grid import Ints


def find_pairs(begin: Ints, second: NDArray[np.int32], one: Any, other: Any) -> Ints:
    """Return the last row of each wanted pair of keys, -1 if there is none.

    Rows of key m are `begin[m] : begin[m + 1]`; `second` is their other key. Only rows of the
    wanted first keys are read. Wanted keys that no row can have, such as -1, are allowed.

    >>> find_pairs(np.array([0, 2, 3]), np.array([5, 4, 5], np.int32), [1, 0, 0, 9], [5, 4, 3, 5])
    array([ 2,  1, -1, -1])
    """
    one, other = np.asarray(one, np.int32), np.asarray(other, np.int32)
    out = np.full(len(one), -1, np.int64)
    known = np.flatnonzero((one >= 0) & (one < len(begin) - 1) & (other >= 0))
    if not len(known):
        return out
    one, other = one[known], other[known]
    keys = np.unique(one)
    starts, order = by_key(one, int(keys[-1]) + 1)
    order = np.arange(len(one), dtype=np.int32) if order is None else order
    found = np.empty(len(one), np.int64)
    with threads_for(int((begin[keys + 1] - begin[keys]).sum()) + len(one)):
        rows = read_only(keys), read_only(begin), read_only(second)
        pairs = read_only(starts), read_only(order), read_only(other)
        share(_find, *rows, *pairs, 1 + int(other.max()), found)
    out[known] = found
    return out


@shared
def _find(
    taken: Ints,
    keys: NDArray[np.int32],
    begin: Ints,
    second: NDArray[np.int32],
    starts: Ints,
    order: NDArray[np.int32],
    other: NDArray[np.int32],
    most: int,
    out: Ints,
) -> None:
    """Write the rows of the pairs of some first keys, by a table of the rows of each."""
    row = np.full(most, -1, np.int64)
    first = claim(taken, CHUNK)
    while first < len(keys):
        for m in keys[first : first + CHUNK]:
            for e in range(begin[m], begin[m + 1]):
                if second[e] < most:
                    row[second[e]] = e
            for i in order[starts[m] : starts[m + 1]]:
                out[i] = row[other[i]]
            for e in range(begin[m], begin[m + 1]):
                if second[e] < most:
                    row[second[e]] = -1
        first = claim(taken, CHUNK)
