"""Sales: the fixed point of the Gammas, and new stores of the simulation."""

from __future__ import annotations

import numpy as np
import pytest

import svmp


@pytest.fixture(scope="module")
def fitted(script):
    *rows, region, truth = script.data()
    fit = svmp.fit(script.model(*rows, region), svmp.FullVB(), tol=1e-13)
    return rows, region, truth, fit


def test_gammas_are_at_their_fixed_point(script, fitted):
    (store, week, promotion, sold), region, _, fit = fitted
    mean = {
        name: fit.mean(name, corrected=False) for name in ("store", "week", "region", "promotion")
    }
    factor = np.where(promotion, mean["promotion"], 1)
    q = fit.posteriors["store"]
    expected = np.bincount(store, mean["week"][week] * factor)
    np.testing.assert_allclose(q.alpha, script.SHAPE + np.bincount(store, sold), rtol=1e-12)
    np.testing.assert_allclose(q.beta, mean["region"][region] + expected, rtol=1e-5)
    q = fit.posteriors["week"]
    expected = np.bincount(week, mean["store"][store] * factor)
    np.testing.assert_allclose(q.alpha, 50 + np.bincount(week, sold), rtol=1e-12)
    np.testing.assert_allclose(q.beta, 50 + expected, rtol=1e-5)
    q = fit.posteriors["region"]
    np.testing.assert_allclose(q.alpha, 1 + script.SHAPE * np.bincount(region), rtol=1e-12)
    np.testing.assert_allclose(q.beta, 1 + np.bincount(region, mean["store"]), rtol=1e-5)
    expected = (mean["store"][store] * mean["week"][week])[promotion].sum()
    assert fit.posteriors["promotion"].alpha == pytest.approx(4 + sold[promotion].sum())
    assert fit.posteriors["promotion"].beta == pytest.approx(4 + expected, rel=1e-5)


def test_the_promotion_and_new_stores_are_recovered(script, fitted):
    (store, _, _, sold), _, truth, fit = fitted
    assert fit.mean("promotion") == pytest.approx(script.PROMOTION, rel=0.05)
    weeks = np.bincount(store)
    new, own = weeks <= 3, np.bincount(store, sold) / weeks
    error, raw = (np.mean((g - truth["store"])[new] ** 2) for g in (fit.mean("store"), own))
    assert error < 0.8 * raw
