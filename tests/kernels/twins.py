"""Compiled and plain code on the same network, step by step: shared by the tests of loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import svmp
from svmp.network.network import Network
from tests.inference.tools import advance, assert_same
from tests.network.tools import anywhere, bound, copy
from tests.programs import compile_means

METHODS = {
    "full VB": (svmp.FullVB(), svmp.Constant(1.0)),
    "growing": (svmp.Growing(first=0.4), svmp.Constant(1.0)),
    **{
        f"children {C} {o} {'shared' if share else 'own'}": (
            svmp.Children(C, option=o, share_draw=share),
            svmp.Nodewise(),
        )
        for C in (1, 4)
        for o in "ab"
        for share in (True, False)
    },
    **{f"batch {n} {o}": (svmp.Batch(n, option=o), svmp.Nodewise()) for n in (1, 9) for o in "ab"},
}


def both(model: svmp.Model, seed: int, method: Any, steps: Any, iterations: int = 3) -> None:
    """Check that compiled and plain code get the same q and the same bound."""
    network = Network(model)
    plain = anywhere(network, seed)
    compiled = compile_means(network, copy(plain))
    assert compiled.row_moments
    advance(network, plain, method, iterations, steps)
    advance(network, compiled, method, iterations, steps)
    assert_same(compiled, plain, 1e-9)
    assert bound(network, compiled) == pytest.approx(bound(network, plain), rel=1e-9)


def declare_rows(
    draw: Callable[..., Any], rng: np.random.Generator, mu: Any, item: Any, missing: Any
) -> None:
    """Declare observed rows with a given mean, or hidden rows that others read."""
    rows = len(item)
    noise = draw(st.sampled_from(["known", "shared", "by item", "by row"]))
    tau: Any = 1.5
    if noise == "shared":
        tau = svmp.Gamma("tau", alpha=2, beta=1)
    elif noise == "by item":
        tau = svmp.Gamma("tau", alpha=2, beta=1, dims="item")[item]
    elif noise == "by row":
        tau = rng.gamma(2, 1, rows)
    if draw(st.booleans()):
        hidden = svmp.Normal("hidden", mu=mu, tau=tau, dims="row")
        key = np.concatenate([np.arange(rows), rng.integers(rows, size=3)])
        seen = rng.normal(3, 1, rows + 3)
        svmp.Normal("r", mu=hidden[key], tau=2, dims="seen", observed=seen)
    else:
        table(draw, mu, tau, rng.normal(3, 1, rows), missing)


def table(draw: Callable[..., Any], mu: Any, tau: Any, stars: Any, missing: Any) -> None:
    """Declare the rows: Normals, or Bernoullis with the same logit, which may be hidden."""
    kind = draw(st.sampled_from(["Normal", "Bernoulli", "hidden Bernoulli"]))
    if kind == "Normal":
        svmp.Normal("r", mu=mu, tau=tau, dims="row", observed=stars, missing=missing)
        return
    if kind == "hidden Bernoulli":
        svmp.Bernoulli("g", logit=mu, dims="row")
    svmp.Bernoulli("r", logit=mu - 3.5, dims="row", observed=stars > 3, missing=missing)
