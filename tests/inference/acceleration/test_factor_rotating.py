"""Changes of factors: the best one, beside numerical optimisation, and the exact bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import svmp
from svmp.inference.acceleration.factor_rotating import (
    FactorPair,
    Known,
    Relevance,
    best_change,
    factor_pairs,
    rotate_factors,
)
from svmp.network.network import Network
from tests.network.tools import anywhere, bound

TIMES, SENSORS, K = 30, 8, 3


def analysis(relevance: bool = True, gaps: bool = False, **options: Any) -> svmp.Model:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(TIMES, 2)) @ rng.normal(size=(2, SENSORS))
    y += 0.3 * rng.normal(size=y.shape)
    missing = rng.random(y.shape) < 0.1 if gaps else False
    with svmp.Model(coords={"time": TIMES, "sensor": SENSORS, "factor": K}) as model:
        tau: Any = 2 * np.eye(K)
        if relevance:
            tau = svmp.diag(svmp.Gamma("alpha", alpha=0.5, beta=0.1, dims="factor"))
        w = svmp.MvNormal("w", mu=options.get("mu", 0), tau=tau, dims=("sensor", "factor"))
        x = svmp.MvNormal("x", mu=0, tau=np.eye(K), dims=("time", "factor"))
        mean = svmp.dot(x, w) + svmp.Normal("level", 0, 0.1, dims="sensor")
        noise = svmp.Gamma("noise", alpha=1, beta=1)
        svmp.Normal("y", mean, noise, dims=("time", "sensor"), observed=y, missing=missing)
        if options.get("shared"):
            svmp.Normal("z", w.sum("factor"), 1, dims="sensor", observed=np.ones(SENSORS))
    return model


@pytest.mark.parametrize("sizes", [(30, 8), (5, 40)])
@pytest.mark.parametrize("relevance", [False, True])
def test_change_is_the_best(relevance: bool, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    x, w = (rng.normal(size=(n, K)) @ rng.normal(size=(K, K)) for n in sizes)
    s_x, s_w, (m, n) = x.T @ x, w.T @ w, sizes
    prior = Relevance("alpha", np.full(K, 0.5), np.full(K, 0.1)) if relevance else Known(2.0)
    pair = FactorPair("x", "w", 1.5, prior)

    def value(b: np.ndarray) -> float:
        b = b.reshape(K, K)
        back = np.linalg.inv(b)
        total = (m - n) * np.linalg.slogdet(b)[1] - 0.75 * np.trace(b.T @ s_x @ b)
        square = np.diag(back @ s_w @ back.T)
        if relevance:
            return float(total - ((0.5 + n / 2) * np.log(0.1 + square / 2)).sum())
        return float(total - square.sum())

    change = best_change(pair, s_x, s_w, m, n)
    assert change is not None
    for seed in range(3):
        begin = np.eye(K) + 0.3 * np.random.default_rng(seed).normal(size=(K, K))
        found = minimize(lambda b: -value(b), begin.ravel(), method="BFGS")
        assert value(change) >= -found.fun - 1e-5
    after = change.T @ s_x @ change, np.linalg.inv(change) @ s_w @ np.linalg.inv(change).T
    assert best_change(pair, *after, m, n) is None


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("relevance", [False, True])
def test_bound_rises_and_means_of_rows_stay(relevance: bool, gaps: bool) -> None:
    network = Network(analysis(relevance, gaps))
    q = anywhere(network, 2)
    (pair,) = factor_pairs(network, ())
    assert isinstance(pair.prior, Relevance) == relevance
    table = network.observed["y"].conditional
    before, rows = bound(network, q), table.variable.rows
    mu, earlier = table.slots["mu"].moments(q, rows), {"x": q.moments["x"][:, :K].copy()}
    rotate_factors(network, q, pair, earlier)
    assert bound(network, q) > before + 0.1
    np.testing.assert_allclose(table.slots["mu"].moments(q, rows), mu, rtol=1e-8)
    np.testing.assert_allclose(earlier["x"], q.moments["x"][:, :K], rtol=1e-10)
    for name in ("x", "w"):
        moments = network.hidden[name].family.moments(q.natural[name])
        np.testing.assert_allclose(q.moments[name], moments, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("model", [analysis(mu=1.0), analysis(shared=True)], ids=["mean", "shared"])
def test_other_factors_are_left_alone(model: svmp.Model) -> None:
    assert not factor_pairs(Network(model), ())


def test_few_sweeps_reach_the_bound_of_many() -> None:
    fast = svmp.fit(analysis(), max_sweeps=30, tol=0)
    slow = svmp.fit(analysis(), svmp.Growing(1.0, relax=False), max_sweeps=250, tol=0)
    assert fast.bound > slow.bound - 0.5
    assert (np.diff(fast.trace["bound"]) > -1e-8).all()
