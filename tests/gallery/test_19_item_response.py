"""Item response: the fixed point of the abilities, and the truth of the simulation."""

from __future__ import annotations

import numpy as np

import svmp


def test_abilities_are_at_their_fixed_point(script):
    right, _ = script.data(pupils=60, questions=15)
    fit = svmp.fit(script.model(right), svmp.FullVB(), tol=1e-13, max_sweeps=3000)
    seen = ~np.isnan(right)
    able, slope, hard = (fit.mean(name, corrected=False) for name in ("able", "slope", "hard"))
    square = {
        name: fit.mean(name, corrected=False) ** 2 + fit.var(name, corrected=False)
        for name in ("able", "slope", "hard")
    }
    second = np.outer(square["able"], square["slope"]) + square["hard"]
    xi = np.sqrt(second - 2 * np.outer(able, slope * hard))
    weight = np.where(seen, np.tanh(xi / 2) / (2 * xi), 0)
    precision = 1 + weight @ square["slope"]
    linear = np.where(seen, right - 0.5, 0) @ slope + weight @ (slope * hard)
    np.testing.assert_allclose(fit.posteriors["able"].tau, precision, rtol=1e-5)
    np.testing.assert_allclose(able, linear / precision, rtol=1e-3, atol=1e-4)


def test_truth_is_recovered(script):
    right, truth = script.data()
    fit = svmp.fit(script.model(right))
    for name, least in (("able", 0.85), ("hard", 0.97), ("slope", 0.7)):
        assert np.corrcoef(fit.mean(name), truth[name])[0, 1] > least
