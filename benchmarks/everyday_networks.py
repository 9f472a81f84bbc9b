"""Twenty-three ordinary networks: their data, and their declarations in svmp.

Each function draws data of a number of rows and returns the arrays, by name, and the model.
peers/bayespy_everyday.py has the same networks by the same names, as far as BayesPy has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import svmp

RNG = np.random.Generator
Drawn = tuple[dict[str, Any], svmp.Model]


@dataclass(frozen=True)
class Network:
    """An ordinary network.

    Attributes
    ----------
    what
        What it is, for the table.
    draw
        Returns its data and its model for a number of rows.
    rows
        Number of rows.
    settles
        Whether a few sweeps lead every start to the same bound, so that bounds can be compared.
    missing
        Why BayesPy does not have it, if so.
    """

    what: str
    draw: Callable[[RNG, int], Drawn]
    rows: int
    settles: bool = True
    missing: str = ""


def noise() -> svmp.Variable:
    return svmp.Gamma("tau", alpha=1, beta=1)


def regression(rng: RNG, rows: int, features: int, ard: bool) -> Drawn:
    x = rng.normal(size=(rows, features))
    y = x @ rng.normal(size=features) + rng.normal(size=rows)
    with svmp.Model(coords={"feature": features}) as model:
        if ard:
            alpha = svmp.Gamma("alpha", alpha=0.01, beta=0.01, dims="feature")
            w = svmp.MvNormal("w", mu=0, tau=svmp.diag(alpha), dims="feature")
        else:
            w = svmp.MvNormal("w", mu=0, tau=np.eye(features), dims="feature")
        svmp.Normal("y", mu=svmp.dot(x, w), tau=noise() if ard else 1, observed=y)
    return {"x": x, "y": y}, model


def regression_ard(rng: RNG, rows: int) -> Drawn:
    return regression(rng, rows, 60, ard=True)


def regression_known_noise(rng: RNG, rows: int) -> Drawn:
    return regression(rng, rows, 20, ard=False)


def regression_by_group(rng: RNG, rows: int) -> Drawn:
    features, groups = 10, 50
    x, g = rng.normal(size=(rows, features)), rng.integers(0, groups, rows)
    y = (x * rng.normal(size=(groups, features))[g]).sum(axis=1) + rng.normal(size=rows)
    with svmp.Model(coords={"feature": features, "group": groups}) as model:
        prior = svmp.Wishart("prior", nu=12, V=np.eye(features) / 12, dims=("feature", "feature"))
        w = svmp.MvNormal("w", mu=0, tau=prior, dims=("group", "feature"))
        svmp.Normal("y", mu=svmp.dot(x, w[g]), tau=noise(), observed=y)
    return {"x": x, "g": g, "y": y, "groups": groups}, model


def regression_factorised(rng: RNG, rows: int) -> Drawn:
    x = rng.normal(size=(rows, 20))
    y = x @ rng.normal(size=20) + rng.normal(size=rows)
    with svmp.Model(coords={"feature": 20}) as model:
        w = svmp.Normal("w", mu=0, tau=1, dims="feature")
        svmp.Normal("y", mu=svmp.dot(x, w), tau=noise(), observed=y)
    return {"x": x, "y": y}, model


def robust_regression(rng: RNG, rows: int) -> Drawn:
    x = rng.normal(size=(rows, 10))
    y = x @ rng.normal(size=10) + rng.standard_t(4, size=rows)
    with svmp.Model(coords={"feature": 10, "row": rows}) as model:
        w = svmp.MvNormal("w", mu=0, tau=np.eye(10), dims="feature")
        scale = svmp.Gamma("scale", alpha=1, beta=1)
        u = svmp.Gamma("u", alpha=2, beta=scale, dims="row")
        svmp.Normal("y", mu=svmp.dot(x, w), tau=u, dims="row", observed=y)
    return {"x": x, "y": y}, model


def logistic_regression(rng: RNG, rows: int) -> Drawn:
    x = rng.normal(size=(rows, 10))
    y = rng.random(rows) < 1 / (1 + np.exp(-x @ rng.normal(size=10)))
    with svmp.Model(coords={"feature": 10}) as model:
        w = svmp.MvNormal("w", mu=0, tau=np.eye(10), dims="feature")
        svmp.Bernoulli("y", logit=svmp.dot(x, w), observed=y)
    return {"x": x, "y": y}, model


def mean_and_precision(rng: RNG, rows: int) -> Drawn:
    y = rng.normal(3, 2, rows)
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=0.01)
        svmp.Normal("y", mu=mu, tau=noise(), observed=y)
    return {"y": y}, model


def anova(rng: RNG, rows: int) -> Drawn:
    g = rng.integers(0, 200, rows)
    y = 3 + rng.normal(size=200)[g] + rng.normal(size=rows)
    with svmp.Model(coords={"group": 200}) as model:
        a = svmp.Normal("a", mu=0, tau=0.01)
        between = svmp.Gamma("between", alpha=1, beta=1)
        b = svmp.Normal("b", mu=0, tau=between, dims="group")
        svmp.Normal("y", mu=a + b[g], tau=noise(), observed=y)
    return {"g": g, "y": y, "groups": 200}, model


def crossed_effects(rng: RNG, rows: int) -> Drawn:
    i, j = rng.integers(0, 100, rows), rng.integers(0, 40, rows)
    y = 3 + rng.normal(size=100)[i] + rng.normal(size=40)[j] + rng.normal(size=rows)
    with svmp.Model(coords={"subject": 100, "item": 40}) as model:
        a = svmp.Normal("a", mu=0, tau=0.01)
        tau_b, tau_c = (svmp.Gamma(f"tau_{x}", alpha=1, beta=1) for x in "bc")
        b = svmp.Normal("b", mu=0, tau=tau_b, dims="subject")
        c = svmp.Normal("c", mu=0, tau=tau_c, dims="item")
        svmp.Normal("y", mu=a + b[i] + c[j], tau=noise(), observed=y)
    return {"i": i, "j": j, "y": y, "subjects": 100, "items": 40}, model


def random_slopes(rng: RNG, rows: int) -> Drawn:
    x, g = rng.normal(size=rows), rng.integers(0, 500, rows)
    design = np.stack([np.ones(rows), x], axis=1)
    y = (design * rng.normal(size=(500, 2))[g]).sum(axis=1) + rng.normal(size=rows)
    with svmp.Model(coords={"effect": 2, "group": 500}) as model:
        centre = svmp.MvNormal("centre", mu=0, tau=0.01 * np.eye(2), dims="effect")
        spread = svmp.Wishart("spread", nu=3, V=np.eye(2) / 3, dims=("effect", "effect"))
        w = svmp.MvNormal("w", mu=centre, tau=spread, dims=("group", "effect"))
        svmp.Normal("y", mu=svmp.dot(design, w[g]), tau=noise(), observed=y)
    return {"x": design, "g": g, "y": y, "groups": 500}, model


def hierarchy(rng: RNG, rows: int) -> Drawn:
    district, school = rng.integers(0, 20, 400), rng.integers(0, 400, rows)
    level = rng.normal(size=20)[district] + rng.normal(size=400)
    y = level[school] + rng.normal(size=rows)
    with svmp.Model(coords={"district": 20, "school": 400}) as model:
        tau_d, tau_s = (svmp.Gamma(f"tau_{x}", alpha=1, beta=1) for x in "ds")
        d = svmp.Normal("d", mu=0, tau=tau_d, dims="district")
        s = svmp.Normal("s", mu=d[district], tau=tau_s, dims="school")
        svmp.Normal("y", mu=s[school], tau=noise(), observed=y)
    return {"district": district, "school": school, "y": y, "districts": 20}, model


def noise_by_group(rng: RNG, rows: int) -> Drawn:
    g = rng.integers(0, 100, rows)
    y = rng.normal(size=100)[g] + rng.gamma(2, 1, 100)[g] * rng.normal(size=rows)
    with svmp.Model(coords={"group": 100}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.1, dims="group")
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="group")
        svmp.Normal("y", mu=mu[g], tau=tau[g], observed=y)
    return {"g": g, "y": y, "groups": 100}, model


def covariance(rng: RNG, rows: int) -> Drawn:
    y = rng.normal(size=(rows, 5)) @ rng.normal(size=(5, 5))
    with svmp.Model(coords={"axis": 5}) as model:
        mu = svmp.MvNormal("mu", mu=0, tau=0.01 * np.eye(5), dims="axis")
        tau = svmp.Wishart("tau", nu=6, V=np.eye(5), dims=("axis", "axis"))
        svmp.MvNormal("y", mu=mu, tau=tau, dims=("row", "axis"), observed=y)
    return {"y": y}, model


def mixture(rng: RNG, rows: int) -> Drawn:
    y = rng.normal(4.0 * rng.integers(0, 4, rows), 1)
    with svmp.Model(coords={"row": rows, "component": 4}) as model:
        share = svmp.Dirichlet("share", a=1, dims="component")
        z = svmp.Categorical("z", p=share, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=0.01, dims="component")
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="component")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=y)
    return {"y": y, "components": 4}, model


def mixture_with_covariances(rng: RNG, rows: int) -> Drawn:
    y = rng.normal(4 * rng.normal(size=(5, 3))[rng.integers(0, 5, rows)], 1)
    with svmp.Model(coords={"row": rows, "component": 5, "axis": 3}) as model:
        share = svmp.Dirichlet("share", a=1, dims="component")
        z = svmp.Categorical("z", p=share, dims="row")
        mu = svmp.MvNormal("mu", mu=0, tau=0.01 * np.eye(3), dims=("component", "axis"))
        tau = svmp.Wishart("tau", nu=4, V=np.eye(3), dims=("component", "axis", "axis"))
        component = svmp.MvNormal.dist(mu=mu, tau=tau)
        svmp.Mixture("y", z, component, dims=("row", "axis"), observed=y)
    return {"y": y, "components": 5}, model


def counts_by_group(rng: RNG, rows: int) -> Drawn:
    g = rng.integers(0, 1000, rows)
    y = rng.poisson(rng.gamma(2, 1, 1000)[g])
    with svmp.Model(coords={"group": 1000}) as model:
        scale = svmp.Gamma("scale", alpha=1, beta=1)
        rate = svmp.Gamma("rate", alpha=2, beta=scale, dims="group")
        svmp.Poisson("y", mu=rate[g], observed=y)
    return {"g": g, "y": y, "groups": 1000}, model


def shares_by_group(rng: RNG, rows: int) -> Drawn:
    g = rng.integers(0, 1000, rows)
    y = rng.random(rows) < rng.random(1000)[g]
    with svmp.Model(coords={"group": 1000}) as model:
        p = svmp.Beta("p", alpha=1, beta=1, dims="group")
        svmp.Bernoulli("y", p=p[g], observed=y)
    return {"g": g, "y": y, "groups": 1000}, model


def categories_by_group(rng: RNG, rows: int) -> Drawn:
    g, y = rng.integers(0, 100, rows), rng.integers(0, 10, rows)
    with svmp.Model(coords={"group": 100, "category": 10}) as model:
        p = svmp.Dirichlet("p", a=1, dims=("group", "category"))
        svmp.Categorical("y", p=p[g], observed=y)
    return {"g": g, "y": y, "groups": 100, "categories": 10}, model


def latent_classes(rng: RNG, rows: int) -> Drawn:
    people = rows // 10
    y = rng.random((people, 10)) < rng.random((3, 10))[rng.integers(0, 3, people)]
    with svmp.Model(coords={"person": people, "class": 3, "item": 10}) as model:
        share = svmp.Dirichlet("share", a=1, dims="class")
        z = svmp.Categorical("z", p=share, dims="person")
        p = svmp.Beta("p", alpha=1, beta=1, dims=("class", "item"))
        svmp.Mixture("y", z, svmp.Bernoulli.dist(p=p), dims=("person", "item"), observed=y)
    return {"y": y, "classes": 3}, model


def topics(rng: RNG, rows: int) -> Drawn:
    document, topic = rng.integers(0, 200, rows), rng.integers(0, 10, rows)
    phi = rng.dirichlet(np.full(500, 0.05), 10)
    word = np.array([rng.choice(500, p=phi[k]) for k in topic])
    coords = {"document": 200, "topic": 10, "vocabulary": 500, "token": rows}
    with svmp.Model(coords=coords) as model:
        theta = svmp.Dirichlet("theta", a=0.5, dims=("document", "topic"))
        phi = svmp.Dirichlet("phi", a=0.1, dims=("topic", "vocabulary"))
        z = svmp.Categorical("z", p=theta[document], dims="token")
        svmp.Mixture("word", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    return {"document": document, "word": word, "documents": 200, "topics": 10}, model


def factor_analysis(rng: RNG, rows: int) -> Drawn:
    times, sensors, factors = rows // 20, 20, 5
    y = rng.normal(size=(times, 3)) @ rng.normal(size=(3, sensors))
    y += 0.3 * rng.normal(size=y.shape)
    with svmp.Model(coords={"time": times, "sensor": sensors, "factor": factors}) as model:
        alpha = svmp.Gamma("alpha", alpha=0.01, beta=0.01, dims="factor")
        w = svmp.MvNormal("w", mu=0, tau=svmp.diag(alpha), dims=("sensor", "factor"))
        x = svmp.MvNormal("x", mu=0, tau=np.eye(factors), dims=("time", "factor"))
        mu = svmp.dot(x, w)
        svmp.Normal("y", mu=mu, tau=noise(), dims=("time", "sensor"), observed=y)
    return {"y": y, "factors": factors}, model


def matrix_factorization(rng: RNG, rows: int) -> Drawn:
    user, item = rng.integers(0, 500, rows), rng.integers(0, 200, rows)
    u, v = rng.normal(size=(500, 5)), rng.normal(size=(200, 5))
    y = (u[user] * v[item]).sum(axis=1) + rng.normal(size=rows)
    with svmp.Model(coords={"user": 500, "item": 200, "factor": 5}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        svmp.Normal("y", mu=svmp.dot(u[user], v[item]), tau=noise(), observed=y)
    return {"keys": np.stack([user, item]), "y": y, "sizes": [500, 200], "factors": 5}, model


def tensor(rng: RNG, rows: int) -> Drawn:
    sizes, factors = {"a": 100, "b": 60, "c": 30}, 4
    keys = np.stack([rng.integers(0, n, rows) for n in sizes.values()])
    parts = [rng.normal(size=(n, factors)) for n in sizes.values()]
    y = np.prod([p[k] for p, k in zip(parts, keys, strict=True)], axis=0).sum(axis=1)
    y += rng.normal(size=rows)
    with svmp.Model(coords={**sizes, "factor": factors}) as model:
        read = [svmp.Normal(f"x_{n}", mu=0, tau=1, dims=(n, "factor")) for n in sizes]
        mu = svmp.dot(*(x[k] for x, k in zip(read, keys, strict=True)))
        svmp.Normal("y", mu=mu, tau=noise(), observed=y)
    return {"keys": keys, "y": y, "sizes": list(sizes.values()), "factors": factors}, model


NETWORKS = (
    Network("regression, 60 weights as a vector, ARD", regression_ard, 10_000),
    Network("regression, 20 weights as a vector, known noise", regression_known_noise, 1_000),
    Network("regression by group, Wishart prior", regression_by_group, 10_000),
    Network("regression, 20 weights one by one", regression_factorised, 10_000),
    Network("robust regression, Student t by Gammas", robust_regression, 10_000, settles=False),
    Network(
        "logistic regression",
        logistic_regression,
        10_000,
        missing="BayesPy has no density with a logit",
    ),
    Network("mean and precision", mean_and_precision, 100_000),
    Network("one-way random effects", anova, 100_000),
    Network("crossed random effects", crossed_effects, 50_000),
    Network("random intercepts and slopes", random_slopes, 20_000),
    Network("pupils in schools in districts", hierarchy, 50_000),
    Network("mean and noise by group", noise_by_group, 50_000),
    Network("mean and covariance of vectors", covariance, 20_000),
    Network("mixture of Normals", mixture, 50_000, settles=False),
    Network("mixture of MvNormals", mixture_with_covariances, 20_000, settles=False),
    Network("counts by group, Poisson and Gamma", counts_by_group, 100_000),
    Network("shares by group, Bernoulli and Beta", shares_by_group, 100_000),
    Network("categories by group, Dirichlet", categories_by_group, 100_000),
    Network("latent classes of binary answers", latent_classes, 50_000, settles=False),
    Network("topics", topics, 20_000, settles=False),
    Network("factor analysis with ARD", factor_analysis, 20_000, settles=False),
    Network("matrix factorization", matrix_factorization, 20_000, settles=False),
    Network("tensor factorization", tensor, 20_000, settles=False),
)
