"""Linear chains beside effects in one mean, against dense algebra.

With known precisions the posterior is Normal. Where q is a product of blocks its means are those of
the posterior, and its bound is the log evidence less the sum of log|P_bb| of its blocks over the
log-determinant of the whole precision matrix P, halved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import svmp

ROWS, NOISE = 12, 2.0
SEQUENCES = np.repeat([0, 1, 2], [6, 1, 5])


@dataclass
class Part:
    """An independent Normal vector with its design: rows read `design @ x`, x ~ N(mean, cov).

    `blocks` says which entries are one block of q.
    """

    mean: np.ndarray
    cov: np.ndarray
    design: np.ndarray
    blocks: list[np.ndarray] = field(default_factory=list)


def linear_chain(A: np.ndarray, tau: np.ndarray, first: float, sequence: np.ndarray) -> Part:
    """Return the states of a chain, of which rows read the first entry."""
    size, rows = len(A), len(sequence)
    cov = np.zeros((rows, size, rows, size))
    for t in range(rows):
        begins = t == 0 or sequence[t] != sequence[t - 1]
        if begins:
            cov[t, :, t] = np.eye(size) / first
            continue
        for other in range(t):
            cov[t, :, other] = A @ cov[t - 1, :, other]
            cov[other, :, t] = cov[t, :, other].T
        cov[t, :, t] = A @ cov[t - 1, :, t - 1] @ A.T + np.diag(1 / tau)
    flat = cov.reshape(rows * size, -1)
    every = [np.arange(rows * size)]
    return Part(np.zeros(rows * size), flat, np.eye(rows * size)[::size], every)


def effects(tau: float, design: np.ndarray, together: bool = False) -> Part:
    """Return independent effects; q has a block of them all, or one for each."""
    count = design.shape[1]
    blocks = [np.arange(count)] if together else [np.array([k]) for k in range(count)]
    return Part(np.zeros(count), np.eye(count) / tau, design, blocks)


def truth(parts: list[Part], y: np.ndarray, noise: float) -> tuple[list[np.ndarray], float]:
    """Return the posterior means of some parts, and the bound of the best product of blocks."""
    seen = np.isfinite(y)
    X = np.hstack([part.design for part in parts])[seen]
    ends = np.cumsum([len(part.mean) for part in parts])
    prior = np.zeros((ends[-1], ends[-1]))
    total, precision = np.eye(seen.sum()) / noise, noise * X.T @ X
    for part, end in zip(parts, ends, strict=True):
        own = slice(end - len(part.mean), end)
        prior[own, own] = part.cov
        precision[own, own] += np.linalg.inv(part.cov)
        total += part.design[seen] @ part.cov @ part.design[seen].T
    means = prior @ X.T @ np.linalg.solve(total, y[seen])
    evidence = stats.multivariate_normal(np.zeros(seen.sum()), total).logpdf(y[seen])
    apart = -np.linalg.slogdet(precision)[1]
    for part, end in zip(parts, ends, strict=True):
        for block in part.blocks:
            own = end - len(part.mean) + block
            apart += np.linalg.slogdet(precision[np.ix_(own, own)])[1]
    return np.split(means, ends[:-1]), float(evidence - 0.5 * apart)


CHAINS = ("vectors of 1", "vectors of 2", "vectors of 3", "rotating", "walk", "trend", "ragged")
BESIDE = ("intercept", "slope", "both", "groups", "vector", "another chain", "two intercepts")


def declare_chain(kind: str, name: str, rows: int) -> tuple[Any, Part]:
    """Declare a chain; return what the mean of a row reads of it, and its density."""
    sequence: np.ndarray = np.zeros(rows, dtype=int)
    if kind == "walk":
        init = svmp.Normal.dist(0, 0.25)
        return (
            svmp.GaussianRandomWalk(name, 4.0, init, dims="row"),
            linear_chain(np.eye(1), np.full(1, 4.0), 0.25, sequence),
        )
    if kind == "trend":
        structure = svmp.local_trend()
        A, tau = np.array(structure.A), np.array([2.0, 20.0])
    elif kind == "rotating":
        A, tau = 0.9 * np.array([[0.6, 0.8], [-0.8, 0.6]]), np.array([1.0, 3.0])
    else:
        size = 2 if kind == "ragged" else int(kind[-1])
        A, tau = np.eye(size), np.ones(size)
        sequence = SEQUENCES if kind == "ragged" else sequence
    init = svmp.Normal.dist(0, 1)
    coordinate = f"{name} state"
    x = svmp.LinearGaussianChain(
        name, init, A, tau, sequence=sequence, sequence_dim=f"{name} s", dims=("row", coordinate)
    )
    return x[:, 0], linear_chain(A, tau, 1.0, sequence)


def declare(chain: str, beside: str, y: np.ndarray) -> tuple[svmp.Model, list[Part], list[str]]:
    """Declare a chain with something beside it in the mean of `y`."""
    rows, rng = len(y), np.random.default_rng(3)
    z, group, one = rng.normal(2, 1, rows), rng.integers(0, 3, rows), np.ones((rows, 1))
    states = {f"{name} state": 3 if chain.endswith("3") else 2 for name in "xw"}
    if chain.endswith("1"):
        states["x state"] = 1
    if beside == "another chain":
        states["w state"] = 2
    with svmp.Model(coords={"row": rows, "group": 3, "entry": 2} | states) as model:
        mean, part = declare_chain(chain, "x", rows)
        parts, names = [part], ["x"]
        if beside in ("intercept", "both", "two intercepts"):
            mean = mean + svmp.Normal("b", mu=0, tau=0.5)
            parts, names = [*parts, effects(0.5, one)], [*names, "b"]
        if beside in ("slope", "both"):
            mean = mean + svmp.Normal("c", mu=0, tau=1) * svmp.data(z, dims="row")
            parts, names = [*parts, effects(1.0, z[:, None])], [*names, "c"]
        if beside == "two intercepts":
            mean = mean + svmp.Normal("d", mu=0, tau=1)
            parts, names = [*parts, effects(1.0, one)], [*names, "d"]
        if beside == "groups":
            mean = mean + svmp.Normal("g", mu=0, tau=1, dims="group")[group]
            parts, names = [*parts, effects(1.0, np.eye(3)[group])], [*names, "g"]
        if beside == "vector":
            v = svmp.MvNormal("v", mu=0, tau=np.eye(2), dims="entry")
            design = np.column_stack([one[:, 0], z])
            mean = mean + svmp.dot(svmp.data(design, dims=("row", "entry")), v, dim="entry")
            parts, names = [*parts, effects(1.0, design, together=True)], [*names, "v"]
        if beside == "another chain":
            other, part = declare_chain("rotating", "w", rows)
            mean, parts, names = mean + other, [*parts, part], [*names, "w"]
        svmp.Normal("y", mean, NOISE, dims="row", observed=y, missing=True)
    return model, parts, names


def observations(seed: int) -> np.ndarray:
    """Return values around a level, some missing."""
    rng = np.random.default_rng(seed)
    y = rng.normal(3, 1, ROWS)
    y[[2, 7]] = np.nan
    return y


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("chain", CHAINS)
def test_default_has_the_means_and_the_bound_of_dense_algebra(chain: str, beside: str) -> None:
    y, kernels = observations(5), len(chain + beside) % 2 == 0
    model, parts, names = declare(chain, beside, y)
    means, bound = truth(parts, y, NOISE)
    two = beside == "another chain"  # as many means as rows are extrapolated
    for joint in (None, "auto"):
        fit = svmp.fit(model, joint=joint, kernels=kernels)
        if joint is None:  # otherwise q is no product of the effects
            assert fit.bound == pytest.approx(bound, abs=1e-4 if two else 1e-8)
        for name, mean in zip(names, means, strict=True):
            found = np.ravel(fit.mean(name))
            np.testing.assert_allclose(found, mean, atol=0.02 if two else 1e-6)
        assert len(fit.trace["bound"]) < 20


@pytest.mark.parametrize("chain", ["vectors of 1", "vectors of 3", "trend"])
def test_full_vb_reaches_the_same_optimum(chain: str) -> None:
    y = observations(6)
    model, parts, names = declare(chain, "slope", y)
    means, bound = truth(parts, y, NOISE)
    fit = svmp.fit(model, svmp.FullVB(), tol=1e-12, max_sweeps=1000)
    assert fit.bound == pytest.approx(bound, abs=1e-7)
    for name, mean in zip(names, means, strict=True):
        np.testing.assert_allclose(np.ravel(fit.mean(name)), mean, atol=1e-4)


def learned(kind: str, likelihood: str, seed: int) -> svmp.Model:
    """Declare a chain of vectors with learned parameters, beside effects."""
    rng = np.random.default_rng(seed)
    rows, group, slope = 24, rng.integers(0, 4, 24), rng.normal(1, 1, 24)
    y = rng.normal(4, 1, rows) + rng.normal(size=rows).cumsum()
    coords = {"row": rows, "latent": 2, "from": 2, "state": 2, "to": 2, "group": 4}
    with svmp.Model(coords=coords) as model:
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="latent")
        more: dict[str, Any] = {"dims": ("row", "latent")}
        dims: Any = ("latent", "from")
        if kind == "switching":
            start = svmp.Dirichlet("start", a=1, dims="state")
            move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
            more["switch"] = svmp.DiscreteMarkovChain("s", start, move, dims="row")
            dims = ("state", *dims)
        A: Any = 1.0
        if kind != "known":
            A = svmp.MvNormal("A", mu=0, tau=np.eye(2), dims=dims)
        x = svmp.LinearGaussianChain("x", svmp.Normal.dist(0, 0.1), A, tau, **more)
        middle = svmp.Normal("middle", mu=0, tau=0.1)
        g = svmp.Normal("g", middle, svmp.Gamma("spread", alpha=1, beta=1), dims="group")
        mean = x[:, 0] + g[group] + svmp.Normal("c", mu=0, tau=0.1) * svmp.data(slope, dims="row")
        if likelihood != "logit":
            noise = svmp.Gamma("noise", alpha=1, beta=1)
            svmp.Normal("y", mean, noise, dims="row", observed=y)
        if likelihood != "Normal":
            svmp.Bernoulli("u", logit=mean, dims="row", observed=rng.random(rows) < 0.8)
    return model


@pytest.mark.parametrize("likelihood", ["Normal", "both"])
@pytest.mark.parametrize("kind", ["known", "learned", "switching"])
def test_bound_never_falls_and_ends_no_lower_than_that_of_full_vb(
    kind: str, likelihood: str
) -> None:
    model = learned(kind, likelihood, 0)
    fits = [
        svmp.fit(model, method, kernels=False, max_sweeps=30, tol=1e-6)
        for method in (None, svmp.FullVB())
    ]
    for fit in fits:
        bounds = fit.trace["bound"]
        assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[:-1])).all()
    assert fits[0].bound > fits[1].bound - 1e-3


@pytest.mark.parametrize("kernels", [False, True])
def test_resumed_run_gives_the_same_bits(kernels: bool, tmp_path: Path) -> None:
    model, path = learned("known", "both", 0), tmp_path / "run.svmp"
    whole = svmp.fit(model, kernels=kernels, max_sweeps=8, tol=0)
    svmp.fit(model, kernels=kernels, max_sweeps=5, tol=0, checkpoint=path)
    rest = svmp.fit(model, kernels=kernels, max_sweeps=8, tol=0, resume=path)
    np.testing.assert_array_equal(whole.trace["bound"], rest.trace["bound"])
    np.testing.assert_array_equal(whole.mean("x"), rest.mean("x"))
