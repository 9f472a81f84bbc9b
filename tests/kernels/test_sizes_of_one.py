"""Compiled loops and plain code agree where some or all sizes are 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.network.network import Network
from tests.inference.tools import assert_same
from tests.kernels.categorical.test_updater import optimise_locals, unstored
from tests.network.tools import anywhere, bound
from tests.programs import compile_means, iterate

HALF = svmp.Constant(0.5)
METHODS: dict[str, tuple[Any, Any]] = {
    "FullVB": (svmp.FullVB(), svmp.Constant(1.0)),
    "Growing": (svmp.Growing(1), svmp.Constant(1.0)),
    **{f"Children {n} {o}": (svmp.Children(n, option=o), HALF) for n in (1, 2) for o in "ab"},
    **{f"Batch {n} {o}": (svmp.Batch(n, option=o), HALF) for n in (1, 2) for o in "ab"},
    "groups": (svmp.Batch(1, over="row"), HALF),
}


def normals(n: int, k: int, d: int) -> svmp.Model:
    """A mixture of k Normals with n rows of d numbers."""
    x = np.random.default_rng(n).normal(size=(n, d))
    with svmp.Model(coords={"row": n, "k": k, "d": d}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=1, dims=("k", "d"))
        tau = svmp.Gamma("tau", alpha=2, beta=2, dims="k")
        svmp.Mixture("x", z, svmp.Normal.dist(mu=mu, tau=tau), dims=("row", "d"), observed=x)
    return model


def number(n: int, k: int, d: int) -> svmp.Model:
    """A mixture of k Normals with n rows of one number each, and a mean that they share."""
    x = np.random.default_rng(n).normal(size=n)
    with svmp.Model(coords={"row": n, "k": k}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=1, dims="k")
        shift = svmp.Normal("shift", mu=0, tau=1)
        svmp.Mixture("x", z, svmp.Normal.dist(mu=mu + shift, tau=1), dims="row", observed=x)
    return model


def hidden(n: int, k: int, d: int) -> svmp.Model:
    """Effects of rows that come from a mixture of k Normals, with d measurements each."""
    x = np.random.default_rng(n).normal(size=(d, n))
    with svmp.Model(coords={"row": n, "k": k, "time": d}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=1, dims="k")
        effect = svmp.Mixture("effect", z, svmp.Normal.dist(mu=mu, tau=2), dims="row")
        svmp.Normal("x", mu=effect, tau=1, dims=("time", "row"), observed=x)
    return model


def vectors(n: int, k: int, d: int) -> svmp.Model:
    """A mixture of k MvNormals of length d."""
    x = np.random.default_rng(n).normal(size=(n, d))
    with svmp.Model(coords={"row": n, "k": k, "d": d}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        mu = svmp.MvNormal("mu", mu=0, tau=np.eye(d), dims=("k", "d"))
        tau = svmp.Wishart("tau", nu=d + 1, V=np.eye(d), dims=("k", "d", "d"))
        component = svmp.MvNormal.dist(mu=mu, tau=tau)
        svmp.Mixture("x", z, component, dims=("row", "d"), observed=x)
    return model


def topics(n: int, k: int, d: int) -> svmp.Model:
    """Topics: d documents of n words in all, from a vocabulary of d words."""
    rng = np.random.default_rng(n)
    with svmp.Model(coords={"row": n, "k": k, "document": d, "word": d}) as model:
        theta = svmp.Dirichlet("theta", a=0.5, dims=("document", "k"))
        phi = svmp.Dirichlet("phi", a=0.3, dims=("k", "word"))
        z = svmp.Categorical("z", p=theta[rng.integers(d, size=n)], dims="row")
        words = rng.integers(d, size=n)
        svmp.Mixture("words", z, svmp.Categorical.dist(p=phi), dims="row", observed=words)
    return model


def poissons(n: int, k: int, d: int) -> svmp.Model:
    """A mixture that no loop serves."""
    x = np.random.default_rng(n).poisson(3, n)
    with svmp.Model(coords={"row": n, "k": k}) as model:
        z = svmp.Categorical("z", p=svmp.Dirichlet("w", a=1, dims="k"), dims="row")
        rate = svmp.Gamma("rate", alpha=1, beta=1, dims="k")
        svmp.Mixture("x", z, svmp.Poisson.dist(mu=rate), dims="row", observed=x)
    return model


def factors(n: int, k: int, d: int) -> svmp.Model:
    """Matrix factorization with k factors, biases and a hierarchy; d users and items."""
    rng = np.random.default_rng(n)
    user, item = rng.integers(d, size=(2, n))
    with svmp.Model(coords={"user": d, "item": d, "k": k, "row": n}) as model:
        alpha = svmp.Gamma("alpha", alpha=2, beta=2, dims="k")
        u = svmp.Normal("u", mu=0, tau=alpha, dims=("user", "k"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))
        b = svmp.Normal("b", mu=0, tau=1, dims="item")
        tau = svmp.Gamma("tau", alpha=2, beta=2)
        mu = svmp.dot(u[user], v[item]) + b[item]
        svmp.Normal("x", mu=mu, tau=tau, dims="row", observed=rng.normal(size=n))
    return model


def full_factors(n: int, k: int, d: int) -> svmp.Model:
    """The same with full covariances."""
    rng = np.random.default_rng(n)
    user, item = rng.integers(d, size=(2, n))
    with svmp.Model(coords={"user": d, "item": d, "k": k, "row": n}) as model:
        u = svmp.MvNormal("u", mu=0, tau=np.eye(k), dims=("user", "k"))
        v = svmp.MvNormal("v", mu=0, tau=np.eye(k), dims=("item", "k"))
        b = svmp.Normal("b", mu=0, tau=1, dims="item")
        mu = svmp.dot(u[user], v[item]) + b[item]
        svmp.Normal("x", mu=mu, tau=1, dims="row", observed=rng.normal(size=n))
    return model


def logits(n: int, k: int, d: int) -> svmp.Model:
    """Answers of n people to d questions, with k abilities."""
    rng = np.random.default_rng(n)
    with svmp.Model(coords={"row": n, "item": d, "k": k}) as model:
        able = svmp.Normal("able", mu=0, tau=1, dims=("row", "k"))
        slope = svmp.Normal("slope", mu=1, tau=1, dims=("item", "k"))
        logit = svmp.dot(able, slope)
        svmp.Bernoulli("x", logit=logit, dims=("row", "item"), observed=rng.random((n, d)) < 0.5)
    return model


def shared_component(n: int, k: int, d: int) -> svmp.Model:
    """Groups of rows with a common component among linear means."""
    rng = np.random.default_rng(n)
    key = rng.integers(d, size=n)
    with svmp.Model(coords={"row": n, "group": d, "k": k}) as model:
        z = svmp.Categorical("z", p=svmp.Dirichlet("w", a=1, dims="k"), dims="group")
        slope = svmp.Normal("slope", mu=0, tau=1, dims="k")
        level = svmp.Normal("level", mu=0, tau=1, dims="group")
        component = svmp.Normal.dist(mu=level[key] + slope * rng.normal(size=n), tau=1)
        svmp.Mixture("x", z[key], component, dims="row", observed=rng.normal(size=n))
    return model


NETWORKS = [
    normals, number, hidden, vectors, topics, poissons, factors, full_factors, logits,
    shared_component,
]  # fmt: skip
SIZES = [(1, 1, 1), (5, 1, 1), (5, 1, 3), (1, 2, 2), (5, 2, 1)]


CASES = [
    pytest.param(
        network,
        sizes,
        marks=pytest.mark.slow if sizes in ((5, 1, 1), (5, 2, 1)) else (),
        id=f"{network.__name__} {sizes}",
    )
    for network in NETWORKS
    for sizes in SIZES
]


@pytest.mark.parametrize(("make", "sizes"), CASES)
def test_loops_and_plain_code_take_the_same_steps(make: Any, sizes: Any) -> None:
    for label, (method, steps) in METHODS.items():
        network = Network(make(*sizes))
        if label == "groups" and not divides(network):
            continue
        plain = anywhere(network, 1)
        looped = compile_means(network, unstored(network, plain, method))
        for iteration in (1, 2, 3):
            optimise_locals(network, plain, looped)
            for q in (plain, looped):
                iterate(network, q, method, steps, 0, iteration)
        optimise_locals(network, plain, looped)
        assert_same(looped, plain, 1e-8, looped.natural)
        assert bound(network, looped) == pytest.approx(bound(network, plain), rel=1e-8), label


@pytest.mark.parametrize(("make", "sizes"), CASES)
def test_every_fit_reports_the_bound_of_its_q(make: Any, sizes: Any) -> None:
    network = Network(make(*sizes))
    for method in (None, *(m for m, _ in METHODS.values())):
        if getattr(method, "over", None) is not None and not divides(network):
            continue
        fit = svmp.fit(network.model, method, max_sweeps=4, seed=2)
        q = anywhere(network, 0)
        for name, variable in network.hidden.items():
            natural = variable.family.natural(**fit.posteriors[name].parameters)
            q.natural[name] = np.reshape(natural, (variable.size, -1))
            q.moments[name] = variable.family.moments(q.natural[name])
        assert fit.bound == pytest.approx(bound(network, q), rel=1e-8)


def divides(network: Network) -> bool:
    """Whether batches of rows can be drawn with their local variables."""
    try:
        network.grouped("row")
    except svmp.ModelError:
        return False
    return True
