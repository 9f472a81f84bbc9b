"""Chains of vectors against the Kalman filter, dense solves, and finite differences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

import svmp

ROWS, SENSORS, SIZE = 24, 3, 2
RNG = np.random.default_rng(7)
Y = RNG.normal(size=(ROWS, SENSORS)).cumsum(axis=0)
Y[RNG.random(Y.shape) < 0.25] = np.nan
Y[5], Y[-3:] = np.nan, np.nan
TRACK = RNG.permutation(np.repeat(["c", "a", "b"], [15, 1, 8]))
SUBJECT = np.array([{"a": 0, "b": 1, "c": 0}[t] for t in TRACK])
A, C = np.array([[0.9, 0.2], [-0.3, 0.8]]), RNG.normal(size=(SENSORS, SIZE))
B, U, STEP = RNG.normal(size=(SIZE, 2)), RNG.normal(size=(ROWS, 2)), RNG.uniform(0.5, 2, ROWS)
TAU = np.array([[2.0, 0.3], [0.3, 1.0]])
MEAN, START = np.array([1.0, -1.0]), np.array([[0.5, 0.1], [0.1, 0.4]])
COORDS = {"row": ROWS, "latent": SIZE, "from": SIZE, "sensor": SENSORS, "input": 2}


def known(y: np.ndarray = Y, track: Any = TRACK, rows: Any = slice(None)) -> svmp.Model:
    """A chain whose parameters are all known."""
    with svmp.Model(coords=COORDS | {"row": len(y)}) as model:
        x = svmp.LinearGaussianChain(
            "x",
            init=svmp.MvNormal.dist(mu=MEAN, tau=START),
            A=A,
            tau=TAU,
            B=B,
            u=U[rows],
            step=STEP[rows],
            sequence=track,
            dims=("row", "latent"),
        )
        design = svmp.data(C, dims=("sensor", "latent"))
        mean = svmp.dot(design, x, dim="latent")
        svmp.Normal("y", mean, 2.0, dims=("row", "sensor"), observed=y, missing=True)
    return model


def kalman(rows: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the evidence of one sequence, and the mean and covariance of its states, densely."""
    n = len(rows)
    precision, linear = np.zeros((n * SIZE, n * SIZE)), np.zeros(n * SIZE)
    precision[:SIZE, :SIZE], linear[:SIZE] = START, START @ MEAN
    mean, cov, evidence = MEAN, np.linalg.inv(START), 0.0
    for t, row in enumerate(rows):
        now = slice(t * SIZE, (t + 1) * SIZE)
        if t:
            tau, both = TAU / STEP[row], slice((t - 1) * SIZE, (t + 1) * SIZE)
            slopes = np.hstack([-A, np.eye(SIZE)])
            precision[both, both] += slopes.T @ tau @ slopes
            linear[both] += slopes.T @ tau @ B @ U[row]
            mean, cov = A @ mean + B @ U[row], A @ cov @ A.T + np.linalg.inv(tau)
        seen = np.isfinite(Y[row])
        c, y = C[seen], Y[row, seen]
        precision[now, now] += 2.0 * c.T @ c
        linear[now] += 2.0 * c.T @ y
        if seen.any():
            spread = c @ cov @ c.T + 0.5 * np.eye(len(y))
            evidence += stats.multivariate_normal(c @ mean, spread).logpdf(y)
            gain = cov @ c.T @ np.linalg.inv(spread)
            mean, cov = mean + gain @ (y - c @ mean), cov - gain @ spread @ gain.T
    spread = np.linalg.inv(precision)
    return evidence, (spread @ linear).reshape(n, SIZE), spread


@pytest.mark.parametrize("kernels", [False, True])
def test_known_parameters_give_the_posterior_and_the_evidence(kernels: bool) -> None:
    fit = svmp.fit(known(), svmp.FullVB(), kernels=kernels)
    evidence = 0.0
    for track in "abc":
        rows = np.flatnonzero(track == TRACK)
        found, mean, cov = kalman(rows)
        evidence += found
        np.testing.assert_allclose(fit.mean("x")[rows], mean, atol=1e-10)
        np.testing.assert_allclose(fit.var("x")[rows].ravel(), np.diag(cov), atol=1e-10)
    assert fit.bound == pytest.approx(evidence, abs=1e-10)
    assert fit.status == "converged"


