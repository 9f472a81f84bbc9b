"""Zero inflation: the exact posterior on a grid, and the fixed point of q."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma, logsumexp

import svmp


def test_q_is_near_the_exact_posterior(script):
    count = script.data()
    fit = svmp.fit(script.model(count), svmp.FullVB(), tol=1e-12)
    share, rate, log_p, evidence = script.exact(count)
    p = np.exp(log_p - logsumexp(log_p))
    assert fit.mean("share")[1] == pytest.approx(p.sum(0) @ share, abs=0.005)
    assert fit.mean("rate") == pytest.approx(p.sum(1) @ rate, abs=0.01)
    assert evidence - 0.3 < fit.bound < evidence


def test_q_is_at_its_fixed_point(script):
    count = script.data()
    fit = svmp.fit(script.model(count), svmp.FullVB(), tol=1e-12)
    zero = count == 0
    fished = np.where(zero, 1 - fit.mean("z")[zero][0, 0], 1.0)
    np.testing.assert_allclose(
        fit["share"].a, [1 + (1 - fished).sum(), 1 + fished.sum()], rtol=1e-6
    )
    assert fit["rate"].alpha == pytest.approx(1 + count.sum(), rel=1e-6)
    assert fit["rate"].beta == pytest.approx(0.1 + fished.sum(), rel=1e-6)
    odds = np.exp(np.diff(digamma(fit["share"].a))[0] - fit.mean("rate"))
    assert fished[zero][0] == pytest.approx(odds / (1 + odds), rel=1e-5)
