"""Invalid algorithms and policies are refused; methods can be reused."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.datasets import netflix_shaped
from svmp.study.netflix import matrix_factorization


@pytest.fixture(scope="module")
def model() -> svmp.Model:
    return matrix_factorization(netflix_shaped(0.003), factors=2)


@pytest.mark.parametrize(
    "rule",
    [lambda n: 0 * n, lambda n: -1, lambda n: 1.5, lambda n: "two", lambda n: np.ones(3, int)],
)
def test_function_for_c_must_return_whole_numbers(model, rule):
    with pytest.raises(svmp.ModelError, match="C must give each element of 'u' a whole number"):
        svmp.fit(model, svmp.Children(rule), max_sweeps=1)


@pytest.mark.parametrize(
    "steps",
    [
        lambda context: -1.0,
        lambda context: np.nan,
        lambda context: None,
        lambda context: 0.0,
        lambda context: "x",
    ],
)
def test_steps_must_be_positive_numbers(model, steps):
    with pytest.raises(svmp.ModelError, match="the steps for 'u'"):
        svmp.fit(model, svmp.Children(2), steps=steps, max_sweeps=1)


def test_growing_can_be_reused_with_another_seed_and_model(model):
    growing = svmp.Growing(0.1)
    svmp.fit(model, growing, seed=0, max_sweeps=0.5)
    again = svmp.fit(model, growing, seed=1, max_sweeps=0.5)
    fresh = svmp.fit(model, svmp.Growing(0.1), seed=1, max_sweeps=0.5)
    assert np.array_equal(again["u"].natural, fresh["u"].natural)
    small = matrix_factorization(netflix_shaped(0.001), factors=2)
    again, fresh = (svmp.fit(small, g, max_sweeps=0.5) for g in (growing, svmp.Growing(0.1)))
    assert np.array_equal(again["u"].natural, fresh["u"].natural)


def test_array_on_the_right_of_a_product_is_refused():
    with svmp.Model(coords={"f": 2}):
        w = svmp.Normal("w", dims="f")
        with pytest.raises(svmp.ModelError, match="left of @"):
            w @ np.eye(2)
