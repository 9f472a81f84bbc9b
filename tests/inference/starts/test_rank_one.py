"""Rank-one fits of sparse tensors."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.inference.starts.rank_one import rank_ones, rows_of

SIZES = (12, 10, 8)


def tensor(count: int, seed: int = 0, rows: int = 700) -> tuple[list[np.ndarray], np.ndarray]:
    """Return keys, and the values of a sum of rank-one tensors without noise."""
    rng = np.random.default_rng(seed)
    keys = [rng.integers(n, size=rows) for n in SIZES]
    factors = [rng.normal(size=(n, count)) for n in SIZES]
    return keys, rows_of(keys, factors).sum(axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_most_of_a_sum_of_rank_one_tensors_is_explained(seed: int) -> None:
    keys, values = tensor(3, seed)
    found = rank_ones(keys, SIZES, values, 3, np.random.default_rng(seed))
    assert found is not None
    left = values - rows_of(keys, found.factors).sum(axis=1)
    assert np.mean(left**2) < 0.3 * np.mean(values**2)


@pytest.mark.parametrize("unit", [1e-150, 1e-3, 1e4, 1e150])
def test_fits_do_not_depend_on_the_unit_of_the_values(unit: float) -> None:
    keys, values = tensor(2)
    one, other = (
        rank_ones(keys, SIZES, y, 2, np.random.default_rng(1)) for y in (values, unit * values)
    )
    assert one is not None
    assert other is not None
    for axis in range(3):
        scaled = unit ** (1 / 3) * one.factors[axis]
        np.testing.assert_allclose(other.factors[axis], scaled, rtol=1e-8)
        precision = unit ** (-2 / 3) * one.precision[axis]
        np.testing.assert_allclose(other.precision[axis], precision, rtol=1e-7)


def test_precisions_are_those_of_a_regression_on_the_other_factors() -> None:
    keys, values = tensor(2)
    values = values + np.random.default_rng(3).normal(size=len(values))
    found = rank_ones(keys, SIZES, values, 2, np.random.default_rng(1))
    assert found is not None
    left = values - rows_of(keys, found.factors).sum(axis=1)
    for axis, i in ((0, 4), (1, 0), (2, 7)):
        others = [other for other in range(3) if other != axis]
        here = keys[axis] == i
        slopes = np.prod([found.factors[o][keys[o][here]] for o in others], axis=0)
        expected = (slopes**2).sum(axis=0) / np.mean(left**2)
        np.testing.assert_allclose(found.precision[axis][i], expected, rtol=1e-10)


def test_all_factors_of_a_rank_one_tensor_have_the_same_size() -> None:
    keys, values = tensor(1)
    found = rank_ones(keys, SIZES, values, 1, np.random.default_rng(1))
    assert found is not None
    sizes = [np.sqrt(np.mean(f**2)) for f in found.factors]
    np.testing.assert_allclose(sizes, sizes[0], rtol=1e-10)


@pytest.mark.parametrize("value", [0.0, np.inf, 1e200])
def test_values_without_a_fit_have_none(value: float) -> None:
    keys, _ = tensor(1)
    assert rank_ones(keys, SIZES, np.full(700, value), 2, np.random.default_rng(0)) is None


def test_elements_without_rows_are_finite() -> None:
    keys, values = tensor(1)
    keys[0] = np.minimum(keys[0], 5)
    found = rank_ones(keys, SIZES, values, 4, np.random.default_rng(0))
    assert found is not None
    assert all(np.isfinite(a).all() for a in (*found.factors, *found.precision))
    assert not found.factors[0][6:].any()
