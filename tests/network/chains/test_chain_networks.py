"""Random networks with chains: the bound never falls, and loops agree with plain code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import svmp


def random_model(seed: int, states: int, keyed: str, emissions: tuple[str, ...]) -> svmp.Model:
    """Declare a chain with parameters that are shared or keyed, and some emissions."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, 4)
    night = rng.permutation(np.repeat(np.arange(4), lengths))
    rows = len(night)
    hour = rng.integers(0, 2, rows)
    coords = {"state": states, "to": states, "row": rows, "night": 4, "hour": 2, "word": 3}
    with svmp.Model(coords=coords) as model:
        start = svmp.Dirichlet("start", a=rng.uniform(0.2, 2, states), dims="state")
        dims = {"none": (), "hour": ("hour",), "night": ("night",)}[keyed]
        move = svmp.Dirichlet("move", a=rng.uniform(0.2, 2, states), dims=(*dims, "state", "to"))
        P: Any = move[hour] if keyed == "hour" else move
        z = svmp.DiscreteMarkovChain(
            "z", start, P, sequence=night, sequence_dim="night", dims="row"
        )
        if "normal" in emissions:
            mu = svmp.Normal("mu", mu=0, tau=0.1, dims="state")
            tau = svmp.Gamma("tau", alpha=1, beta=1)
            y = np.where(rng.random(rows) < 0.3, np.nan, rng.normal(0, 2, rows))
            y[0] = 0.0
            normal = svmp.Normal.dist(mu=mu, tau=tau)
            svmp.Mixture("y", z, normal, dims="row", observed=y, missing=True)
        if "poisson" in emissions:
            rate = svmp.Gamma("rate", alpha=1, beta=0.5, dims="state")
            count = rng.poisson(3, rows)
            svmp.Mixture("count", z, svmp.Poisson.dist(mu=rate), dims="row", observed=count)
        if "word" in emissions:
            phi = svmp.Dirichlet("phi", a=0.5, dims=("state", "word"))
            words = rng.integers(0, 3, rows)
            svmp.Mixture("word", z, svmp.Categorical.dist(p=phi), dims="row", observed=words)
    return model


@settings(max_examples=12)
@given(
    seed=st.integers(0, 1000),
    states=st.integers(1, 3),
    keyed=st.sampled_from(["none", "hour", "night"]),
    emissions=st.sampled_from([("normal",), ("poisson", "normal"), ("word",)]),
)
def test_bound_never_falls(seed: int, states: int, keyed: str, emissions: tuple[str, ...]) -> None:
    model = random_model(seed, states, keyed, emissions)
    plain = svmp.fit(model, svmp.FullVB(), seed=seed, kernels=False, max_sweeps=8, tol=0)
    bounds = plain.trace["bound"]
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[:-1])).all()
    compiled = svmp.fit(model, svmp.FullVB(), seed=seed, kernels=True, max_sweeps=8, tol=0)
    np.testing.assert_allclose(compiled.trace["bound"], bounds, rtol=1e-10)


@pytest.mark.parametrize("keyed", ["hour", "night"])
@pytest.mark.parametrize(
    "method",
    [
        svmp.Memoized(over="night", parts=2),
        pytest.param(svmp.Batch(2, over="night"), marks=pytest.mark.slow),
        pytest.param(svmp.Children(3), marks=pytest.mark.slow),
    ],
)
def test_stochastic_methods_reach_the_bound_of_full_vb(method: Any, keyed: str) -> None:
    model = random_model(3, 2, keyed, ("normal", "poisson"))
    full = svmp.fit(model, svmp.FullVB(), seed=1, init=near(model))
    fit = svmp.fit(model, method, seed=1, init=near(model), max_sweeps=400, tol=1e-5)
    assert fit.bound == pytest.approx(full.bound, abs=0.3)
    if isinstance(method, svmp.Memoized):
        assert fit.bound == pytest.approx(full.bound, abs=1e-3)


def near(model: svmp.Model) -> dict[str, Any]:
    return {"mu": [-1.5, 1.5], "rate": {"alpha": [2.0, 6.0], "beta": 1.5}}


def test_ragged_sequences_are_those_one_by_one() -> None:
    rng = np.random.default_rng(2)
    lengths, P = [3, 1, 7, 2], np.array([[0.9, 0.1], [0.3, 0.7]])
    y, night = rng.normal(size=13), np.repeat(np.arange(4), lengths)

    def bound(some: np.ndarray) -> float:
        with svmp.Model(coords={"state": 2, "row": int(some.sum())}) as model:
            init = svmp.data([0.4, 0.6], dims="state")
            z = svmp.DiscreteMarkovChain("z", init, P, sequence=night[some], dims="row")
            emission = svmp.Normal.dist(mu=svmp.data([-1.0, 1.0], dims="state"), tau=2)
            svmp.Mixture("y", z, emission, dims="row", observed=y[some])
        return svmp.fit(model).bound

    alone = [bound(night == n) for n in range(4)]
    assert bound(np.ones(13, dtype=bool)) == pytest.approx(sum(alone), abs=1e-11)
