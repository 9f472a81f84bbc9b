"""Meta-analysis: the exact posterior by quadrature, and the fixed point of q."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

import svmp


def evidence(script, y, se):
    """log p(y), with the effects and mu integrated out, and tau by quadrature."""

    def joint(log_tau):
        tau = np.exp(log_tau)
        covariance = np.diag(se**2 + 1 / tau) + 400
        prior = stats.gamma(script.ALPHA, scale=1 / script.BETA).logpdf(tau)
        return np.exp(stats.multivariate_normal(np.zeros(8), covariance).logpdf(y) + prior) * tau

    return np.log(integrate.quad(joint, np.log(1e-6), np.log(5), limit=200)[0])


def test_means_are_near_the_exact_ones_and_the_bound_is_below_the_evidence(script):
    y, se = script.data()
    fit = svmp.fit(script.model(y, se), svmp.FullVB(), tol=1e-14)
    mean, sd = script.exact(y, se)
    found = np.append(fit.mean("mu", corrected=False), fit.mean("effect", corrected=False))
    assert np.all(np.abs(found - mean) < 0.05 * sd)
    exact = evidence(script, y, se)
    assert exact - 1.5 < fit.bound < exact
    square = (
        (fit.mean("effect", corrected=False) - fit.mean("mu", corrected=False)) ** 2
        + fit.var("effect", corrected=False)
        + fit.var("mu", corrected=False)
    )
    assert fit.posteriors["tau"].alpha == pytest.approx(script.ALPHA + 4)
    assert fit.posteriors["tau"].beta == pytest.approx(script.BETA + square.sum() / 2, rel=1e-5)


def test_grid_agrees_with_a_dense_solve_at_a_known_precision(script, monkeypatch):
    """With a prior that fixes tau, the effects are jointly Normal."""
    y, se = script.data()
    tau = 0.02
    monkeypatch.setattr(script, "ALPHA", 1e6)
    monkeypatch.setattr(script, "BETA", 1e6 / tau)
    precision = np.diag(np.append(0.0025 + 8 * tau, tau + 1 / se**2))
    precision[0, 1:] = precision[1:, 0] = -tau
    covariance = np.linalg.inv(precision)
    mean, sd = script.exact(y, se, points=40_000)
    np.testing.assert_allclose(mean, covariance @ np.append(0, y / se**2), rtol=1e-3)
    np.testing.assert_allclose(sd, np.sqrt(np.diag(covariance)), rtol=1e-3)
