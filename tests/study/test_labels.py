"""Labels of lines: apart from each other, and as near to the ends of lines as that allows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize

from svmp.study.labels import groups, spread


@pytest.mark.parametrize("seed", range(4))
def test_heights_solve_the_quadratic_programme(seed):
    """The least squares distance under the constraint, by a general solver."""
    heights = np.random.default_rng(seed).uniform(0, 30, 5)
    found, order, gap = spread(heights.tolist(), 8.0), np.argsort(heights), 8.0
    apart = {"type": "ineq", "fun": lambda x: np.diff(x[order]) - gap}
    best = optimize.minimize(
        lambda x: np.sum((x - heights) ** 2), heights, constraints=[apart], tol=1e-12
    )
    np.testing.assert_allclose(found, best.x, atol=1e-4)


def test_heights_that_are_apart_stay():
    assert spread([30.0, 0.0, 10.0], gap=9).tolist() == [30.0, 0.0, 10.0]


def test_groups_hold_every_place_once():
    places = np.random.default_rng(1).uniform(0, 100, 20).tolist()
    found = groups(places, within=6)
    assert sorted(i for group in found for i in group) == list(range(20))
    for one, other in itertools.pairwise(found):
        assert places[other[0]] - places[one[-1]] >= 6
