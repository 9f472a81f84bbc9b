"""Splits use every row once, and hold out the right rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svmp.errors import RatingsError
from svmp.ratings import Ratings
from svmp.recommend import split
from svmp.recommend.split import Split

WAYS: dict[str, Callable[[Ratings], Split]] = {
    "random": lambda r: split.random(r, 0.2, seed=1),
    "by_time": lambda r: split.by_time(r, 0.2),
    "last_out": lambda r: split.last_out(r, 2),
    "cold_users": lambda r: split.cold_users(r, 0.2, seed=1),
    "cold_items": lambda r: split.cold_items(r, 0.2, seed=1),
}


def table(seed: int, users: int = 20, items: int = 15, count: int = 150) -> Ratings:
    rng = np.random.default_rng(seed)
    pair = rng.choice(users * items, count, replace=False)
    columns = (pair // items).astype(np.int32), (pair % items).astype(np.int32)
    rating, time = rng.integers(1, 6, count).astype(np.float32), rng.integers(0, 40, count)
    ids = np.arange(users), np.arange(items)
    return Ratings(*columns, rating, *ids, time.astype(np.float64))


def rows(ratings: Ratings) -> set[tuple[float, ...]]:
    assert ratings.time is not None
    columns = ratings.user, ratings.item, ratings.rating, ratings.time
    return set(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_splits_partition_the_rows_and_depend_on_the_seed(way: str) -> None:
    ratings = table(0)
    train, test = WAYS[way](ratings)
    assert len(train) + len(test) == len(ratings)
    assert rows(train) | rows(test) == rows(ratings)
    assert (train.users, train.items) == (test.users, test.items) == (ratings.users, ratings.items)
    assert rows(WAYS[way](ratings).test) == rows(test)


def test_random_split_holds_out_the_share() -> None:
    assert len(split.random(table(0), 0.1).test) == 15
    assert rows(split.random(table(0), 0.1, 1).test) != rows(split.random(table(0), 0.1, 2).test)


def test_time_split_holds_out_the_latest() -> None:
    train, test = split.by_time(table(1), 0.3)
    assert train.time is not None
    assert test.time is not None
    assert train.time.max() <= test.time.min()


@given(st.integers(0, 50), st.integers(1, 4))
def test_last_out_equals_a_loop(seed: int, n: int) -> None:
    ratings = table(seed)
    assert ratings.time is not None
    wanted = set()
    for user in range(ratings.users):
        own = np.flatnonzero(ratings.user == user)
        if len(own) > n:
            wanted |= set(sorted(own.tolist(), key=lambda r: (ratings.time[r], r))[-n:])  # type: ignore[index]
    assert rows(split.last_out(ratings, n).test) == rows(ratings.take(sorted(wanted)))


def test_cold_users_and_items_have_no_row_in_training() -> None:
    train, test = split.cold_users(table(2), 0.3)
    assert not set(train.user) & set(test.user)
    assert len(set(test.user)) == 6
    train, test = split.cold_items(table(2), 0.2)
    assert not set(train.item) & set(test.item)
    assert len(set(test.item)) == 3


def test_invalid_splits_are_refused() -> None:
    without = Ratings.of_keys([0, 1], [0, 0], [3, 4], 2, 1)
    with pytest.raises(RatingsError, match="with times"):
        split.by_time(without)
    with pytest.raises(RatingsError, match="between 0 and 1"):
        split.random(without, 1.5)
    with pytest.raises(RatingsError, match="nothing to predict"):
        split.last_out(without)
    with pytest.raises(RatingsError, match="at least two to split"):
        split.cold_items(without)
    with pytest.raises(RatingsError, match="at least 1"):
        split.last_out(without, 0)
