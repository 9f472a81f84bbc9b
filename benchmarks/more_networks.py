"""Ordinary networks that were once slower than BayesPy's: several outcomes, counts, small ones.

As in everyday_networks.py; peers/bayespy_more.py has them by the same names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from everyday_networks import RNG, Drawn, Network, noise

import svmp


def outcomes_alike(rng: RNG, rows: int) -> Drawn:
    times, x = rows // 20, rng.normal(size=(rows // 20, 5))
    y = x @ rng.normal(size=(5, 20)) + rng.normal(size=(times, 20))
    with svmp.Model(coords={"time": times, "feature": 5, "outcome": 20}) as model:
        w = svmp.MvNormal("w", mu=0, tau=0.01 * np.eye(5), dims=("outcome", "feature"))
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="outcome")
        mu = svmp.dot(svmp.data(x, dims=("time", "feature")), w, dim="feature")
        svmp.Normal("y", mu=mu, tau=tau, dims=("time", "outcome"), observed=y)
    return {"x": x, "y": y}, model


def outcomes_correlated(rng: RNG, rows: int) -> Drawn:
    x = rng.normal(size=(rows, 6))
    y = x @ rng.normal(size=(6, 4)) + rng.multivariate_normal(np.zeros(4), np.eye(4) + 0.5, rows)
    with svmp.Model(coords={"feature": 6, "outcome": 4}) as model:
        w = svmp.MvNormal("w", mu=0, tau=0.01 * np.eye(4), dims=("feature", "outcome"))
        tau = svmp.Wishart("tau", nu=5, V=np.eye(4) / 4, dims=("outcome", "outcome"))
        mu = svmp.dot(x, w, dim="feature")
        svmp.MvNormal("y", mu=mu, tau=tau, dims=("row", "outcome"), observed=y)
    return {"x": x, "y": y}, model


def mixture_of(component: Any, y: Any, components: int, coords: dict[str, int]) -> svmp.Model:
    dims = ("row", *coords)
    with svmp.Model(coords={"row": len(y), "component": components, **coords}) as model:
        share = svmp.Dirichlet("share", a=1, dims="component")
        z = svmp.Categorical("z", p=share, dims="row")
        svmp.Mixture("y", z, component(("component", *coords)), dims=dims, observed=y)
    return model


def mixture_of_counts(rng: RNG, rows: int) -> Drawn:
    y = rng.poisson(np.array([1, 5, 12, 30.0])[rng.integers(0, 4, rows)])

    def component(dims: tuple[str, ...]) -> Any:
        return svmp.Poisson.dist(mu=svmp.Gamma("rate", alpha=1, beta=0.1, dims=dims))

    return {"y": y, "components": 4}, mixture_of(component, y, 4, {})


def mixture_of_answers(rng: RNG, rows: int) -> Drawn:
    y = rng.random((rows // 50, 50)) < rng.beta(0.5, 0.5, (10, 50))[rng.integers(0, 10, rows // 50)]

    def component(dims: tuple[str, ...]) -> Any:
        return svmp.Bernoulli.dist(p=svmp.Beta("p", alpha=1, beta=1, dims=dims))

    return {"y": y, "components": 10}, mixture_of(component, y, 10, {"item": 50})


def principal_components(rng: RNG, rows: int) -> Drawn:
    times, sensors, factors = rows // 50, 50, 10
    y = rng.normal(size=(times, 3)) @ rng.normal(size=(3, sensors))
    y += 0.1 * rng.normal(size=y.shape)
    with svmp.Model(coords={"time": times, "sensor": sensors, "factor": factors}) as model:
        alpha = svmp.Gamma("alpha", alpha=0.01, beta=0.01, dims="factor")
        w = svmp.MvNormal("w", mu=0, tau=svmp.diag(alpha), dims=("sensor", "factor"))
        x = svmp.MvNormal("x", mu=0, tau=np.eye(factors), dims=("time", "factor"))
        mu = svmp.dot(x, w)
        svmp.Normal("y", mu=mu, tau=noise(), dims=("time", "sensor"), observed=y)
    return {"y": y, "factors": factors}, model


def short_chain(rng: RNG, rows: int) -> Drawn:
    state = np.cumsum(rng.random(rows) < 0.1) % 4
    emission = rng.dirichlet(np.full(12, 0.3), 4)
    y = np.array([rng.choice(12, p=emission[k]) for k in state])
    with svmp.Model(coords={"row": rows, "state": 4, "to": 4, "word": 12}) as model:
        first = svmp.Dirichlet("first", a=1, dims="state")
        move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", first, move, dims="row")
        p = svmp.Dirichlet("p", a=1, dims=("state", "word"))
        svmp.Mixture("y", z, svmp.Categorical.dist(p=p), dims="row", observed=y)
    return {"y": y, "states": 4}, model


def few_robust(rng: RNG, rows: int) -> Drawn:
    y = 2 + rng.standard_t(4, rows)
    with svmp.Model(coords={"row": rows}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.01)
        u = svmp.Gamma("u", alpha=2, beta=2, dims="row")
        svmp.Normal("y", mu=mu, tau=u, dims="row", observed=y)
    return {"y": y}, model


def categories(rng: RNG, rows: int) -> Drawn:
    y = rng.integers(0, 5, rows)
    with svmp.Model(coords={"category": 5}) as model:
        svmp.Categorical("y", p=svmp.Dirichlet("p", a=1, dims="category"), observed=y)
    return {"y": y}, model


def few_groups(rng: RNG, rows: int) -> Drawn:
    g = rng.integers(0, 30, rows)
    y = rng.normal(size=30)[g] + rng.normal(size=rows)
    with svmp.Model(coords={"group": 30}) as model:
        b = svmp.Normal("b", mu=0, tau=1, dims="group")
        svmp.Normal("y", mu=b[g], tau=1, observed=y)
    return {"g": g, "y": y, "groups": 30}, model


def few_counts(rng: RNG, rows: int) -> Drawn:
    weights = rng.dirichlet(np.ones(6), 3)[rng.integers(0, 3, rows)]
    y = np.stack([rng.multinomial(20, p) for p in weights])

    def component(dims: tuple[str, ...]) -> Any:
        return svmp.Multinomial.dist(n=20, p=svmp.Dirichlet("p", a=1, dims=dims))

    return {"y": y, "components": 3}, mixture_of(component, y, 3, {"word": 6})


def short_states(rng: RNG, rows: int) -> Drawn:
    times, sensors, size = rows // 4, 4, 2
    y = 0.3 * np.cumsum(rng.normal(size=(times, sensors)), axis=0)
    y += 0.5 * rng.normal(size=y.shape)
    coords = {"time": times, "sensor": sensors, "latent": size, "from": size}
    with svmp.Model(coords=coords) as model:
        alpha = svmp.Gamma("alpha", alpha=0.01, beta=0.01, dims="from")
        a = svmp.MvNormal("A", mu=0, tau=svmp.diag(alpha), dims=("latent", "from"))
        first = svmp.Normal.dist(mu=0, tau=0.1)
        x = svmp.LinearGaussianChain("x", init=first, A=a, tau=1.0, dims=("time", "latent"))
        c = svmp.MvNormal("C", mu=0, tau=np.eye(size), dims=("sensor", "latent"))
        mu = svmp.dot(x, c)
        svmp.Normal("y", mu=mu, tau=noise(), dims=("time", "sensor"), observed=y)
    return {"y": y.T, "size": size}, model


def process_on_grid(rng: RNG, rows: int) -> Drawn:
    times = 100
    grid = np.arange(times) / 10
    cov = np.exp(-0.5 * (grid[:, None] - grid) ** 2) + 1e-3 * np.eye(times)
    y = rng.multivariate_normal(np.zeros(times), cov) + rng.normal(size=(rows // times, times))
    precision = np.linalg.inv(cov)
    precision = 0.5 * (precision + precision.T)
    with svmp.Model(coords={"series": rows // times, "time": times}) as model:
        f = svmp.MvNormal("f", mu=0, tau=precision, dims="time")
        svmp.Normal("y", mu=f, tau=noise(), dims=("series", "time"), observed=y)
    return {"y": y, "precision": precision}, model


def whole_tensor(rng: RNG, rows: int) -> Drawn:
    sizes, factors = {"a": 10, "b": 10, "c": rows // 100}, 3
    parts = [rng.normal(size=(n, factors)) for n in sizes.values()]
    y = np.einsum("ik,jk,lk->ijl", *parts) + 0.3 * rng.normal(size=tuple(sizes.values()))
    with svmp.Model(coords={**sizes, "factor": factors}) as model:
        eye = np.eye(factors)
        read = [svmp.MvNormal(f"x_{n}", mu=0, tau=eye, dims=(n, "factor")) for n in sizes]
        mu = svmp.dot(*read, dim="factor")
        svmp.Normal("y", mu=mu, tau=noise(), dims=tuple(sizes), observed=y)
    return {"y": y, "factors": factors}, model


def autoregression(rng: RNG, rows: int) -> Drawn:
    times, outcomes = rows // 4, 4
    move = 0.5 * np.eye(outcomes) + 0.05 * rng.normal(size=(outcomes, outcomes))
    y = np.zeros((times + 1, outcomes))
    for t in range(times):
        y[t + 1] = move @ y[t] + rng.normal(size=outcomes)
    with svmp.Model(coords={"time": times, "outcome": outcomes, "from": outcomes}) as model:
        alpha = svmp.Gamma("alpha", alpha=0.01, beta=0.01, dims="from")
        a = svmp.MvNormal("A", mu=0, tau=svmp.diag(alpha), dims=("outcome", "from"))
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="outcome")
        mu = svmp.dot(svmp.data(y[:-1], dims=("time", "from")), a, dim="from")
        svmp.Normal("y", mu=mu, tau=tau, dims=("time", "outcome"), observed=y[1:])
    return {"x": y[:-1], "y": y[1:]}, model


def known_errors(rng: RNG, rows: int) -> Drawn:
    precision, y = rng.gamma(2, 1, rows), rng.normal(2, 1, rows)
    with svmp.Model() as model:
        svmp.Normal("y", mu=svmp.Normal("m", mu=0, tau=0.01), tau=precision, observed=y)
    return {"y": y, "precision": precision}, model


MORE = (
    Network("20 outcomes of the same 5 numbers", outcomes_alike, 20_000),
    Network("4 outcomes with correlated noise", outcomes_correlated, 20_000),
    Network("mixture of Poissons", mixture_of_counts, 20_000, settles=False),
    Network("mixture of 50 binary answers", mixture_of_answers, 20_000, settles=False),
    Network("principal components with ARD", principal_components, 1_000, settles=False),
    Network("one chain of states, categories", short_chain, 1_000, settles=False),
    Network("mixture of Poissons", mixture_of_counts, 1_000, settles=False),
    Network("mixture of Multinomials", few_counts, 300, settles=False),
    Network("robust mean, Student t by Gammas", few_robust, 5_000),
    Network("robust mean, Student t by Gammas", few_robust, 10_000),
    Network("shares of 5 categories", categories, 1_000),
    Network("means of 30 groups, known noise", few_groups, 1_000),
    Network("linear state space", short_states, 1_000, settles=False),
    Network("Gaussian process on a grid of 100", process_on_grid, 1_000),
    Network("Gaussian process on a grid of 100", process_on_grid, 10_000),
    Network("tensor factorization, all cells", whole_tensor, 100_000, settles=False),
    Network("vector autoregression, ARD", autoregression, 100_000),
    Network("mean of values with known errors", known_errors, 100_000),
)
