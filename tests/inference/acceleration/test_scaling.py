"""Scales of factors: the best ones, beside numerical optimisation, and the exact bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import svmp
from svmp.inference.acceleration.factor_rotating import Relevance
from svmp.inference.acceleration.scaling import (
    Operand,
    best_scales,
    scale_factors,
    scaled_products,
)
from svmp.network.network import Network
from tests.network.tools import anywhere, bound

ROWS, K = 200, 3
SIZES = {"a": 9, "b": 7, "c": 5}


def product(kind: str = "three") -> svmp.Model:
    """Declare a product of variables with the priors of a kind."""
    rng = np.random.default_rng(3)
    keys = {dim: rng.integers(n, size=ROWS) for dim, n in SIZES.items()}
    y = np.prod([rng.normal(size=(n, K))[keys[d]] for d, n in SIZES.items()], axis=0).sum(axis=1)
    with svmp.Model(coords={**SIZES, "k": K}) as model:
        alpha: Any = svmp.Gamma("alpha", alpha=[0.5, 1.0, 2.0], beta=0.3, dims="k")
        known = np.array([1.0, 2.0, 3.0])
        x = svmp.Normal("x", mu=0.1 if kind == "mean" else 0, tau=2, dims=("a", "k"))
        z = svmp.Normal("z", mu=0, tau=known if kind == "by factor" else 1, dims=("b", "k"))
        if kind == "vectors":
            z = svmp.MvNormal("w", mu=0, tau=np.diag(known), dims=("b", "k"))
        if kind == "shared alpha":
            z = svmp.Normal("w", mu=0, tau=alpha, dims=("b", "k"))
        parts: list[Any] = [x[keys["a"]], z[keys["b"]]]
        if not kind.startswith("pair"):
            learned = kind in ("learned", "shared alpha", "vectors")
            third = svmp.Normal("v", mu=0, tau=alpha if learned else 0.5, dims=("c", "k"))
            parts.append(third[keys["c"]])
        if kind == "pair, learned":
            parts[1] = svmp.Normal("v", mu=0, tau=alpha, dims=("b", "k"))[keys["b"]]
        mean = parts[0] * parts[1]
        for part in parts[2:]:
            mean = mean * part
        level = svmp.Normal("level", mu=0, tau=0.1)
        svmp.Normal("y", mu=mean.sum("k") + level, tau=2, observed=y + rng.normal(size=ROWS))
    return model


@pytest.mark.parametrize("learned", [(False, False), (False, True), (True, True, False)])
@pytest.mark.parametrize("seed", range(3))
def test_scales_are_the_best(learned: tuple[bool, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = len(learned)
    sums, n = np.exp(2 * rng.normal(size=(count, K))), rng.integers(2, 50, size=count)
    priors = [Relevance("alpha", np.full(K, 0.7), np.full(K, 0.2)) if r else None for r in learned]

    def value(logs: np.ndarray, k: int) -> float:
        """The terms of the bound, where the last scale follows from the others."""
        all_logs = np.append(logs, -np.sum(logs))
        total = 0.0
        for f, log in enumerate(all_logs):
            square = sums[f, k] * np.exp(2 * log)
            total += n[f] * log
            total -= (0.7 + n[f] / 2) * np.log(0.2 + square / 2) if learned[f] else square / 2
        return total

    found = best_scales(sums, n, priors)
    assert found is not None
    np.testing.assert_allclose(np.prod(found, axis=0), 1, rtol=1e-12)
    for k in range(K):
        best = minimize(lambda logs, k=k: -value(logs, k), np.zeros(count - 1), tol=1e-10)
        assert value(np.log(found[:-1, k]), k) >= -best.fun - 1e-6
    squares = sums * found**2
    assert best_scales(squares, n, priors) is None


@pytest.mark.parametrize("kind", ["three", "learned", "vectors", "by factor", "pair, learned"])
def test_bound_rises_and_means_of_rows_stay(kind: str) -> None:
    network = Network(product(kind))
    q = anywhere(network, 2)
    (found,) = scaled_products(network, ())
    table = network.observed["y"].conditional
    before, rows = bound(network, q), table.variable.rows
    mu = table.slots["mu"].moments(q, rows)
    earlier = {"x": q.moments["x"][:, :1].copy()}
    scale_factors(network, q, found, earlier)
    assert bound(network, q) > before + 0.1
    np.testing.assert_allclose(table.slots["mu"].moments(q, rows), mu, rtol=1e-8)
    np.testing.assert_allclose(earlier["x"], q.moments["x"][:, :1], rtol=1e-10)
    for name in (operand.name for operand in found.operands):
        moments = network.hidden[name].family.moments(q.natural[name])
        np.testing.assert_allclose(q.moments[name], moments, rtol=1e-7, atol=1e-10)
    after = bound(network, q)
    scale_factors(network, q, found, {})  # nothing is left to gain
    assert bound(network, q) == pytest.approx(after, abs=1e-5)


def test_which_variables_are_scaled() -> None:
    def scaled(kind: str, joined: tuple[str, ...] = ()) -> list[str]:
        found: list[tuple[Operand, ...]] = [
            p.operands for p in scaled_products(Network(product(kind)), joined)
        ]
        return [operand.name for operands in found for operand in operands]

    assert scaled("three") == ["x", "z", "v"]
    assert scaled("three", joined=("x",)) == ["z", "v"]
    assert scaled("mean") == ["z", "v"]
    assert scaled("shared alpha") == []  # only x has a prior of its own
    assert scaled("pair") == []  # known precisions: factors are rotated
    assert scaled("pair, learned") == ["x", "v"]


def test_few_sweeps_reach_the_bound_of_many() -> None:
    fast = svmp.fit(product("learned"), max_sweeps=60, tol=0)
    slow = svmp.fit(product("learned"), svmp.Growing(1.0, relax=False), max_sweeps=400, tol=0)
    assert fast.bound > slow.bound - 0.5
    assert (np.diff(fast.trace["bound"]) > -1e-8).all()
