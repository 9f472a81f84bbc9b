"""Chains whose sequences lie in parts: the same q as from one table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp

NIGHT = np.repeat(np.arange(12), np.arange(12) % 4 + 2)
RNG = np.random.default_rng(0)
TABLE = {"night": NIGHT, "y": RNG.normal(5.0 * (np.arange(len(NIGHT)) // 3 % 2), 1)}


def declare(part: Any) -> svmp.Model:
    with svmp.Model(coords={"state": 2, "to": 2, "row": len(part.y)}) as model:
        start = svmp.Dirichlet("start", a=1, dims="state")
        move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", start, move, sequence=part.night, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=0.01, dims="state")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=1), dims="row", observed=part.y)
    return model


@pytest.mark.parametrize("method", [None, svmp.FullVB(), svmp.Memoized()])
def test_sequences_in_parts_give_the_q_of_one_table(method: Any) -> None:
    class Whole:
        night, y = TABLE["night"], TABLE["y"]

    init = {"mu": [0.0, 5.0]}
    whole = svmp.fit(declare(Whole), svmp.FullVB(), init=init, tol=1e-10)
    parts = svmp.Parts(declare, svmp.split(TABLE, by="night", parts=3), own=["z"])
    fit = svmp.fit(parts, method, init=init, tol=1e-10)
    assert fit.bound == pytest.approx(whole.bound, abs=1e-6)
    np.testing.assert_allclose(fit["move"].a, whole["move"].a, atol=1e-3)
    assert fit.mean("z").shape == whole.mean("z").shape
