"""Mixtures of Bernoullis and Poissons: updates and bounds in plain code, and recovery."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln, digamma, gammaln

import svmp

from .formulas import (
    assert_never_falls,
    categorical_entropy,
    dirichlet_mean_log,
    dirichlet_term,
    gamma_mean,
    gamma_mean_log,
    gamma_term,
    softmax,
)

SWEEPS = 4


def test_bernoullis_match_the_formulas(script):
    x, _, _ = script.data()
    rng = np.random.default_rng(3)
    alpha, beta = 1 + rng.random((2, 3, 30))
    init = {"weight": {"a": np.full(3, 2.0)}, "p": {"alpha": alpha, "beta": beta}}
    a = np.full(3, 2.0)

    def mean_logs():
        return digamma(alpha) - digamma(alpha + beta), digamma(beta) - digamma(alpha + beta)

    for _ in range(SWEEPS):
        on, off = mean_logs()
        z = softmax(dirichlet_mean_log(a) + x @ on.T + (1 - x) @ off.T)
        a = 1 + z.sum(0)
        alpha, beta = 0.5 + z.T @ x, 0.5 + z.T @ (1 - x)
    on, off = mean_logs()
    bound = (z * (dirichlet_mean_log(a) + x @ on.T + (1 - x) @ off.T)).sum()
    bound += categorical_entropy(z) + dirichlet_term(1, a)
    bound += (betaln(alpha, beta) - betaln(0.5, 0.5)).sum()
    bound += ((0.5 - alpha) * on + (0.5 - beta) * off).sum()

    method = svmp.FullVB(order=["z", "weight", "p"])
    fit = svmp.fit(script.model(x), method, init=init, max_sweeps=SWEEPS, tol=0, kernels=False)
    np.testing.assert_allclose(fit.mean("z"), z, atol=1e-10)
    np.testing.assert_allclose(fit["p"].alpha, alpha, rtol=1e-10)
    np.testing.assert_allclose(fit["p"].beta, beta, rtol=1e-10)
    np.testing.assert_allclose(fit["weight"].a, a, rtol=1e-10)
    assert fit.bound == pytest.approx(bound, rel=1e-11)
    assert_never_falls(fit.trace["bound"])


def test_poissons_match_the_formulas(script):
    _, _, x = script.data()
    rate, a = (np.array([2.0, 3.0, 4.0]), np.array([1.0, 0.5, 0.2])), np.full(3, 2.0)
    init = {"weight": {"a": a}, "rate": dict(zip(("alpha", "beta"), rate, strict=True))}

    def scores():
        own = np.outer(x, gamma_mean_log(rate)) - gamma_mean(rate) - gammaln(x + 1)[:, None]
        return dirichlet_mean_log(a) + own

    for _ in range(SWEEPS):
        z = softmax(scores())
        a = 1 + z.sum(0)
        rate = (1 + z.T @ x, 0.05 + z.sum(0))
    bound = (z * scores()).sum() + categorical_entropy(z)
    bound += dirichlet_term(1, a) + gamma_term(1, 0.05, rate)

    method = svmp.FullVB(order=["z", "weight", "rate"])
    network = script.model(x, "Poisson")
    fit = svmp.fit(network, method, init=init, max_sweeps=SWEEPS, tol=0)
    np.testing.assert_allclose(fit.mean("z"), z, atol=1e-10)
    np.testing.assert_allclose(fit["rate"].alpha, rate[0], rtol=1e-10)
    np.testing.assert_allclose(fit["rate"].beta, rate[1], rtol=1e-10)
    assert fit.bound == pytest.approx(bound, rel=1e-11)
    assert_never_falls(fit.trace["bound"])


def test_letters_are_recovered(script):
    pictures, which, _ = script.data()
    fit = script.best_fit(script.model(pictures))
    assert script.purity(fit, which) > 0.97
    members = fit.mean("z").argmax(1)
    for letter, pixels in enumerate(script.letters()):
        (component,) = {np.bincount(members[which == letter]).argmax()}
        np.testing.assert_array_equal(fit.mean("p")[component] > 0.5, pixels == 1)


def test_rates_are_recovered(script):
    _, _, counts = script.data()
    fit = script.best_fit(script.model(counts, "Poisson"))
    order = np.argsort(fit.mean("rate"))
    np.testing.assert_allclose(fit.mean("rate")[order], script.RATES, rtol=0.1)
    np.testing.assert_allclose(fit.mean("weight")[order], script.SHARES, atol=0.05)
