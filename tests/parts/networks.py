"""Networks whose rows lie in parts, each beside the same rows in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import svmp


@dataclass(frozen=True)
class Case:
    """A network with parts.

    Attributes
    ----------
    declare
        Declares the network for some rows.
    parts, whole
        The rows of each part, and all rows in the order of the parts.
    own
        The variables that belong to one part.
    order
        An order of updates, own variables first.
    init
        Starting values by shared variable.
    """

    declare: Callable[[Any], svmp.Model]
    parts: list[Any]
    whole: Any
    own: tuple[str, ...]
    order: tuple[str, ...]
    init: dict[str, Any] = field(default_factory=dict)
    named: bool = False

    def divided(self, **options: Any) -> svmp.Parts:
        """Return the parts, with own variables named only if they cannot be found."""
        own = {"own": self.own} if self.named else {}
        return svmp.Parts(self.declare, self.parts, **own, **options)


def cut(arrays: dict[str, np.ndarray], by: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Split rows by the number of their part."""
    return [{k: v[by == p] for k, v in arrays.items()} for p in range(by.max() + 1)]


def joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the rows of all parts, one part after the other."""
    return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}


def codes(ids: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Return the distinct ids in the order of their first row, and the key of each row."""
    _, first, key = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return ids[np.sort(first)].tolist(), rank[key]


def mean_and_precision() -> Case:
    rng = np.random.default_rng(1)
    rows = {"y": rng.normal(3, 2, 50)}

    def declare(part: Any) -> svmp.Model:
        with svmp.Model() as model:
            mu = svmp.Normal("mu", mu=0, tau=0.01)
            tau = svmp.Gamma("tau", alpha=1, beta=1)
            svmp.Normal("y", mu=mu, tau=tau, dims="row", observed=part["y"])
        return model

    parts = cut(rows, np.repeat([0, 1, 2], [20, 1, 29]))
    return Case(declare, parts, joined(parts), (), ("mu", "tau"))


def mixture() -> Case:
    rng = np.random.default_rng(2)
    y = np.where(rng.random(300) < 0.4, rng.normal(-2, 1, 300), rng.normal(2, 0.5, 300))
    rows = {"y": y}

    def declare(part: Any) -> svmp.Model:
        with svmp.Model(coords={"component": 3, "row": len(part["y"])}) as model:
            w = svmp.Dirichlet("w", a=1, dims="component")
            z = svmp.Categorical("z", p=w, dims="row")
            mu = svmp.Normal("mu", mu=0, tau=0.01, dims="component")
            tau = svmp.Gamma("tau", alpha=1, beta=1, dims="component")
            svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=part["y"])
        return model

    parts = cut(rows, np.repeat([0, 1, 2, 3], [100, 50, 50, 100]))
    init = {
        "mu": np.array([-1.0, 0.5, 3.0]),
        "tau": {"alpha": np.ones(3), "beta": np.ones(3)},
        "w": {"a": np.array([1.0, 2.0, 3.0])},
    }
    return Case(declare, parts, joined(parts), ("z",), ("z", "w", "mu", "tau"), init)


def factorization(biases: bool = False, factors: int = 3) -> Case:
    rng = np.random.default_rng(3)
    users, items, count = 40, 15, 600
    user, item = rng.integers(users, size=count), rng.integers(items, size=count)
    u, v = rng.normal(size=(users, 2)), rng.normal(size=(items, 2))
    rating = 3 + (u[user] * v[item]).sum(1) + 0.3 * rng.normal(size=count)
    rows = {"user": user, "item": item, "rating": rating}

    def declare(part: Any) -> svmp.Model:
        ids, key = codes(part["user"])
        with svmp.Model(coords={"user": ids, "item": range(items), "factor": factors}) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
            v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
            mean = svmp.dot(u.iloc[key], v[part["item"]])
            tau: Any = 4.0
            if biases:
                spread = svmp.Gamma("spread", alpha=1, beta=1)
                a = svmp.Normal("a", mu=0, tau=spread, dims="user")
                b = svmp.Normal("b", mu=3, tau=1, dims="item")
                mean = mean + a.iloc[key] + b[part["item"]]
                tau = svmp.Gamma("tau", alpha=1, beta=1)
            svmp.Normal("r", mu=mean, tau=tau, dims="rating", observed=part["rating"])
        return model

    parts = cut(rows, user % 4)
    init = {
        "v": np.random.default_rng(9).normal(size=(items, factors)) * 0.3,
        "u": np.random.default_rng(10).normal(size=(users, factors)) * 0.3,
    }
    own = ("u", "a") if biases else ("u",)
    order = ("u", "a", "v", "b", "tau", "spread") if biases else ("u", "v")
    return Case(
        declare, parts, joined(parts), own, order, init | ({"a": np.zeros(users)} if biases else {})
    )


