"""Histories that grow, against lists of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from svmp.recommend.history import History

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=20)


def history_of(rows: list[tuple[int, int, float, float]], users: int, times: bool) -> History:
    rows = sorted(rows, key=lambda row: row[0])
    begin = np.searchsorted([row[0] for row in rows], np.arange(users + 1))
    columns: Any = list(zip(*rows, strict=True)) or [()] * 4
    time = np.array(columns[3], float) if times else None
    return History(begin, np.array(columns[1], np.int32), np.array(columns[2], np.float32), time)


@given(old=PAIRS, new=PAIRS, before=st.booleans(), after=st.booleans())
def test_rows_are_added_behind_earlier_ones_of_a_user(
    old: list[tuple[int, int]], new: list[tuple[int, int]], before: bool, after: bool
) -> None:
    """Of equal pairs the last one stays; users from 5 on are new."""
    old, new = list(dict.fromkeys(old)), [(2 * user, item) for user, item in new]
    first = [(*pair, float(n), 10.0 + n) for n, pair in enumerate(old)]
    more = [(*pair, 100.0 + n, 50.0 + n) for n, pair in enumerate(new)]
    columns: Any = np.array(more).reshape(-1, 4).T
    user, item = columns[0].astype(np.int64), columns[1].astype(np.int64)
    rating, time = columns[2].astype(np.float32), columns[3] if after else None
    found = history_of(first, 5, before).then(9, user, item, rating, time)
    late = max((row[3] for row in first), default=0.0)
    rows = {row[:2]: row for row in first}
    for row in more:
        rows.pop(row[:2], None)
        rows[row[:2]] = row if after else (*row[:3], late)
    wanted = history_of(list(rows.values()), 9, before)
    assert found.begin.tolist() == wanted.begin.tolist()
    assert found.item.tolist() == wanted.item.tolist()
    assert found.rating.tolist() == wanted.rating.tolist()
    assert (found.time is None) == (wanted.time is None)
    if found.time is not None and wanted.time is not None:
        assert found.time.tolist() == wanted.time.tolist()
    assert (found.item.dtype, found.rating.dtype) == (np.int32, np.float32)
