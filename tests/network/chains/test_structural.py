"""Structural series against the curves that they generate, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import svmp


def test_noiseless_states_repeat_with_the_period_and_follow_the_trend() -> None:
    structure = svmp.local_trend() + svmp.seasonal(6)
    state = np.random.default_rng(0).normal(size=structure.size)
    states = [state]
    for _ in range(12):
        states.append(structure.A @ states[-1])
    values = np.array(states) @ structure.design
    np.testing.assert_allclose(values[6:], values[:-6] + 6 * state[1], atol=1e-12)
    assert structure.size == len(structure.names) == 7


def test_random_walk_with_drift_and_irregular_steps_has_the_exact_evidence() -> None:
    y, step = np.array([0.3, 1.0, 2.5, 2.0]), np.array([9.0, 0.5, 2.0, 1.0])
    with svmp.Model(coords={"t": 4}) as model:
        x = svmp.GaussianRandomWalk(
            "x", tau=4.0, init=svmp.Normal.dist(0.2, 2.0), mu=0.7, step=step, dims="t"
        )
        svmp.Normal("y", x, 1.0, dims="t", observed=y)
    time = np.concatenate([[0], np.cumsum(step[1:])])
    cov = 0.5 + 0.25 * np.minimum.outer(time, time) + np.eye(4)
    truth = stats.multivariate_normal(0.2 + 0.7 * time, cov).logpdf(y)
    assert svmp.fit(model, svmp.FullVB()).bound == pytest.approx(truth, abs=1e-11)


def autoregression(y: np.ndarray, rho: list[float]) -> svmp.Model:
    with svmp.Model(coords={"t": len(y), "sequence": ["a"]}) as model:
        sequence = ["a"] * len(y)
        x = svmp.AR("x", rho, 2.0, svmp.Normal.dist(0, 0.5), sequence=sequence, dims="t")
        svmp.Normal("y", x, 4.0, dims="t", observed=y, missing=True)
    return model


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("rho", [[0.9], [1.1, -0.4], [0.5, 0.2, -0.3, 0.1]])
def test_autoregression_has_the_evidence_of_its_covariance(rho: list[float], kernels: bool) -> None:
    n, p, rng = 60, len(rho), np.random.default_rng(1)
    y = np.where(rng.random(n) < 0.7, rng.normal(size=n), np.nan)
    y[0], y[-2:] = 1.0, np.nan
    weights = np.eye(n + p - 1)  # of the first state, the newest value first, and the innovations
    values = [weights[k] for k in range(p - 1, -1, -1)]  # oldest first
    for t in range(1, n):
        past = values[: -p - 1 : -1]
        values.append(sum(r * v for r, v in zip(rho, past, strict=True)) + weights[p - 1 + t])
    factors = np.array(values[p - 1 :])
    cov = factors @ np.diag([2.0] * p + [0.5] * (n - 1)) @ factors.T
    seen = np.flatnonzero(np.isfinite(y))
    total = cov[np.ix_(seen, seen)] + np.eye(len(seen)) / 4
    fit = svmp.fit(autoregression(y, rho), svmp.FullVB(), kernels=kernels)
    truth = stats.multivariate_normal(np.zeros(len(seen)), total).logpdf(y[seen])
    assert fit.bound == pytest.approx(truth, abs=1e-10)
    mean = cov[:, seen] @ np.linalg.solve(total, y[seen])
    np.testing.assert_allclose(fit.mean("x")[:, 0], mean, atol=1e-12)
    np.testing.assert_allclose(fit.mean("x")[1:, 1:], fit.mean("x")[:-1, :-1], atol=1e-12)
    first = svmp.fit(autoregression(y[:40], rho), svmp.FullVB(), kernels=kernels)
    later = first.update(autoregression(y[40:], rho))
    assert first.bound + later.bound == pytest.approx(truth, abs=1e-10)


def test_coefficients_of_an_autoregression_are_learned() -> None:
    rng, n = np.random.default_rng(2), 400
    x = np.zeros(n)
    for t in range(2, n):
        x[t] = 1.2 * x[t - 1] - 0.5 * x[t - 2] + rng.normal()
    with svmp.Model(coords={"t": n}) as model:
        prior = svmp.MvNormal.dist(mu=np.zeros(2), tau=np.eye(2))
        value = svmp.AR("x", rho=prior, tau=svmp.Gamma.dist(alpha=1, beta=1), dims="t")
        svmp.Normal("y", value, 25.0, dims="t", observed=x + 0.2 * rng.normal(size=n))
    fit = svmp.fit(model, svmp.FullVB())
    np.testing.assert_allclose(fit.mean("x_rho"), [1.2, -0.5], atol=0.1)
    assert fit.mean("x_tau") == pytest.approx(1, abs=0.2)


EYE = np.eye(2)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"A": np.eye(3)}, "must have shape"),
        ({"A": np.nan}, "NaN"),
        ({"tau": -1.0}, "not positive"),
        ({"tau": [[1.0, 2.0], [2.0, 1.0]]}, "positive definite"),
        ({"init": 0.0}, "density of the first state"),
        ({"B": EYE}, "both B and its inputs"),
        ({"B": EYE, "u": np.ones((3, 2))}, "for each of the 4 rows"),
        ({"B": EYE, "u": np.full((4, 2), np.nan)}, "finite"),
        ({"step": [1, 1, -1, 1]}, "must be positive"),
        ({"step": [1, 1]}, "one for each of the 4 rows"),
        ({"sequence": [0, 1]}, "instead of"),
        ({"dims": "t"}, "axes of its own|two dimensions|as many"),
        ({"dims": ("t", "u", "d")}, "two dimensions"),
        ({"sequence_dim": "t"}, "another name"),
        ({"switch": [0, 1, 0, 1]}, "Categorical"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], says: str) -> None:
    known = {"init": svmp.Normal.dist(0, 1), "A": 1.0, "tau": 1.0, "dims": ("t", "d")}
    with (
        svmp.Model(coords={"t": 4, "d": 2, "u": 2}),
        pytest.raises(svmp.ModelError, match=says),
    ):
        svmp.LinearGaussianChain("x", **(known | given))


@pytest.mark.parametrize(("period", "harmonics"), [(1, None), (12, 7), (12, 0), (np.nan, 1)])
def test_bad_seasons_are_refused(period: float, harmonics: int | None) -> None:
    with pytest.raises(svmp.ModelError, match="must be"):
        svmp.seasonal(period, harmonics)


@pytest.mark.parametrize("kernels", [False, True])
def test_exploding_dynamics_are_named(kernels: bool) -> None:
    y = np.full(3000, np.nan)
    y[:5] = 1.0
    y[-1] = 2.0
    with svmp.Model(coords={"t": 3000, "d": 1}) as model:
        x = svmp.LinearGaussianChain("x", svmp.Normal.dist(0, 1), 1.5, 1.0, dims=("t", "d"))
        svmp.Normal("y", x[:, 0], 1.0, dims="t", observed=y, missing=True)
    with pytest.raises(svmp.ModelError, match=r"from row 8[0-9]+ .*spectral radius of A is 1\.5"):
        svmp.fit(model, svmp.FullVB(), kernels=kernels)
