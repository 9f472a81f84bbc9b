"""Disease mapping: the exact posterior, in which each area is negative binomial given beta."""

from __future__ import annotations

import numpy as np
import pytest

import svmp


def test_q_is_near_the_exact_posterior(script):
    cases, expected, risk = script.data()
    fit = svmp.fit(script.model(cases, expected), svmp.FullVB(), tol=1e-14)
    mean, sd, evidence = script.exact(cases, expected)
    np.testing.assert_allclose(fit.mean("risk", corrected=False), mean, rtol=5e-3)
    np.testing.assert_allclose(fit.posteriors["risk"].std, sd, rtol=0.03)
    assert evidence - 1 < fit.bound < evidence
    q = fit.posteriors["risk"]
    np.testing.assert_allclose(q.alpha, script.ALPHA + cases, rtol=1e-12)
    np.testing.assert_allclose(q.beta, fit.mean("beta", corrected=False) + expected, rtol=1e-6)
    assert fit.posteriors["beta"].alpha == pytest.approx(1 + script.ALPHA * len(cases))
    assert fit.posteriors["beta"].beta == pytest.approx(1 + q.mean.sum(), rel=1e-6)
    raw = np.mean((cases / expected - risk) ** 2)
    assert np.mean((q.mean - risk) ** 2) < raw / 3
