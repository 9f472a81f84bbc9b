"""Marginals of joint blocks with the precisions integrated over, against Gibbs and quadrature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma

import svmp
from svmp.families import Gamma
from svmp.posterior.marginals.integrating import nodes


def gibbs(X: np.ndarray, y: np.ndarray, effects: list[slice], draws: int) -> np.ndarray:
    """Return draws of the intercept and of the first effect; all effects are drawn together."""
    rng, precision = np.random.default_rng(0), np.ones(X.shape[1])
    precision[0], tau, found = 0.01, 1.0, []
    square, pull = X.T @ X, X.T @ y
    for _ in range(draws):
        root = np.linalg.cholesky(tau * square + np.diag(precision))
        white = np.linalg.solve(root, tau * pull) + rng.standard_normal(len(root))
        theta = np.linalg.solve(root.T, white)
        for some in effects:
            rate = 1 + 0.5 * theta[some] @ theta[some]
            precision[some] = rng.gamma(1 + 0.5 * len(theta[some])) / rate
        r = y - X @ theta
        tau = rng.gamma(1 + 0.5 * len(y)) / (1 + 0.5 * r @ r)
        found.append(theta[:2])
    return np.array(found[draws // 10 :])


def crossed(g: np.ndarray, h: np.ndarray, y: np.ndarray) -> svmp.Model:
    with svmp.Model(coords={"g": g.max() + 1, "h": h.max() + 1}) as model:
        a = svmp.Normal("a", mu=0, tau=0.01)
        tu, tv, ty = (svmp.Gamma(name, alpha=1, beta=1) for name in ("tu", "tv", "ty"))
        u = svmp.Normal("u", mu=0, tau=tu, dims="g")
        v = svmp.Normal("v", mu=0, tau=tv, dims="h")
        svmp.Normal("y", mu=a + u[g] + v[h], tau=ty, observed=y)
    return model


@pytest.mark.parametrize(
    ("users", "items", "rows"),
    [(8, 8, 64), *(pytest.param(*n, marks=pytest.mark.slow) for n in [(5, 4, 40), (20, 15, 300)])],
)
def test_crossed_effects_have_the_sds_of_a_gibbs_run(users: int, items: int, rows: int) -> None:
    rng = np.random.default_rng(users)
    g, h = rng.permutation(rows) % users, rng.permutation(rows) % items
    y = (
        3
        + rng.normal(size=users)[g]
        + 0.7 * rng.normal(size=items)[h]
        + 0.5 * rng.normal(size=rows)
    )
    X = np.c_[np.ones(rows), np.eye(users)[g], np.eye(items)[h]]
    effects = [slice(1, 1 + users), slice(1 + users, 1 + users + items)]
    truth = gibbs(X, y, effects, 4000).std(axis=0)
    fit = svmp.fit(crossed(g, h, y), joint="auto")
    assert [fit.posteriors["a"].std, fit.posteriors["u"].std[0]] == pytest.approx(truth, rel=0.1)
    assert svmp.fit(crossed(g, h, y)).posteriors["a"].std < 0.3 * truth[0]


def test_moments_match_quadrature_over_the_precision(tmp_path: Path) -> None:
    """One precision: E[P^-1] + Var[m] under its q, by the quantiles of 2,000 points."""
    y, error = (
        np.array([28, 8, -3, 7, -1, 1, 18, 12.0]),
        np.array([15, 10, 16, 11, 9, 11, 10, 18.0]),
    )
    with svmp.Model(coords={"school": list("ABCDEFGH")}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.01)
        tau = svmp.Gamma("tau", alpha=1, beta=25)
        school = svmp.Normal("school", mu=mu, tau=tau, dims="school")
        svmp.Normal("y", mu=school, tau=error**-2.0, observed=y, dims="school")
    fit = svmp.fit(model, joint="auto")
    points = gamma(fit.posteriors["tau"].alpha, scale=1 / fit.posteriors["tau"].beta).ppf(
        (np.arange(2000) + 0.5) / 2000
    )
    weight = 1 / (error**2 + 1 / points[:, None])
    precision = weight.sum(axis=1) + 0.01
    mean = weight @ y / precision
    assert fit.posteriors["mu"].mean == pytest.approx(mean.mean(), rel=1e-3)
    assert fit.posteriors["mu"].var == pytest.approx((1 / precision).mean() + mean.var(), rel=2e-3)
    fit.save(tmp_path / "fit")
    again = svmp.load(tmp_path / "fit")
    names = ["mu", "school"]
    assert np.array_equal(again.covariance(names).matrix, fit.covariance(names).matrix)
    assert fit.covariance(names).var("school") == pytest.approx(fit.posteriors["school"].var)
    draws = again.draw(names, 20_000, seed=0)
    assert draws["mu"].std() == pytest.approx(fit.posteriors["mu"].std, rel=0.02)
    found = again.predict(model, "y", noise=False)
    assert found.var == pytest.approx(fit.posteriors["school"].var)


def test_precisions_that_are_known_well_change_nothing() -> None:
    rng = np.random.default_rng(0)
    g = rng.integers(0, 300, 2000)
    y = rng.normal(size=300)[g] + rng.normal(size=2000)
    with svmp.Model(coords={"g": 300}) as model:
        a = svmp.Normal("a", mu=0, tau=0.01)
        tu, ty = svmp.Gamma("tu", alpha=1, beta=1), svmp.Gamma("ty", alpha=1, beta=1)
        u = svmp.Normal("u", mu=a, tau=tu, dims="g")
        svmp.Normal("y", mu=u[g], tau=ty, observed=y)
    (block,) = svmp.fit(model, joint="auto").joint
    assert (block.scale == 1).all()
    assert (block.shift == 0).all()


@pytest.mark.parametrize("alpha", [1.5, 2.0, 4.0, 7.0, 50.0])
def test_nodes_of_one_precision(alpha: float) -> None:
    """E[1 / (c + tau)] by adaptive quadrature."""
    x, weight = nodes(Gamma().natural(alpha=[alpha], beta=[2.0]))
    assert weight.sum() == pytest.approx(1)
    for c in (0.1, 1.0, 10.0):
        size = c * alpha / 2

        def integrand(t: float, c: float = size) -> float:
            return float(gamma(alpha, scale=0.5).pdf(t) / (c + t))

        truth = quad(integrand, 0, np.inf, limit=200)[0]
        assert weight @ (1 / (size + x[:, 0])) == pytest.approx(truth, rel=0.01)
    assert weight @ x[:, 0] == pytest.approx(alpha / 2, rel=0.01)
