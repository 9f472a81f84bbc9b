"""States of a chain start at different clusters of rows."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.inference.starts.start import start
from svmp.network.network import Network


@pytest.mark.parametrize("seed", range(5))
def test_states_start_at_clusters_that_all_emissions_agree_about(seed: int) -> None:
    rng = np.random.default_rng(1)
    state = np.repeat([0, 1, 2, 1, 0], 30)
    y, count = rng.normal(10.0 * state, 0.5), rng.poisson([1, 50, 200], (150, 3))
    with svmp.Model(coords={"state": 3, "to": 3, "row": 150}) as model:
        first = svmp.Dirichlet("first", a=1, dims="state")
        move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", first, move, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=0.001, dims="state")
        rate = svmp.Gamma("rate", alpha=0.1, beta=0.001, dims="state")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=4), dims="row", observed=y)
        counts = count[np.arange(150), state]
        svmp.Mixture("count", z, svmp.Poisson.dist(mu=rate), dims="row", observed=counts)
    q = start(Network(model), seed)
    means, rates = q.moments["mu"][:, 0], q.moments["rate"][:, 0]
    order = np.argsort(means)
    np.testing.assert_allclose(means[order], [0, 10, 20], atol=1.5)
    assert (np.diff(rates[order]) > 0).all()
    fit = svmp.fit(model, seed=seed)
    path = np.argsort(np.argsort(fit.mean("mu")))[fit.path("z")]
    np.testing.assert_array_equal(path, state)


@pytest.mark.parametrize("seed", range(3))
def test_states_of_categories_start_at_their_frequencies(seed: int) -> None:
    rng = np.random.default_rng(3)
    words = np.array([[0.7, 0.2, 0.1, 0, 0, 0], [0, 0, 0.1, 0.7, 0.2, 0], [0.1, 0, 0, 0, 0.2, 0.7]])
    state = np.repeat(np.tile([0, 1, 2], 4), 25)
    observed = np.array([rng.choice(6, p=words[k]) for k in state])
    with svmp.Model(coords={"state": 3, "to": 3, "row": 300, "word": 6}) as model:
        first = svmp.Dirichlet("first", a=1, dims="state")
        move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", first, move, sequence=np.arange(300) // 75, dims="row")
        phi = svmp.Dirichlet("phi", a=0.5, dims=("state", "word"))
        svmp.Mixture("word", z, svmp.Categorical.dist(p=phi), dims="row", observed=observed)
    q = start(Network(model), seed)
    found = q.natural["phi"] + 1
    found = found / found.sum(axis=1, keepdims=True)
    apart = np.abs(found[:, None] - words[None]).sum(axis=2)
    assert sorted(apart.argmin(axis=1)) == [0, 1, 2]
    assert apart.min(axis=1).max() < 0.4