def test_ragged_sequences_are_those_fitted_one_by_one() -> None:
    fit, bound = svmp.fit(known(), svmp.FullVB()), 0.0
    for track in "bc":
        rows = np.flatnonzero(track == TRACK)
        alone = svmp.fit(known(Y[rows], None, rows), svmp.FullVB())
        np.testing.assert_allclose(alone.mean("x"), fit.mean("x")[rows], atol=1e-12)
        bound += alone.bound
    rows = np.flatnonzero(TRACK == "a")
    assert fit.bound == pytest.approx(bound + kalman(rows)[0], abs=1e-10)


def test_order_is_that_of_a_column() -> None:
    mixed = RNG.permutation(ROWS)
    with svmp.Model(coords=COORDS) as model:
        x = svmp.LinearGaussianChain(
            "x", svmp.Normal.dist(0, 1), 0.9, 1.0, order=mixed, dims=("row", "latent")
        )
        svmp.Normal("y", x[:, 0], 1.0, dims="row", observed=Y[:, 0], missing=True)
    with svmp.Model(coords=COORDS) as plain:
        x = svmp.LinearGaussianChain("x", svmp.Normal.dist(0, 1), 0.9, 1.0, dims=("row", "latent"))
        places = np.argsort(mixed)
        svmp.Normal("y", x[:, 0], 1.0, dims="row", observed=Y[places, 0], missing=True)
    fit, other = svmp.fit(model, svmp.FullVB()), svmp.fit(plain, svmp.FullVB())
    np.testing.assert_allclose(fit.mean("x")[places], other.mean("x"), atol=1e-12)


def test_readings_in_another_table_refer_to_steps_by_a_key() -> None:
    step, value = np.array([0, 3, 3, 4]), np.array([1.0, 2.0, 3.0, -1.0])
    with svmp.Model(coords={"row": 6, "latent": 1, "reading": 4}) as model:
        x = svmp.LinearGaussianChain("x", svmp.Normal.dist(0, 1), 1.0, 2.0, dims=("row", "latent"))
        svmp.Normal("y", x[step, 0], 4.0, dims="reading", observed=value)
    fit = svmp.fit(model, svmp.FullVB())
    walk = 1 + 0.5 * np.minimum.outer(np.arange(6), np.arange(6))
    spread = walk[np.ix_(step, step)] + 0.25 * np.eye(4)
    np.testing.assert_allclose(
        fit.mean("x")[:, 0], walk[:, step] @ np.linalg.solve(spread, value), atol=1e-12
    )
    truth = stats.multivariate_normal(np.zeros(4), spread).logpdf(value)
    assert fit.bound == pytest.approx(truth, abs=1e-11)


def unknown(a: str, t: str, switch: str | None = None) -> svmp.Model:
    """A chain with random parameters of some kinds."""
    coords = COORDS | {"subject": 2, "state": 2, "to": 2}
    with svmp.Model(coords=coords) as model:
        mu = svmp.MvNormal("mu", mu=0, tau=np.eye(SIZE), dims="latent")
        tau0 = svmp.Gamma("tau0", alpha=2, beta=1, dims="latent")
        relevance = svmp.Gamma("relevance", alpha=2, beta=1, dims="from")
        which, z = (), None
        if switch is not None:
            which = ("state",)
            begin = svmp.Dirichlet("begin", a=1, dims="state")
            if switch == "chain":
                move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
                z = svmp.DiscreteMarkovChain("z", begin, move, sequence=TRACK, dims="row")
            else:
                z = svmp.Categorical("z", begin, dims="row")
        matrices = {
            "rows": lambda: svmp.MvNormal(
                "A", mu=0, tau=svmp.diag(relevance), dims=(*which, "latent", "from")
            ),
            "by subject": lambda: svmp.MvNormal(
                "A", mu=0, tau=svmp.diag(relevance), dims=("subject", *which, "latent", "from")
            )[SUBJECT],
            "diagonal": lambda: svmp.diag(svmp.Normal("A", mu=0.5, tau=1, dims=(*which, "latent"))),
            "one": lambda: svmp.diag(svmp.Normal("A", mu=0.5, tau=1, dims=which or None)),
            "fixed": lambda: 0.9,
            "by row": lambda: RNG.normal(size=(ROWS, SIZE, SIZE)) / 2,
        }
        precisions = {
            "gamma": lambda: svmp.Gamma("tau", alpha=2, beta=1, dims=(*which, "latent")),
            "one gamma": lambda: svmp.Gamma("tau", alpha=2, beta=1),
            "wishart": lambda: svmp.Wishart(
                "tau", nu=4, V=np.eye(SIZE), dims=(*which, "latent", "latent")
            ),
            "by subject": lambda: svmp.Gamma("tau", alpha=2, beta=1, dims=("subject", "latent"))[
                SUBJECT
            ],
            "fixed": lambda: TAU,
        }
        x = svmp.LinearGaussianChain(
            "x",
            init=svmp.MvNormal.dist(mu=mu, tau=svmp.diag(tau0)),
            A=matrices[a](),
            tau=precisions[t](),
            B=svmp.MvNormal("B", mu=0, tau=np.eye(2), dims=("latent", "input")),
            u=U,
            step=STEP,
            switch=z,
            sequence=TRACK,
            dims=("row", "latent"),
        )
        emission = svmp.Normal("C", mu=0, tau=1, dims=("sensor", "latent"))
        noise = svmp.Gamma("noise", alpha=1, beta=1)
        mean = svmp.dot(emission, x, dim="latent")
        svmp.Normal("y", mean, noise, dims=("row", "sensor"), observed=Y, missing=True)
    return model


