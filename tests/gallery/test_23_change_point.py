"""Change point: every year of the change enumerated, with the rates integrated out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp, softmax

import svmp


def test_q_is_near_the_enumerated_posterior(script):
    counts = script.data()
    fit = svmp.fit(script.model(counts), svmp.FullVB(), tol=1e-12)
    log_p = script.exact(counts)
    p, q = softmax(log_p), fit.mean("change_at")
    assert np.abs(q - p).sum() / 2 < 0.05
    assert logsumexp(log_p) - 0.1 < fit.bound < logsumexp(log_p)
    before = np.append(np.cumsum(q[::-1])[::-1], 0)  # q that the change comes after a year
    rates = fit["rate"]
    np.testing.assert_allclose(rates.alpha[0], 1 + before @ counts, rtol=1e-6)
    np.testing.assert_allclose(rates.beta[0], 1 + before.sum(), rtol=1e-6)
    np.testing.assert_allclose(rates.alpha[1], 1 + (1 - before) @ counts, rtol=1e-6)


def test_enumeration_agrees_with_an_integral(script):
    counts = np.array([4, 2, 5, 1, 0])

    def side(part):
        def joint(rate):
            return stats.poisson(rate).pmf(part).prod() * np.exp(-rate)

        return np.log(integrate.quad(joint, 0, 50)[0])

    expected = [side(counts[:k]) + side(counts[k:]) - np.log(4) for k in range(1, 5)]
    np.testing.assert_allclose(script.exact(counts), expected, rtol=1e-8)


def test_a_sharp_change_is_found(script):
    counts = np.repeat([9, 1], [20, 15])
    fit = svmp.fit(script.model(counts), svmp.FullVB())
    assert fit.mean("change_at").argmax() == 19
    assert fit.mean("change_at")[19] == pytest.approx(1, abs=0.02)
