"""A/B test: the conjugate posterior, its evidence, and P(B > A) by an integral."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import betaln, gammaln

import svmp


def test_posterior_evidence_and_probability_are_exact(script):
    n, k = script.data()
    fit = svmp.fit(script.model(n, k))
    q = fit["p"]
    np.testing.assert_allclose(q.alpha, 1 + k, rtol=1e-12)
    np.testing.assert_allclose(q.beta, 1 + n - k, rtol=1e-12)
    chosen = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    assert fit.bound == pytest.approx((chosen + betaln(1 + k, 1 + n - k)).sum(), rel=1e-10)
    a, b = (stats.beta(1 + k[i], 1 + n[i] - k[i]) for i in range(2))
    better = integrate.quad(lambda p: b.pdf(p) * a.cdf(p), 0, 1, points=(b.mean(),))[0]
    gain = script.compare(fit)
    assert np.mean(gain > 0) == pytest.approx(better, abs=0.005)
    assert np.mean(gain) == pytest.approx(b.mean() - a.mean(), abs=1e-4)
