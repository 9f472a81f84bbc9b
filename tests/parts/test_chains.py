"""Chains whose sequences lie in parts: the same q as from one table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import subspace_angles

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


def test_loadings_of_vectors_start_at_the_components_of_a_part() -> None:
    rng = np.random.default_rng(1)
    walk, C = rng.normal(size=(90, 2)), rng.normal(size=(4, 2))
    track = np.repeat(np.arange(9), 10)
    for t in range(1, 90):
        walk[t] += 0.9 * walk[t - 1] if track[t] == track[t - 1] else 0.0
    y = walk @ C.T + rng.normal(0, 0.1, (90, 4))

    def vectors(part: Any) -> svmp.Model:
        values = np.stack([part.a, part.b, part.c, part.d], axis=1)
        coords = {"row": len(values), "latent": 2, "from": 2, "sensor": 4}
        with svmp.Model(coords=coords) as model:
            A = svmp.MvNormal("A", mu=0, tau=np.eye(2), dims=("latent", "from"))
            first, dims = svmp.Normal.dist(0, 1), ("row", "latent")
            x = svmp.LinearGaussianChain("x", first, A, 1.0, sequence=part.track, dims=dims)
            loadings = svmp.MvNormal("C", mu=0, tau=np.eye(2), dims=("sensor", "latent"))
            noise = svmp.Gamma("noise", alpha=1, beta=0.1)
            mean = svmp.dot(loadings, x, dim="latent")
            svmp.Normal("y", mean, noise, dims=("row", "sensor"), observed=values)
        return model

    table = {"track": track, **dict(zip("abcd", y.T, strict=True))}
    parts = svmp.Parts(vectors, svmp.split(table, by="track", parts=3), own=["x"])
    fit = svmp.fit(parts, svmp.FullVB(), max_sweeps=1)
    assert subspace_angles(fit.mean("C"), C).max() < 0.1
    assert np.abs(np.linalg.eigvals(fit.mean("A"))).min() > 0.5
