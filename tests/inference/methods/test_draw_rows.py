"""Plain draws of rows are those of the compiled loop, whose own tests are in tests/kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svmp.inference.loops import use_loops
from svmp.inference.methods.draw_rows import plain_sample_each, sample_each
from svmp.kernels.machine import streams

pytestmark = pytest.mark.by_size
SEEDS = st.integers(min_value=0, max_value=2**63 - 1)
ELEMENTS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 400), st.integers(0, 450)))


@given(SEEDS, st.integers(1, 10**6), st.integers(0, 20), ELEMENTS)
@settings(max_examples=200, deadline=None)
def test_they_are_the_draws_of_the_loop(
    seed: int, iteration: int, variable: int, drawn: list[tuple[int, int, int]]
) -> None:
    elements, children, take = np.array(drawn, dtype=np.int64).reshape(-1, 3).T.copy()
    take = np.minimum(take, children)
    arguments = seed, iteration, variable, elements, children, take
    np.testing.assert_array_equal(plain_sample_each(*arguments), streams.sample_each(*arguments))


@pytest.mark.parametrize(("children", "take"), [(100_000, 300), (100_000, 30_000), (7, 7)])
def test_one_element_with_many_children(children: int, take: int) -> None:
    one = np.zeros(1, np.int64), np.array([children]), np.array([take])
    expected = streams.sample_each(3, 2, 1, *one)
    np.testing.assert_array_equal(plain_sample_each(3, 2, 1, *one), expected)
    for loops in (False, True):
        with use_loops(loops):
            np.testing.assert_array_equal(sample_each(3, 2, 1, *one), expected)
