"""Survey: the fixed point of Jaakkola and Jordan's bound, and the simulated population."""

from __future__ import annotations

import numpy as np
import pytest

import svmp


@pytest.fixture(scope="module")
def survey(script):
    cells, people, share, cell, yes = script.data()
    fit = svmp.fit(script.model(cells, cell, yes), tol=1e-10)
    return cells, people, share, cell, yes, fit


def test_effects_are_at_their_fixed_point(script, survey):
    """With xi^2 = E[z^2], each answer adds the precision tanh(xi / 2) / (2 xi) of its logit."""
    cells, _, _, cell, yes, fit = survey
    keys = {name: key[cell] for name, key in zip(script.SIZES, cells, strict=True)}
    mean = fit.mean("centre", corrected=False) + sum(
        fit.mean(name, corrected=False)[key] for name, key in keys.items()
    )
    variance = fit.var("centre", corrected=False) + sum(
        fit.var(name, corrected=False)[key] for name, key in keys.items()
    )
    xi = np.sqrt(mean**2 + variance)
    weight = np.tanh(xi / 2) / (2 * xi)
    for name, key in keys.items():
        size = script.SIZES[name]
        precision = fit.mean(f"tau_{name}", corrected=False) + np.bincount(key, weight, size)
        rest = yes - 0.5 - weight * (mean - fit.mean(name, corrected=False)[key])
        np.testing.assert_allclose(fit.posteriors[name].tau, precision, rtol=1e-5)
        np.testing.assert_allclose(
            fit.mean(name, corrected=False),
            np.bincount(key, rest, size) / precision,
            rtol=1e-3,
            atol=1e-5,
        )
        square = np.sum(fit.mean(name, corrected=False) ** 2 + fit.var(name, corrected=False))
        assert fit.posteriors[f"tau_{name}"].alpha == pytest.approx(1 + size / 2)
        assert fit.posteriors[f"tau_{name}"].beta == pytest.approx(0.1 + square / 2, rel=1e-3)


def test_weighted_shares_are_near_those_of_the_population(script, survey):
    cells, people, share, _, yes, fit = survey
    found = script.shares(fit, cells)
    truth = share @ people / people.sum()
    assert abs(yes.mean() - truth) > 0.1
    assert found.mean(0) @ people / people.sum() == pytest.approx(truth, abs=0.03)
    exact = script.weighted(share, people, cells[1])
    by_region = script.weighted(found.mean(0), people, cells[1])
    assert np.abs(by_region - exact).max() < 0.12
