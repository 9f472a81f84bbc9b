"""Sorting by key and gathering rows, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svmp.kernels.machine.sorting import BLOCK, by_key, take
from svmp.kernels.machine.threads import use_threads


@given(st.lists(st.integers(0, 6), max_size=40))
def test_sorting_by_key_is_stable(numbers: list[int]) -> None:
    keys = np.array(numbers, dtype=np.int32)
    pointers, order = by_key(keys, 9)
    assert np.array_equal(np.diff(pointers), np.bincount(keys, minlength=9))
    assert (order is None) == (numbers == sorted(numbers))
    if order is not None:
        assert np.array_equal(order, np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("count", [7, 30_000])
def test_parts_of_the_rows_are_sorted_as_a_whole(count: int, threads: int) -> None:
    keys = np.random.default_rng(count).integers(0, count, 50_001).astype(np.int32)
    with use_threads(threads, tell=False):
        pointers, order = by_key(keys, count)
        in_order = by_key(np.sort(keys), count)
    assert np.array_equal(np.diff(pointers), np.bincount(keys, minlength=count))
    assert np.array_equal(order, np.argsort(keys, kind="stable"))
    assert np.array_equal(in_order[0], pointers)
    assert in_order[1] is None


def test_rows_that_are_in_order_within_each_part_only_are_sorted() -> None:
    keys = np.tile(np.arange(20_000, dtype=np.int32), 2) // 4
    with use_threads(2, tell=False):
        _, order = by_key(keys, 5000)
    assert np.array_equal(order, np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("dtype", [None, np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 3 * BLOCK + 5])
def test_gathered_numbers_are_those_of_numpy(count: int, dtype: type | None) -> None:
    rng = np.random.default_rng(count)
    numbers = rng.integers(-100, 100, 500).astype(np.int8)
    numbers.flags.writeable = False
    places = rng.integers(0, 500, count)
    found = take(numbers, places, dtype)
    assert found.dtype == (numbers.dtype if dtype is None else dtype)
    assert np.array_equal(found, numbers[places])


def test_all_numbers_are_returned_without_a_copy() -> None:
    numbers = np.arange(3.0)
    assert take(numbers, None) is numbers
