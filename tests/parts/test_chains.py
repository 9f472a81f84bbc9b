"""Chains whose sequences lie in parts: the same q as from one table."""

from __future__ import annotations

from pathlib import Path
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
    np.testing.assert_array_equal(fit.path("z"), whole.path("z"))
    later = np.flatnonzero(np.r_[False, NIGHT[1:] == NIGHT[:-1]])
    np.testing.assert_allclose(fit["z"].pairs(later), whole["z"].pairs(later), atol=1e-3)
    np.testing.assert_allclose(fit["z"].filtered(), whole["z"].filtered(), atol=1e-3)
    draws = fit.draw(["z"], 4000, seed=1)["z"]
    both = (draws[:, later] * draws[:, later - 1]).mean(axis=0)
    np.testing.assert_allclose(both, whole["z"].pairs(later)[:, 1, 1], atol=0.03)


def with_noise(part: Any) -> svmp.Model:
    """Declare a chain of states whose means and precisions need a visit each."""
    with svmp.Model(coords={"state": 2, "to": 2, "row": len(part)}) as model:
        start = svmp.Dirichlet("start", a=1, dims="state")
        move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", start, move, sequence=part.night, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=0.01, dims="state")
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="state")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=part.y)
    return model


def walk_with_noise(part: Any) -> svmp.Model:
    """Declare a random walk with two unknown precisions."""
    with svmp.Model(coords={"row": len(part)}) as model:
        step = svmp.Gamma("step", alpha=1, beta=1)
        noise = svmp.Gamma("noise", alpha=1, beta=1)
        x = svmp.GaussianRandomWalk("x", tau=step, sequence=part.night, dims="row")
        svmp.Normal("y", mu=x, tau=noise, dims="row", observed=part.y)
    return model


@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "plain"])
@pytest.mark.parametrize(
    ("declare", "order"),
    [
        (with_noise, ("z", "start", "move", "mu", "tau")),
        (walk_with_noise, ("x", "step", "noise")),
    ],
)
def test_sequences_in_parts_have_the_bounds_of_one_table_in_every_sweep(
    declare: Any, order: tuple[str, ...], kernels: bool
) -> None:
    table = svmp.split(TABLE, by="night", parts=1).load(0)
    begun = svmp.fit(declare(table), svmp.FullVB(order=order), max_sweeps=1)
    options: dict[str, Any] = {
        "init": {name: begun[name] for name in order[1:]},
        "max_sweeps": 6,
        "tol": 0,
        "bound_every": 1,
        "kernels": kernels,
    }
    whole = svmp.fit(declare(table), svmp.FullVB(order=order), **options)
    parts = svmp.Parts(declare, svmp.split(TABLE, by="night", parts=5), own=order[:1])
    fit = svmp.fit(parts, svmp.FullVB(order=order), **options)
    np.testing.assert_allclose(fit.trace["bound"], whole.trace["bound"], rtol=1e-11)
    for name in order[1:]:
        np.testing.assert_allclose(
            fit.posteriors[name].natural, whole.posteriors[name].natural, rtol=1e-8
        )


def test_matrices_by_row_and_saved_fits_of_sequences_in_parts(tmp_path: Path) -> None:
    """The matrices that lead to rows may be others in each part."""
    table = TABLE | {"hour": np.arange(len(NIGHT)) // 20 % 2}

    def by_hour(part: Any) -> svmp.Model:
        hours = sorted({*np.asarray(part.hour).tolist()})
        coords = {"state": 2, "to": 2, "row": len(part.y), "hour": [f"h{h}" for h in hours]}
        with svmp.Model(coords=coords) as model:
            move = svmp.Dirichlet("move", a=1, dims=("hour", "state", "to"))
            key = [f"h{h}" for h in np.asarray(part.hour)]
            z = svmp.DiscreteMarkovChain(
                "z", [0.4, 0.6], move[key], sequence=part.night, dims="row"
            )
            mu = svmp.data([0.0, 5.0], dims="state")
            svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=0.2), dims="row", observed=part.y)
        return model

    halves = svmp.split(table, by="night", parts=4)
    whole = svmp.fit(
        by_hour(svmp.split(table, by="night", parts=1).load(0)), svmp.FullVB(), tol=1e-11
    )
    fit = svmp.fit(svmp.Parts(by_hour, halves, own=["z"]), svmp.FullVB(), tol=1e-11)
    fit.save(tmp_path / "fit")
    for found in (fit, svmp.load(tmp_path / "fit")):
        np.testing.assert_array_equal(found.path("z"), whole.path("z"))
        later = np.flatnonzero(np.r_[False, NIGHT[1:] == NIGHT[:-1]])
        np.testing.assert_allclose(found["z"].pairs(later), whole["z"].pairs(later), atol=1e-4)


def test_draws_of_vectors_in_parts_have_the_covariances_of_one_table() -> None:
    def walk(part: Any) -> svmp.Model:
        with svmp.Model(coords={"row": len(part.y), "d": 1}) as model:
            tau = svmp.Gamma("tau", alpha=2, beta=1)
            first = svmp.MvNormal.dist(mu=[0.0], tau=[[0.1]])
            x = svmp.LinearGaussianChain(
                "x", first, [[1.0]], tau, sequence=part.night, dims=("row", "d")
            )
            svmp.Normal("y", mu=x[:, 0], tau=1, dims="row", observed=part.y)
        return model

    whole = svmp.fit(walk(svmp.split(TABLE, by="night", parts=1).load(0)), svmp.FullVB(), tol=1e-11)
    parts = svmp.Parts(walk, svmp.split(TABLE, by="night", parts=3), own=["x"])
    fit = svmp.fit(parts, svmp.FullVB(), tol=1e-11)
    rows = np.arange(len(NIGHT))
    np.testing.assert_allclose(fit["x"].pairs(rows), whole["x"].pairs(rows), atol=1e-5)
    ours, theirs = (f.draw(["x"], 20_000, seed=1)["x"][..., 0] for f in (fit, whole))
    np.testing.assert_allclose(np.cov(ours.T), np.cov(theirs.T), atol=0.03)


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
