"""Sums by part: totals follow the parts that are replaced."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.inference.methods.sums_by_part import SumsByPart

PLACES = [None, np.array([0, 2, 3]), np.array([], dtype=np.int64), np.array([1])]


def spread(part: int, sums: np.ndarray) -> np.ndarray:
    """The sums of a part with zeros for the rows that it does not have."""
    whole = np.zeros((4, 2))
    place = PLACES[part]
    whole[slice(None) if place is None else place] = sums
    return whole


@pytest.fixture
def drawn() -> tuple[SumsByPart, dict[int, np.ndarray]]:
    """Parts that were replaced many times, and their last sums."""
    rng, sums = np.random.default_rng(0), SumsByPart.empty((4, 2), PLACES)
    last = {}
    for part in rng.integers(0, 4, 50):
        last[int(part)] = rng.normal(size=sums.shape(part))
        sums.replace(int(part), last[int(part)].copy())
    return sums, last


def test_total_is_the_sum_of_the_last_sums_of_all_parts(drawn):
    sums, last = drawn
    expected = sum(spread(part, array) for part, array in last.items())
    assert sums.total == pytest.approx(expected, abs=1e-12)
    assert sums.seen == [0, 1, 2, 3]


def test_total_that_is_added_up_has_the_same_bits_for_every_history(drawn):
    sums, last = drawn
    other = SumsByPart.empty((4, 2), PLACES)
    for part in (3, 1, 0, 2):
        other.replace(part, last[part])
    for each in (sums, other):
        each.add_up()
    assert np.array_equal(sums.total, other.total)


def test_rows_of_a_part_are_replaced_alone():
    sums = SumsByPart.empty((4, 2), PLACES)
    sums.replace(0, np.ones((4, 2)))
    sums.replace(1, np.full((2, 2), 5.0), np.array([0, 2]))
    sums.replace(1, np.full((1, 2), 7.0), np.array([2]))
    assert sums.total[:, 0].tolist() == [6, 1, 1, 8]
    assert sums.parts[1][:, 0].tolist() == [5, 0, 7]


def test_parts_that_were_not_read_are_missing():
    sums = SumsByPart.empty((4, 2), PLACES)
    sums.replace(1, np.ones((3, 2)))
    assert sums.seen == [1]
    sums.add_up()
    assert sums.total[:, 0].tolist() == [1, 0, 1, 1]
