"""Factor analysis with gaps: updates in plain code, exact results for known loadings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

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

ORDER = ["m", "w", "x", "alpha", "tau"]
KINDS = ["PCA", "factor analysis"]


@pytest.fixture(scope="module")
def readings(script):
    y, _ = script.data()
    return y[:40]


def begin(script, y):
    start = script.start(y)
    one = np.eye(script.FACTORS)
    return {
        "m": {"mu": start["m"], "tau": 1.0},
        "w": {"mu": start["w"], "tau": 4.0},
        "x": {"mu": start["x"], "tau": 2 * one},
        "alpha": {"alpha": 1.0, "beta": 1.0},
        "tau": {"alpha": 2.0, "beta": 1.0},
    }


def by_hand(y, init, kind, sweeps):
    there = ~np.isnan(y)
    y = np.where(there, y, 0)
    sensors, factors = init["w"]["mu"].shape
    w, w_var = init["w"]["mu"].copy(), np.full((sensors, factors), 0.25)
    x, x_cov = (
        init["x"]["mu"].copy(),
        np.broadcast_to(np.eye(factors) / 2, (len(y),) + (factors,) * 2),
    )
    alpha = (np.ones(factors), np.ones(factors))
    tau = (np.full(sensors, 2.0), np.ones(sensors))
    for _ in range(sweeps):
        t = gamma_mean(tau)
        m_var = 1 / (0.01 + t * there.sum(0))
        m = m_var * t * (there * (y - x @ w.T)).sum(0)
        second = np.einsum("ti,tj->tij", x, x) + x_cov
        for k in range(factors):
            w_var[:, k] = 1 / (gamma_mean(alpha)[k] + t * (there.T @ second[:, k, k]))
            cross = np.einsum("ts,tj,sj->s", there, second[:, k], w)
            cross -= (there.T @ second[:, k, k]) * w[:, k]
            w[:, k] = w_var[:, k] * t * (there.T * (y - m).T @ x[:, k] - cross)
        square = np.einsum("si,sj->sij", w, w) + np.einsum("si,ij->sij", w_var, np.eye(factors))
        x_cov = np.linalg.inv(np.eye(factors) + np.einsum("ts,s,sij->tij", there, t, square))
        x = np.einsum("tij,ts,s,sj->ti", x_cov, there * (y - m), t, w)
        second = np.einsum("ti,tj->tij", x, x) + x_cov
        alpha = (np.full(factors, 1 + sensors / 2), 0.1 + (w**2 + w_var).sum(0) / 2)
        error = (y - m - x @ w.T) ** 2 + m_var + np.einsum("tij,sij->ts", second, square)
        error = there * (error - (x @ w.T) ** 2)
        count, total = there.sum(0), error.sum(0)
        if kind == "PCA":  # one precision for all sensors
            count, total = (np.full(sensors, v.sum()) for v in (count, total))
        tau = (1 + count / 2, 0.1 + total / 2)
    own, log_tau = gamma_mean(tau), gamma_mean_log(tau)
    bound = np.sum(there * 0.5 * (log_tau - np.log(2 * np.pi)) - 0.5 * own * error)
    bound += normal_density(m**2 + m_var, 0.01) + normal_entropy(m_var)
    bound += normal_density(w**2 + w_var, gamma_mean(alpha), gamma_mean_log(alpha))
    bound += normal_density(np.einsum("tii->ti", second), 1.0)
    bound += normal_entropy(w_var) + mvnormal_entropy(x_cov)
    shared = tuple(part[:1] for part in tau) if kind == "PCA" else tau
    bound += gamma_term(1, 0.1, alpha) + gamma_term(1, 0.1, shared)
    return m, w, x, alpha, tau, bound


@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_and_bound_match_the_formulas(script, readings, kind):
    init = begin(script, readings)
    m, w, x, alpha, tau, bound = by_hand(readings, init, kind, sweeps=3)
    network = script.model(readings, kind)
    fit = svmp.fit(network, svmp.FullVB(order=ORDER), init=init, max_sweeps=3, tol=0)
    np.testing.assert_allclose(fit.mean("m"), m, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(fit.mean("w"), w, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fit.mean("x"), x, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fit["alpha"].beta, alpha[1], rtol=1e-9)
    beta = tau[1][0] if kind == "PCA" else tau[1]
    np.testing.assert_allclose(fit["tau"].beta, beta, rtol=1e-9)
    assert fit.bound == pytest.approx(bound, rel=1e-10)
    assert_never_falls(fit.trace["bound"])


def test_gaps_are_the_same_as_absent_rows(script, readings):
    """A table of the observed readings alone is the same network."""
    there = ~np.isnan(readings)
    time, sensor = np.nonzero(there)
    coords = {"time": len(readings), "sensor": script.SENSORS, "factor": script.FACTORS}
    with svmp.Model(coords=coords) as table:
        tau = svmp.Gamma("tau", alpha=1, beta=0.1, dims="sensor")
        alpha = svmp.Gamma("alpha", alpha=1, beta=0.1, dims="factor")
        m = svmp.Normal("m", mu=0, tau=0.01, dims="sensor")
        w = svmp.Normal("w", mu=0, tau=alpha, dims=("sensor", "factor"))
        x = svmp.MvNormal("x", mu=0, tau=np.eye(script.FACTORS), dims=("time", "factor"))
        mu = m[sensor] + svmp.dot(x[time], w[sensor])
        svmp.Normal("y", mu=mu, tau=tau[sensor], observed=readings[there])
    init = begin(script, readings)
    gaps, rows = (
        svmp.fit(network, svmp.FullVB(order=ORDER), init=init, max_sweeps=5, tol=0)
        for network in (script.model(readings), table)
    )
    for name in ORDER:
        natural = rows[name].natural
        np.testing.assert_allclose(gaps[name].natural, natural, rtol=1e-9, atol=1e-9)
    assert gaps.bound == pytest.approx(rows.bound, rel=1e-12)


def test_known_loadings_give_the_exact_posterior(script, readings):
    """With w, m and tau given, each x_t is Gaussian and the bound is the evidence."""
    rng = np.random.default_rng(7)
    sensors, factors = script.SENSORS, script.FACTORS
    w, m, tau = (
        rng.normal(size=(sensors, factors)),
        rng.normal(size=sensors),
        np.linspace(1, 4, sensors),
    )
    with svmp.Model(
        coords={"time": len(readings), "sensor": sensors, "factor": factors}
    ) as network:
        x = svmp.MvNormal("x", mu=0, tau=np.eye(factors), dims=("time", "factor"))
        mu = svmp.dot(x, svmp.data(w, dims=("sensor", "factor"))) + m
        svmp.Normal("y", mu=mu, tau=tau, dims=("time", "sensor"), observed=readings, missing=True)
    fit = svmp.fit(network, svmp.FullVB())
    evidence = 0.0
    for t, y in enumerate(readings):
        here = ~np.isnan(y)
        covariance = w[here] @ w[here].T + np.diag(1 / tau[here])
        evidence += stats.multivariate_normal(m[here], covariance).logpdf(y[here])
        mean = w[here].T @ np.linalg.solve(covariance, y[here] - m[here])
        np.testing.assert_allclose(fit.mean("x")[t], mean, rtol=1e-8, atol=1e-10)
    assert fit.bound == pytest.approx(evidence, rel=1e-10)


def test_gaps_are_filled(script):
    y, truth = script.data()
    network = script.model(y)
    fit = svmp.fit(network, svmp.FullVB(), init=script.start(y), max_sweeps=40)
    mean, sd = script.predict(fit)
    gaps = np.isnan(y)
    error = np.sqrt(np.mean((mean - truth)[gaps] ** 2))
    plain = np.sqrt(np.mean((np.nanmean(y, axis=0) - truth)[gaps] ** 2))
    assert error < 0.5 * plain
    assert 0.9 < np.mean(np.abs(mean - truth)[gaps] < 2 * sd[gaps]) < 0.99
