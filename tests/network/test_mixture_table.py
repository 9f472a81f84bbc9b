"""Mixtures of all rows at once: the same messages and densities as row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.starts.start import start
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network

ROWS = 30


def component(kind: str, dims: tuple[str, ...]) -> Any:
    if kind == "normal":
        mu = svmp.Normal("mu", mu=0, tau=0.1, dims=dims)
        return svmp.Normal.dist(mu=mu, tau=svmp.Gamma("tau", alpha=2, beta=1, dims="k"))
    if kind == "poisson":
        return svmp.Poisson.dist(mu=svmp.Gamma("rate", alpha=1, beta=1, dims=dims))
    if kind == "gamma":
        return svmp.Gamma.dist(alpha=2, beta=svmp.Gamma("rate", alpha=1, beta=1, dims=dims))
    if kind == "bernoulli":
        return svmp.Bernoulli.dist(p=svmp.Beta("p", alpha=1, beta=1, dims=dims))
    if kind == "categorical":
        return svmp.Categorical.dist(p=svmp.Dirichlet("p", a=1, dims=(*dims, "word")))
    assert kind == "mvnormal"
    mu = svmp.MvNormal("mu", mu=0, tau=np.eye(2), dims=("k", "axis"))
    tau = svmp.Wishart("tau", nu=3, V=np.eye(2), dims=("k", "axis", "axis"))
    return svmp.MvNormal.dist(mu=mu, tau=tau)


def network(kind: str, items: bool) -> Network:
    rng = np.random.default_rng(3)
    dims = ("row", "item") if items else ("row",)
    shape = (ROWS, 4) if items else (ROWS,)
    values = {
        "normal": rng.normal(size=shape),
        "gamma": rng.gamma(2, size=shape),
        "mvnormal": rng.normal(size=(ROWS, 2)),
    }.get(kind, rng.integers(0, 2, shape))
    if kind == "mvnormal":
        dims = ("row", "axis")
    coords = {"row": ROWS, "item": 4, "k": 3, "word": 5, "axis": 2}
    with svmp.Model(coords=coords) as model:
        share = svmp.Dirichlet("share", a=1, dims="k")
        z = svmp.Categorical("z", p=share, dims="row")
        own = component(kind, ("k", "item") if items else ("k",))
        svmp.Mixture("y", z, own, dims=dims, observed=values)
    return Network(model)


def plain_sum(net: Network, q: Beliefs, name: str) -> Any:
    """Return the sum of the messages of the rows of 'y' to each element, one row after another."""
    (edge,) = (e for e in net.edges[name] if e.conditional.variable.name == "y")
    total = np.zeros((net.hidden[name].size, net.hidden[name].family.size))
    owner, rows = edge.rows_of(np.arange(net.hidden[name].size))
    for element, row in zip(owner, rows, strict=True):
        at = np.array([element]), np.array([row])
        total[element] += edge.conditional.message(q, edge.parent, *at)[0]
    return total


CASES = [
    (kind, items)
    for kind in ("normal", "poisson", "gamma", "bernoulli", "categorical", "mvnormal")
    for items in ((False,) if kind == "mvnormal" else (False, True))
]


@pytest.mark.parametrize(("kind", "items"), CASES)
def test_sums_of_all_rows_are_those_of_single_rows(kind: str, items: bool) -> None:
    net = network(kind, items)
    q = start(net, 0, {}, {})
    served = 0
    for name in (n for n in net.hidden if n != "share"):
        (edge,) = (e for e in net.edges[name] if e.conditional.variable.name == "y")
        found = edge.table_message(q, np.arange(net.hidden[name].size))
        if found is not None:
            np.testing.assert_allclose(found, plain_sum(net, q, name), rtol=1e-10, atol=1e-12)
            served += 1
    assert served >= 2


def test_choices_by_a_key_are_not_a_grid() -> None:
    rng = np.random.default_rng(0)
    with svmp.Model(coords={"person": 5, "k": 2, "row": 20}) as model:
        z = svmp.Categorical("z", p=svmp.data([0.5, 0.5], dims="k"), dims="person")
        mu = svmp.Normal("mu", mu=0, tau=1, dims="k")
        component = svmp.Normal.dist(mu=mu, tau=1)
        key = rng.integers(0, 5, 20)
        svmp.Mixture("y", z[key], component, dims="row", observed=rng.normal(size=20))
    net = Network(model)
    q = start(net, 0, {}, {})
    assert net.edges["mu"][0].table_message(q, np.arange(2)) is None
