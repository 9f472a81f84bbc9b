"""Unknown mean and precision: Bishop's section 10.1.3 in plain code, and the exact posterior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

import svmp

from .formulas import (
    assert_never_falls,
    gamma_mean,
    gamma_mean_log,
    gamma_term,
    normal_density,
    normal_entropy,
)

A, B, M, L = 1.0, 1.0, 0.0, 0.5  # the script's prior: Gamma(A, B) and Normal(M, L tau)
START = {"tau": {"alpha": 2.0, "beta": 3.0}}


def by_hand(x, sweeps):
    """Coordinate ascent as in Bishop's (10.26) to (10.30), mu first."""
    tau, n = (2.0, 3.0), len(x)
    for _ in range(sweeps):
        mean = (L * M + n * x.mean()) / (L + n)
        variance = 1 / ((L + n) * gamma_mean(tau))
        squares = ((x - mean) ** 2 + variance).sum() + L * ((mean - M) ** 2 + variance)
        tau = (A + (n + 1) / 2, B + squares / 2)
    own, log_tau = gamma_mean(tau), gamma_mean_log(tau)
    bound = normal_density((x - mean) ** 2 + variance, own, log_tau)
    bound += normal_density((mean - M) ** 2 + variance, L * own, np.log(L) + log_tau)
    return mean, 1 / variance, tau, bound + gamma_term(A, B, tau) + normal_entropy(variance)


@pytest.mark.parametrize("sweeps", [1, 2, 5])
def test_sweeps_agree_with_bishop(script, sweeps):
    x = script.data()
    method = svmp.FullVB(order=["mu", "tau"])
    fit = svmp.fit(script.model(x), method, init=START, max_sweeps=sweeps, tol=0)
    mean, precision, (alpha, beta), bound = by_hand(x, sweeps)
    np.testing.assert_allclose(fit.posteriors["mu"].mu, mean, rtol=1e-12)
    np.testing.assert_allclose(fit.posteriors["mu"].tau, precision, rtol=1e-12)
    np.testing.assert_allclose(fit.posteriors["tau"].alpha, alpha, rtol=1e-12)
    np.testing.assert_allclose(fit.posteriors["tau"].beta, beta, rtol=1e-12)
    assert fit.bound == pytest.approx(bound, abs=1e-11)


def on_grid(low, high, top):
    """A fine grid in mu (linear) and tau (logarithmic), and the area of its cells."""
    mu, log_tau = np.linspace(low, high, 801), np.linspace(np.log(1e-4), np.log(top), 801)
    tau = np.exp(log_tau)[:, None]
    return mu, tau, tau * (mu[1] - mu[0]) * (log_tau[1] - log_tau[0])


def log_normal(x, mean, precision):
    return 0.5 * (np.log(precision / (2 * np.pi)) - precision * (x - mean) ** 2)


def test_exact_evidence_is_the_integral_of_the_joint(script):
    x = script.data()
    _, evidence = script.exact(x)
    mu, tau, area = on_grid(-12, 12, 40)
    joint = log_normal(mu, M, L * tau) + stats.gamma(A, scale=1 / B).logpdf(tau)
    for value in x:
        joint = joint + log_normal(value, mu, tau)
    assert np.log((np.exp(joint) * area).sum()) == pytest.approx(evidence, abs=1e-8)


def test_gap_to_the_evidence_is_the_divergence(script):
    """log p(x) - bound = KL(q || p(. | x)), by integration over both."""
    x = script.data()
    (mu, lam, alpha, beta), evidence = script.exact(x)
    fit = svmp.fit(script.model(x), svmp.FullVB(), tol=1e-13)
    m, t, area = on_grid(mu - 12 * fit.posteriors["mu"].std, mu + 12 * fit.posteriors["mu"].std, 40)
    q_tau = stats.gamma(fit.posteriors["tau"].alpha, scale=1 / fit.posteriors["tau"].beta)
    log_q = log_normal(m, fit.posteriors["mu"].mu, fit.posteriors["mu"].tau) + q_tau.logpdf(t)
    log_p = log_normal(m, mu, lam * t) + stats.gamma(alpha, scale=1 / beta).logpdf(t)
    divergence = (np.exp(log_q) * (log_q - log_p) * area).sum()
    assert fit.bound < evidence
    assert evidence - fit.bound == pytest.approx(divergence, abs=1e-8)
    assert_never_falls(fit.trace["bound"])


def test_independent_prior_stays_below_the_evidence(script):
    """With mu ~ Normal(0, 1/4) independent of tau, the evidence needs quadrature."""
    x = script.data()
    with svmp.Model() as network:
        tau = svmp.Gamma("tau", alpha=A, beta=B)
        mu = svmp.Normal("mu", mu=0, tau=0.25)
        svmp.Normal("x", mu=mu, tau=tau, observed=x)
    fit = svmp.fit(network, svmp.FullVB(), tol=1e-12)

    def evidence_given(tau):
        covariance = np.eye(len(x)) / tau + 4
        return stats.multivariate_normal(np.zeros(len(x)), covariance).pdf(x) * np.exp(-tau)

    evidence = np.log(integrate.quad(evidence_given, 0, 20, epsabs=0, epsrel=1e-10)[0])
    assert fit.bound < evidence < fit.bound + 0.2
