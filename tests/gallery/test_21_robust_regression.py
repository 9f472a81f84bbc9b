"""Robust regression: the fixed point, and the maximum likelihood of Student's t by SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

import svmp


@pytest.fixture(scope="module")
def fitted(script):
    x, y, wrong = script.data()
    return x, y, wrong, svmp.fit(script.model(x, y), svmp.FullVB(), tol=1e-14)


def test_weights_are_at_their_fixed_point(script, fitted):
    x, y, _, fit = fitted
    square = (
        (y - fit.mean("a", corrected=False) - fit.mean("b", corrected=False) * x) ** 2
        + fit.var("a", corrected=False)
        + x**2 * fit.var("b", corrected=False)
    )
    weight = (script.NU + 1) / (script.NU + fit.mean("tau", corrected=False) * square)
    np.testing.assert_allclose(fit.mean("weight", corrected=False), weight, rtol=1e-4)
    assert fit.posteriors["tau"].alpha == pytest.approx(1 + len(y) / 2)
    assert fit.posteriors["tau"].beta == pytest.approx(1 + weight @ square / 2, rel=1e-4)


def test_line_is_that_of_maximum_likelihood(script, fitted):
    x, y, wrong, fit = fitted

    def cost(p):
        return -stats.t(script.NU, p[0] + p[1] * x, np.exp(p[2])).logpdf(y).sum()

    best = optimize.minimize(cost, [0.5, 1.5, 0], method="Nelder-Mead", tol=1e-8).x
    assert fit.mean("a") == pytest.approx(best[0], abs=0.02)
    assert fit.mean("b") == pytest.approx(best[1], abs=0.02)
    assert fit.mean("b") == pytest.approx(script.TRUTH[1], abs=0.1)
    assert fit.mean("weight")[wrong].max() < 0.2
