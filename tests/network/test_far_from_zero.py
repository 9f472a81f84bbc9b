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
