"""Sorting by key and gathering rows, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svmp.kernels.machine.sorting import BLOCK, by_key, take


@given(st.lists(st.integers(0, 6), max_size=40))
def test_sorting_by_key_is_stable(numbers: list[int]) -> None:
    keys = np.array(numbers, dtype=np.int32)
    pointers, order = by_key(keys, 9)
    assert np.array_equal(np.diff(pointers), np.bincount(keys, minlength=9))
    assert (order is None) == (numbers == sorted(numbers))
    if order is not None:
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
