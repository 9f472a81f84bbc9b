"""Mixture of regressions: weighted least squares at the fixed point, and the lines of the draw."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma

import svmp

from .formulas import softmax


@pytest.fixture(scope="module")
def fitted(script):
    x, y, kind = script.data()
    network = script.model(x, y)
    begin = script.best(x, y).posteriors
    return x, y, kind, svmp.fit(network, svmp.FullVB(), init=begin, tol=1e-14)


def test_lines_are_ridge_regressions_with_the_probabilities_as_weights(script, fitted):
    x, y, _, fit = fitted
    z, design, tau = fit.mean("z"), script.design(x), fit["tau"]
    scores = digamma(fit["share"].a) - digamma(fit["share"].a.sum())
    scores = np.tile(scores, (len(x), 1))
    for k in range(2):
        weighted = design * z[:, [k]]
        precision = 0.1 * np.eye(2) + tau.mean[k] * weighted.T @ design
        mean = np.linalg.solve(precision, tau.mean[k] * weighted.T @ y)
        np.testing.assert_allclose(fit.mean("w")[k], mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(fit["w"].tau[k], precision, rtol=1e-5)
        spread = np.einsum("ni,ij,nj->n", design, np.linalg.inv(precision), design)
        square = (y - design @ mean) ** 2 + spread
        assert tau.alpha[k] == pytest.approx(1 + z[:, k].sum() / 2, rel=1e-5)
        assert tau.beta[k] == pytest.approx(0.1 + z[:, k] @ square / 2, rel=1e-5)
        scores[:, k] += 0.5 * (digamma(tau.alpha[k]) - np.log(tau.beta[k]) - tau.mean[k] * square)
    np.testing.assert_allclose(z, softmax(scores), atol=1e-5)


def test_lines_and_kinds_are_recovered(script, fitted):
    _, _, kind, fit = fitted
    order = np.argsort(-fit.mean("share"))
    np.testing.assert_allclose(fit.mean("w")[order], script.LINES, atol=0.12)
    assert np.mean(np.argsort(order)[fit.mean("z").argmax(1)] == kind) > 0.93