def topics() -> Case:
    rng = np.random.default_rng(4)
    docs, words = 30, 12
    phi = rng.dirichlet(np.full(words, 0.2), size=3)
    doc = np.repeat(np.arange(docs), 25)
    topic = rng.integers(3, size=docs)[doc]
    word = np.array([rng.choice(words, p=phi[k]) for k in topic])
    rows = {"doc": doc, "word": word}

    def declare(part: Any) -> svmp.Model:
        ids, key = codes(part["doc"])
        coords = {"doc": ids, "topic": 3, "word": words, "token": len(key)}
        with svmp.Model(coords=coords) as model:
            theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "topic"))
            phi = svmp.Dirichlet("phi", a=0.1, dims=("topic", "word"))
            z = svmp.Categorical("z", p=theta.iloc[key], dims="token")
            svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=part["word"])
        return model

    parts = cut(rows, np.minimum(doc // 9, 3))
    start = np.random.default_rng(8).dirichlet(np.full(words, 1.0), size=3)
    init = {"phi": {"a": 5 * start + 0.1}, "theta": {"a": np.ones((docs, 3))}}
    return Case(declare, parts, joined(parts), ("theta", "z"), ("z", "theta", "phi"), init)


def schools() -> Case:
    rng = np.random.default_rng(5)
    effect = rng.normal(size=12)
    school = np.repeat(np.arange(12), rng.integers(3, 9, size=12))
    rows = {"school": school, "score": 5 + effect[school] + 0.5 * rng.normal(size=len(school))}

    def declare(part: Any) -> svmp.Model:
        ids, key = codes(part["school"])
        with svmp.Model(coords={"school": ids}) as model:
            mu = svmp.Normal("mu", mu=0, tau=0.01)
            spread = svmp.Gamma("spread", alpha=1, beta=1)
            theta = svmp.Normal("theta", mu=mu, tau=spread, dims="school")
            tau = svmp.Gamma("tau", alpha=1, beta=1)
            svmp.Normal("score", mu=theta.iloc[key], tau=tau, dims="pupil", observed=part["score"])
        return model

    parts = cut(rows, school // 4)
    return Case(declare, parts, joined(parts), ("theta",), ("theta", "mu", "spread", "tau"))


def regression() -> Case:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(120, 3)) + 2
    rows = {"x": x, "y": x @ [1.0, -2.0, 0.5] + 1 + 0.3 * rng.normal(size=120)}

    def declare(part: Any) -> svmp.Model:
        with svmp.Model(coords={"predictor": 3, "row": len(part["y"])}) as model:
            alpha = svmp.Gamma("alpha", alpha=1, beta=1, dims="predictor")
            beta = svmp.Normal("beta", mu=0, tau=alpha, dims="predictor")
            intercept = svmp.Normal("intercept", mu=0, tau=0.01)
            tau = svmp.Gamma("tau", alpha=1, beta=1)
            x = svmp.data(part["x"], dims=("row", "predictor"))
            svmp.Normal(
                "y", mu=intercept + svmp.dot(x, beta), tau=tau, dims="row", observed=part["y"]
            )
        return model

    parts = cut(rows, np.repeat([0, 1, 2], [50, 40, 30]))
    return Case(declare, parts, joined(parts), (), ("beta", "intercept", "alpha", "tau"))


def football() -> Case:
    rng = np.random.default_rng(7)
    league = np.repeat(np.arange(3), 60)
    home = rng.integers(6, size=180) + 6 * league
    away = rng.integers(6, size=180) + 6 * league
    rows = {
        "home": home,
        "away": away,
        "league": league,
        "margin": rng.normal(size=18)[home] - rng.normal(size=18)[away] + rng.normal(size=180),
    }

    def declare(part: Any) -> svmp.Model:
        teams, key = codes(np.concatenate([part["home"], part["away"]]))
        at, guest = np.split(key, 2)
        with svmp.Model(coords={"team": teams}) as model:
            spread = svmp.Gamma("spread", alpha=1, beta=1)
            strength = svmp.Normal("strength", mu=0, tau=spread, dims="team")
            advantage = svmp.Normal("advantage", mu=0, tau=1)
            tau = svmp.Gamma("tau", alpha=1, beta=1)
            svmp.Normal(
                "margin",
                mu=advantage + strength.iloc[at] - strength.iloc[guest],
                tau=tau,
                dims="match",
                observed=part["margin"],
            )
        return model

    parts = cut(rows, league)
    return Case(
        declare,
        parts,
        joined(parts),
        ("strength",),
        ("strength", "advantage", "spread", "tau"),
        {"strength": np.linspace(-1, 1, 18)},
    )


CASES: dict[str, Callable[[], Case]] = {
    "mean and precision": mean_and_precision,
    "mixture": mixture,
    "factorization": factorization,
    "factorization, one factor": lambda: factorization(factors=1),
    "factorization with biases": lambda: factorization(biases=True),
    "topics": topics,
    "schools": schools,
    "regression": regression,
    "football": football,
}
