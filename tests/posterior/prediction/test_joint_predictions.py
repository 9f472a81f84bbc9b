"""Predictions and draws of a fit with joint blocks, against dense Normal posteriors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import expit

import svmp

RNG = np.random.default_rng(5)
G, H, N = 6, 4, 40
g, h = RNG.integers(0, G, N), RNG.integers(0, H, N)
y = 2 + RNG.normal(size=G)[g] + RNG.normal(size=H)[h] + RNG.normal(size=N)
TOP, TAU = 0.05, np.r_[np.full(G, 0.5), np.full(H, 2.0)]


def crossed(g: np.ndarray, h: np.ndarray, y: np.ndarray, groups: list[str]) -> svmp.Model:
    with svmp.Model(coords={"g": groups, "h": H, "row": len(y)}) as model:
        a = svmp.Normal("a", mu=0, tau=TOP)
        u = svmp.Normal("u", mu=a, tau=0.5, dims="g")
        v = svmp.Normal("v", mu=0, tau=2, dims="h")
        svmp.Normal("y", mu=u[g] + v[h], tau=1, dims="row", observed=y)
    return model


def design(g: np.ndarray, h: np.ndarray) -> np.ndarray:
    return np.c_[np.zeros(len(g)), np.eye(G)[g], np.eye(H)[h]]


def posterior() -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of a, u and v."""
    links = np.eye(1 + G + H)
    links[1 : 1 + G, 0] = -1
    own = np.r_[TOP, TAU]
    X = design(g, h)
    S = np.linalg.inv(links.T @ (own[:, None] * links) + X.T @ X)
    return S @ X.T @ y, S


NAMES = [f"group {i}" for i in range(G)]
NEW_G, NEW_H = np.array([0, 3, 3]), np.array([1, 1, 2])


def test_known_rows_are_exact() -> None:
    fit = svmp.fit(crossed(g, h, y, NAMES), joint="auto", tol=1e-12)
    assert fit.joint[0].names == ("a", "u", "v")
    mean, S = posterior()
    X = design(NEW_G, NEW_H)
    for noise in (False, True):
        found = fit.predict(crossed(NEW_G, NEW_H, np.zeros(3), NAMES), "y", noise=noise)
        assert found.exact
        assert found.mean == pytest.approx(X @ mean)
        spread = np.diag(X @ S @ X.T) + noise
        assert found.var == pytest.approx(spread)
        lower, upper = found.interval(0.9)
        assert upper - lower == pytest.approx(2 * 1.6448536 * np.sqrt(spread))


def test_draws_have_the_covariances_of_q() -> None:
    fit = svmp.fit(crossed(g, h, y, NAMES), joint="auto", tol=1e-12)
    mean, S = posterior()
    draws = fit.draw(["v", "a", "u"], 40_000, seed=1)
    flat = np.c_[draws["a"], draws["u"], draws["v"]]
    assert np.cov(flat.T) == pytest.approx(S, abs=0.03 * S.max())
    assert flat.mean(axis=0) == pytest.approx(mean, abs=0.05)
    again = fit.draw(["u"], 40_000, seed=1)
    assert np.array_equal(again["u"], draws["u"])
    found = fit.predict(crossed(NEW_G, NEW_H, np.zeros(3), NAMES), "y", noise=False)
    X = design(NEW_G, NEW_H)
    together = np.cov(found.draw(2000, seed=2).T)
    assert together == pytest.approx(X @ S @ X.T, abs=0.1 * S.max())


def test_new_groups_depend_on_the_block() -> None:
    """The mean of a new group is `a` with its covariance with v, plus a new effect."""
    fit = svmp.fit(crossed(g, h, y, NAMES), joint="auto", tol=1e-12)
    mean, S = posterior()
    model = crossed(np.array([0, 0]), np.array([1, 2]), np.zeros(2), ["another"])
    X = np.c_[np.ones(2), np.zeros((2, G)), np.eye(H)[[1, 2]]]
    found = fit.predict(model, "y", noise=False, draws=1000)
    truth = X @ S @ X.T + 1 / 0.5
    assert found.mean == pytest.approx(X @ mean, abs=0.2)
    assert found.var == pytest.approx(np.diag(truth), rel=0.15)
    assert np.cov(found.draw(2000, seed=1).T) == pytest.approx(truth, rel=0.15)


def test_logits_integrate_over_the_block() -> None:
    success = (y > np.median(y)).astype(float)

    def logits(x: np.ndarray, observed: np.ndarray) -> svmp.Model:
        with svmp.Model() as model:
            a = svmp.Normal("a", mu=0, tau=0.1)
            b = svmp.Normal("b", mu=0, tau=0.1)
            svmp.Bernoulli("s", logit=a + b * x, observed=observed)
        return model

    fit = svmp.fit(logits(y, success), joint="auto")
    matrix, x = fit.covariance(["a", "b"]).matrix, np.array([0.0, 2.0])
    X = np.c_[np.ones(2), x]
    centre = X @ np.r_[fit.mean("a"), fit.mean("b")]
    sd = np.sqrt(np.diag(X @ matrix @ X.T))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    truth = expit(centre[:, None] + sd[:, None] * nodes) @ weights / weights.sum()
    assert fit.predict(logits(x, np.zeros(2)), "s").mean == pytest.approx(truth, abs=1e-6)


def vectors(observed: np.ndarray) -> svmp.Model:
    with svmp.Model(coords={"g": G, "d": 2, "row": len(observed)}) as model:
        m = svmp.MvNormal("m", mu=0, tau=0.1 * np.eye(2), dims="d")
        w = svmp.MvNormal("w", mu=m, tau=np.eye(2), dims=("g", "d"))
        x = svmp.data(np.c_[np.ones(len(observed)), np.arange(len(observed)) / 9], ("row", "d"))
        mean = svmp.dot(x, w[np.arange(len(observed)) % G])
        svmp.Normal("y", mu=mean, tau=1, dims="row", observed=observed)
    return model


def products(observed: np.ndarray) -> svmp.Model:
    """A mean with factors beside the block: they are drawn or integrated on their own."""
    with svmp.Model(coords={"g": G, "row": len(observed)}) as model:
        a = svmp.Normal("a", mu=0, tau=0.1)
        b = svmp.Normal("b", mu=0, tau=0.1)
        c, d = svmp.Normal("c", mu=0, tau=1), svmp.Normal("d", mu=1, tau=1)
        x = np.arange(len(observed)) / 9
        svmp.Normal("y", mu=a + b * x + c * d, tau=1, dims="row", observed=observed)
    return model


@pytest.mark.parametrize("declare", [vectors, products])
def test_moments_agree_with_draws(declare: Callable[[np.ndarray], svmp.Model]) -> None:
    fit = svmp.fit(declare(y[:20]), joint="auto")
    found = fit.predict(declare(np.zeros(5)), "y", noise=False)
    draws = found.draw(2000, seed=0)
    assert draws.mean(axis=0) == pytest.approx(found.mean, abs=0.15)
    assert draws.var(axis=0) == pytest.approx(found.var, rel=0.2)
