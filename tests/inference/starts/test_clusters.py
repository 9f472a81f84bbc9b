"""k-means, beside the optimum that is found by enumeration, and beside exact distances."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from svmp.inference.starts.clusters import centres_of, distances, members, typical_rows


def scatter(values: np.ndarray, label: np.ndarray) -> float:
    """Return the sum of squares around the means of clusters."""
    parts = (values[label == k] for k in np.unique(label))
    return float(sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts))


@pytest.mark.parametrize("seed", range(5))
def test_least_sum_of_squares_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(8, 2))
    labels = (np.array([0, *rest]) for rest in product(range(3), repeat=7))
    least = min(scatter(values, label) for label in labels)
    rows, cluster = members(values, centres_of(values, 3, rng, runs=30))
    assert scatter(values[rows], cluster) == pytest.approx(least)


def test_distances_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    rows, centres = rng.normal(size=(7, 3)), rng.normal(size=(2, 3))
    expected = ((rows[:, None] - centres) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances(rows, centres), expected, atol=1e-12)


def test_equal_rows_fill_every_cluster() -> None:
    rows = np.ones((5, 2))
    cluster = members(rows, centres_of(rows, 3, np.random.default_rng(0)))[1]
    assert set(cluster) == {0, 1, 2}
    assert len(set(typical_rows(rows, 3, np.random.default_rng(0)))) == 3


def test_members_are_limited() -> None:
    rows, cluster = members(np.arange(10.0)[:, None], np.array([[0.0], [9.0]]), most=2)
    np.testing.assert_array_equal(rows, [0, 1, 9, 8])
    np.testing.assert_array_equal(cluster, [0, 0, 1, 1])
