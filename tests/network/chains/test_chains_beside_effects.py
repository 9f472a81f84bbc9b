"""Linear chains beside effects in one mean, against dense algebra.

With known precisions the posterior is Normal. Where q is a product of blocks its means are those of
the posterior, and its bound is the log evidence less the sum of log|P_bb| of its blocks over the
log-determinant of the whole precision matrix P, halved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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


CHAINS = ("vectors of 1", "vectors of 2", "vectors of 3", "rotating", "trend", "ragged")
BESIDE = ("slope", "groups")


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


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("chain", CHAINS)
def test_means_and_bound_are_those_of_dense_algebra(chain: str, beside: str, kernels: bool) -> None:
    y = observations(5)
    model, parts, names = declare(chain, beside, y)
    means, bound = truth(parts, y, NOISE)
    for given in ({}, {"method": svmp.FullVB()}, {"joint": "auto"}):
        fit = svmp.fit(model, **given, kernels=kernels, tol=1e-10, max_sweeps=2000)
        if "joint" not in given:  # whose q is no product of the effects
            assert fit.bound == pytest.approx(bound, abs=1e-5)
        for name, mean in zip(names, means, strict=True):
            np.testing.assert_allclose(np.ravel(fit.mean(name)), mean, atol=1e-3)
