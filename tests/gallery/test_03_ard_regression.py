"""ARD regression: updates and bound in plain code; the exact Gaussian for fixed precisions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats

import svmp

from .formulas import (
    assert_never_falls,
    gamma_mean,
    gamma_mean_log,
    gamma_term,
    mvnormal_entropy,
    normal_density,
    normal_entropy,
)

METHOD = svmp.FullVB(order=["w", "alpha", "tau"])
GAMMAS = {"alpha": {"alpha": 1.0, "beta": 1.0}, "tau": {"alpha": 2.0, "beta": 1.0}}


def start(features):
    mean = np.random.default_rng(0).normal(size=features)
    return {**GAMMAS, "w": {"mu": mean, "tau": np.ones(features)}}


def by_hand(x, y, w, sweeps):
    """One weight after the other, then the precisions; and the bound, term by term."""
    n, features = x.shape
    mean, variance = w.copy(), np.ones(features)
    alpha, tau = (np.ones(features), np.ones(features)), (2.0, 1.0)
    for _ in range(sweeps):
        for j in range(features):
            variance[j] = 1 / (gamma_mean(alpha)[j] + gamma_mean(tau) * (x[:, j] ** 2).sum())
            rest = y - x @ mean + x[:, j] * mean[j]
            mean[j] = variance[j] * gamma_mean(tau) * (x[:, j] * rest).sum()
        alpha = (np.full(features, 0.51), 0.01 + (mean**2 + variance) / 2)
        squares = (y - x @ mean) ** 2 + x**2 @ variance
        tau = (0.01 + n / 2, 0.01 + squares.sum() / 2)
    bound = normal_density(squares, gamma_mean(tau), gamma_mean_log(tau))
    bound += normal_density(mean**2 + variance, gamma_mean(alpha), gamma_mean_log(alpha))
    bound += gamma_term(0.01, 0.01, alpha) + gamma_term(0.01, 0.01, tau)
    return mean, variance, alpha, tau, bound + normal_entropy(variance)


def by_hand_vector(x, y, sweeps):
    """The same with one covariance for all weights."""
    n, features = x.shape
    alpha, tau = (np.ones(features), np.ones(features)), (2.0, 1.0)
    for _ in range(sweeps):
        covariance = np.linalg.inv(np.diag(gamma_mean(alpha)) + gamma_mean(tau) * x.T @ x)
        mean = gamma_mean(tau) * covariance @ x.T @ y
        alpha = (np.full(features, 0.51), 0.01 + (mean**2 + np.diag(covariance)) / 2)
        squares = (y - x @ mean) ** 2 + np.einsum("ni,ij,nj->n", x, covariance, x)
        tau = (0.01 + n / 2, 0.01 + squares.sum() / 2)
    second = mean**2 + np.diag(covariance)
    bound = normal_density(squares, gamma_mean(tau), gamma_mean_log(tau))
    bound += normal_density(second, gamma_mean(alpha), gamma_mean_log(alpha))
    bound += gamma_term(0.01, 0.01, alpha) + gamma_term(0.01, 0.01, tau)
    return mean, covariance, alpha, tau, bound + mvnormal_entropy(covariance)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.coo_matrix])
def test_factorised_weights(script, kind):
    x, y = script.data()
    init = start(x.shape[1])
    mean, variance, alpha, tau, bound = by_hand(x, y, init["w"]["mu"], sweeps=4)
    fit = svmp.fit(script.model(kind(x), y), METHOD, init=init, max_sweeps=4, tol=0)
    np.testing.assert_allclose(fit.mean("w"), mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(fit.var("w"), variance, rtol=1e-10)
    np.testing.assert_allclose(fit["alpha"].beta, alpha[1], rtol=1e-10)
    np.testing.assert_allclose(fit["tau"].beta, tau[1], rtol=1e-10)
    assert fit.bound == pytest.approx(bound, rel=1e-11)


def test_vector_of_weights(script):
    x, y = script.data()
    mean, covariance, alpha, tau, bound = by_hand_vector(x, y, 4)
    network = script.model(x, y, vector=True)
    fit = svmp.fit(network, METHOD, init=GAMMAS, max_sweeps=4, tol=0)
    np.testing.assert_allclose(fit.mean("w"), mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.linalg.inv(fit["w"].tau), covariance, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fit["alpha"].beta, alpha[1], rtol=1e-9)
    np.testing.assert_allclose(fit["tau"].beta, tau[1], rtol=1e-9)
    assert fit.bound == pytest.approx(bound, rel=1e-10)


def test_vector_reaches_the_higher_bound(script):
    """The factorised q is in the family of the vector's q."""
    x, y = script.data()
    ones = svmp.fit(script.model(x, y), svmp.FullVB(), tol=1e-10)
    vector = svmp.fit(script.model(x, y, vector=True), svmp.FullVB(), tol=1e-10)
    assert_never_falls(ones.trace["bound"])
    assert_never_falls(vector.trace["bound"])
    assert vector.bound > ones.bound


def test_fixed_precisions_give_the_exact_gaussian(script):
    x, y = script.data()
    features = x.shape[1]
    alpha, tau = np.linspace(0.5, 3, features), 4.0
    with svmp.Model(coords={"feature": features}) as vector:
        w = svmp.MvNormal("w", mu=0, tau=np.diag(alpha), dims="feature")
        svmp.Normal("y", mu=svmp.dot(x, w), tau=tau, observed=y)
    with svmp.Model(coords={"feature": features}) as ones:
        w = svmp.Normal("w", mu=0, tau=alpha, dims="feature")
        svmp.Normal("y", mu=svmp.dot(x, w), tau=tau, observed=y)
    precision = np.diag(alpha) + tau * x.T @ x
    mean = np.linalg.solve(precision, tau * x.T @ y)
    covariance = np.eye(len(y)) / tau + x / alpha @ x.T
    evidence = stats.multivariate_normal(np.zeros(len(y)), covariance).logpdf(y)

    exact = svmp.fit(vector, svmp.FullVB())
    np.testing.assert_allclose(exact.mean("w", corrected=False), mean, rtol=1e-9)
    np.testing.assert_allclose(exact.posteriors["w"].tau, precision, rtol=1e-10, atol=1e-10)
    assert exact.bound == pytest.approx(evidence, rel=1e-11)

    # A mean-field Gaussian has the exact mean, and the diagonal of the exact precision matrix.
    factorised = svmp.fit(ones, svmp.FullVB(), tol=1e-15, max_sweeps=2000)
    np.testing.assert_allclose(factorised.mean("w", corrected=False), mean, atol=1e-6)
    np.testing.assert_allclose(factorised.posteriors["w"].tau, np.diag(precision), rtol=1e-12)
    gap = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
    assert factorised.bound == pytest.approx(evidence - gap, rel=1e-10)


def test_relevant_features_are_found(script):
    x, y = script.data()
    fit = svmp.fit(script.model(x, y), svmp.FullVB())
    strength = fit.mean("alpha")
    assert strength[script.WEIGHTS != 0].max() < strength[script.WEIGHTS == 0].min()