KINDS = [
    *itertools.product(["rows", "one"], ["gamma", "wishart", "by subject"]),
    *itertools.product(["by subject", "diagonal"], ["one gamma", "fixed"]),
    ("fixed", "wishart"),
    ("by row", "gamma"),
]
SWITCHED = [
    ("rows", "gamma", "chain"),
    ("diagonal", "wishart", "choice"),
    ("one", "fixed", "chain"),
]


@pytest.mark.parametrize("kinds", [*KINDS, *SWITCHED], ids=" ".join)
def test_bound_never_falls(kinds: tuple[str, ...]) -> None:
    fit = svmp.fit(unknown(*kinds), svmp.FullVB(), max_sweeps=12, tol=0, kernels=False)
    bound = fit.trace["bound"]
    assert np.all(np.diff(bound) > -1e-9 * np.abs(bound[1:]))


def form(observed: np.ndarray, home: np.ndarray, away: np.ndarray) -> svmp.Model:
    """Matches that read the form of two teams at a time: 4 teams, 3 seasons."""
    team = np.repeat(np.arange(4), 3)
    with svmp.Model(coords={"row": 12, "latent": 1, "match": len(observed)}) as model:
        x = svmp.LinearGaussianChain(
            "x", svmp.Normal.dist(0, 1), 0.9, 4.0, sequence=team, dims=("row", "latent")
        )
        edge = svmp.Normal("edge", mu=0, tau=1)
        mean = edge + x[home, 0] - x[away, 0]
        svmp.Normal("y", mean, 2.0, dims="match", observed=observed)
    return model


def test_sequences_that_share_rows_are_updated_in_turn() -> None:
    rng = np.random.default_rng(3)
    home, away = rng.integers(0, 6, 60), rng.integers(6, 12, 60)
    y = rng.normal(size=60)
    fit = svmp.fit(form(y, home, away), svmp.FullVB(), tol=1e-13, max_sweeps=3000)
    assert np.all(np.diff(fit.trace["bound"]) > -1e-9)
    cov = np.zeros((13, 13))  # of all states and of the advantage
    cov[12, 12] = 1
    for first in range(0, 12, 3):
        var = 1.0
        for t in range(first, first + 3):
            var = 1.0 if t == first else 0.81 * var + 0.25
            for later in range(t, first + 3):
                cov[t, later] = cov[later, t] = 0.9 ** (later - t) * var
    design = np.zeros((60, 13))
    design[np.arange(60), home], design[np.arange(60), away], design[:, 12] = 1, -1, 1
    gain = cov @ design.T @ np.linalg.inv(design @ cov @ design.T + 0.5 * np.eye(60))
    np.testing.assert_allclose(fit.mean("x")[:, 0], (gain @ y)[:12], atol=1e-4)


def test_two_rows_of_one_sequence_are_not_read_together() -> None:
    model = form(np.zeros(1), np.array([1]), np.array([2]))
    with pytest.raises(svmp.ModelError, match="two rows of one sequence"):
        svmp.fit(model, svmp.FullVB())
