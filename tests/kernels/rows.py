"""Random rows with one dot product in their mean, as the loops read them, for tests of loops."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.kernels.multilinear.terms import ALL, OWN, ROW, LoopRows, Mean
from svmp.network.grid import Ints

ITEMS = 7
WEIGHERS = {"one for all": ALL, "by key": OWN, "by row": ROW, "by item": 0}


class Example(NamedTuple):
    """y_e ~ Normal(0.3 + u[key_e] . v[item_e], w_e): rows by key, and y and w of each."""

    rows: LoopRows
    key: Ints
    item: Ints
    y: Array
    w: Array


def example(counts: list[int], weigher: str, dtype: Any = np.float64) -> Example:
    """Return random rows, given their number for each key."""
    rng = np.random.default_rng(len(counts))
    key, total = np.repeat(np.arange(len(counts)), counts), sum(counts)
    item = rng.integers(ITEMS, size=total)
    index = {ALL: 0 * key, OWN: key, ROW: np.arange(total), 0: item}[WEIGHERS[weigher]]
    weight = rng.gamma(2.0, size=max(index.max() + 1, len(counts), ITEMS)).astype(dtype)
    y = rng.normal(size=total).astype(dtype)
    end = np.cumsum(counts)
    lines = item[None].astype(np.int32), y, np.empty((0, total), dtype)
    rows = LoopRows(end - counts, end, *lines, weight, WEIGHERS[weigher], False)
    return Example(rows, key, item, y, weight[index])


def mean_of(packed: Array, padded: int, size: int) -> Mean:
    """Return the mean of those rows, with the moments of v packed, and none of u."""
    integers = [[0, 0], [OWN, 0], [0, 2], [padded], [size], [-1]]
    return Mean(packed, *map(np.array, integers), np.ones(1, packed.dtype), 0.3, False)


def halves(rows: LoopRows) -> list[LoopRows]:
    """Return the first and the second half of the rows of each key."""
    middle = (rows.begin + rows.end) // 2
    return [rows._replace(end=middle), rows._replace(begin=middle)]
