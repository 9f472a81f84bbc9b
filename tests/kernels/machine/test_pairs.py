"""Rows of pairs, against a dict."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.kernels.machine.pairs import find_pairs
from svmp.kernels.machine.threads import CORES, use_threads


@pytest.mark.parametrize("threads", [1, CORES])
@pytest.mark.parametrize(("rows", "wanted"), [(0, 5), (40, 0), (40, 30), (30_000, 20_000)])
def test_pairs_are_found_where_a_dict_finds_them(rows: int, wanted: int, threads: int) -> None:
    rng = np.random.default_rng([rows, wanted])
    size = 5 + int(rows**0.5)
    first = np.sort(rng.integers(0, size, rows))
    second = rng.integers(0, size, rows).astype(np.int32)
    begin = np.searchsorted(first, np.arange(size + 1))
    one, other = rng.integers(-2, size + 3, (2, wanted))
    table = {
        pair: row for row, pair in enumerate(zip(first.tolist(), second.tolist(), strict=True))
    }
    with use_threads(threads, tell=False):
        found = find_pairs(begin, second, one, other)
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    assert found.tolist() == [table.get(pair, -1) for pair in pairs]
