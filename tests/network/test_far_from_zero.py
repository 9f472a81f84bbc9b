"""Data far from 0 are fitted without loss of digits, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import svmp

NOISE = np.random.default_rng(3).normal(size=300)


def shifted(by: float) -> svmp.Model:
    with svmp.Model() as model:
        a = svmp.Normal("a", mu=by, tau=0.01)
        t = svmp.Gamma("t", alpha=1, beta=1)
        svmp.Normal("y", mu=a, tau=t, observed=by + NOISE)
    return model


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("by", [1e2, 1e3, 1e4])
def test_shifting_the_data_shifts_only_the_mean(by: float, kernels: bool) -> None:
    here = svmp.fit(shifted(0.0), svmp.FullVB(), kernels=kernels)
    there = svmp.fit(shifted(by), svmp.FullVB(), kernels=kernels)
    rounding = 1e-15 * by**2 * len(NOISE)
    assert abs(there.bound - here.bound) < 1e-5 + rounding
    assert there["t"].beta == pytest.approx(here["t"].beta, rel=1e-6)
    assert there.mean("a") - by == pytest.approx(here.mean("a"), abs=1e-8)
    assert np.diff(there.trace["bound"]).min() > -1e-6 - rounding


@pytest.mark.parametrize("by", [1e7, -1e8])
def test_data_too_far_from_zero_are_refused(by: float) -> None:
    with pytest.raises(svmp.ModelError, match=r"the values of 'y' lie more than .* subtract"):
        shifted(by)


def test_constant_columns_are_accepted() -> None:
    with svmp.Model() as model:
        svmp.Normal("y", mu=svmp.Normal("a", mu=0, tau=1), tau=1, observed=[1e9, 1e9])
    assert svmp.fit(model, svmp.FullVB()).mean("a") == pytest.approx(2e9 / 3)


def test_bound_of_large_counts_keeps_its_digits() -> None:
    """E[log p(y)] without cancellation, by the series of log Gamma(y) and digamma(a) for large y.

    The sum of y E[log rate] alone is 4e13, of which a float64 keeps two decimals.
    """
    rng = np.random.default_rng(5)
    group = np.arange(20_000) % 4000
    y = rng.poisson(1e8 * rng.uniform(0.5, 2, 4000)[group]).astype(float)
    with svmp.Model(coords={"group": 4000}) as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1, dims="group")
        svmp.Poisson("y", mu=rate[group], observed=y)
    a, b = 2 + np.bincount(group, y), 1 + np.bincount(group)
    apart = (a / b)[group] - y
    logs = np.log1p(apart / y) - (1 / (2 * a) + 1 / (12 * a**2))[group]
    expected = y * logs - apart - np.log(2 * np.pi * y) / 2 - 1 / (12 * y)
    found = svmp.fit(model, svmp.FullVB(), max_sweeps=3).bound_terms["y"]
    assert found == pytest.approx(expected.sum(), abs=1.5e-3)
