"""Small fits that between them call every loop, in every precision that data come in.

A fit calls the loops that it needs, with the types that they are called with. So no list of
signatures has to be kept beside the code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import svmp

ROWS, USERS, ITEMS = 400, 12, 9
LONG_KEY = 70_000
"""Rows of a key that threads share, a few more than `kernels.multilinear.update.LONG`."""
OPTIONS: dict[str, Any] = {"kernels": True, "max_sweeps": 2, "tol": 0, "progress": False}
METHODS: dict[str, Any] = {
    "default": None,
    "full": svmp.FullVB(),
    "children": svmp.Children(3),
    "batch": svmp.Batch(50),
}


def factorization(
    dtype: Any, factors: int = 2, rows: int = ROWS, logit: bool = False, vectors: bool = False
) -> svmp.Model:
    """Declare ratings with biases, factors or vectors, and unknown noise."""
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, USERS, rows), rng.integers(0, ITEMS, rows)
    if rows > LONG_KEY:
        user[:LONG_KEY] = 0
    with svmp.Model(coords={"user": USERS, "item": ITEMS, "factor": factors}) as model:
        u: svmp.Variable
        v: svmp.Variable
        if vectors:
            eye = np.eye(factors)
            u = svmp.MvNormal("u", mu=np.zeros(factors), tau=eye, dims=("user", "factor"))
            v = svmp.MvNormal("v", mu=np.zeros(factors), tau=eye, dims=("item", "factor"))
        else:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
            v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        bias = svmp.Normal("bias", mu=0, tau=1, dims="user")
        mean = svmp.dot(u[user], v[item]) + bias[user]
        if logit:
            svmp.Bernoulli("r", logit=mean, observed=rng.integers(0, 2, rows))
        else:
            tau = svmp.Gamma("tau", alpha=1, beta=1, dims="user")
            stars = rng.integers(1, 6, rows).astype(dtype)
            svmp.Normal("r", mu=mean, tau=tau[user], observed=stars)
    return model


def fit_all(model: svmp.Model, *methods: str) -> None:
    """Fit a model by some of the methods."""
    for name in methods:
        svmp.fit(model, METHODS[name], **OPTIONS)


def sweeps(dtype: Any) -> None:
    """Full sweeps over Normal rows, of which the factors are solved from sums."""
    fit_all(factorization(dtype), "default", "full")


def wide(dtype: Any) -> None:
    """Full sweeps with many factors, one after the other."""
    fit_all(factorization(dtype, 20), "full")


def samples(dtype: Any) -> None:
    """Algorithms 1 and 2."""
    fit_all(factorization(dtype), "children", "batch")


def logits() -> None:
    """Bernoullis with a logit."""
    fit_all(factorization(np.float64, logit=True), "default", "full")


def vectors(dtype: Any) -> None:
    """Dot products of MvNormals."""
    fit_all(factorization(dtype, vectors=True), "default")


def long_keys() -> None:
    """Keys with so many rows that threads share them."""
    for vector in (False, True):
        model = factorization(np.float32, rows=LONG_KEY + ROWS, vectors=vector)
        fit_all(model, "default")


def mixture() -> None:
    """A mixture of Normals."""
    rng = np.random.default_rng(0)
    with svmp.Model(coords={"component": 3, "row": ROWS}) as model:
        weights = svmp.Dirichlet("weights", a=1, dims="component")
        centre = svmp.Normal("centre", mu=0, tau=0.1, dims="component")
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="component")
        z = svmp.Categorical("z", p=weights, dims="row")
        one = svmp.Normal.dist(mu=centre, tau=tau)
        svmp.Mixture("x", z, one, dims="row", observed=rng.normal(size=ROWS))
    fit_all(model, "default")


def topics() -> None:
    """Latent Dirichlet allocation, by sweeps and by documents."""
    rng = np.random.default_rng(0)
    doc = np.sort(rng.integers(0, 20, ROWS))
    with svmp.Model(coords={"doc": 20, "topic": 3, "term": 15, "token": ROWS}) as model:
        theta = svmp.Dirichlet("theta", a=1, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=1, dims=("topic", "term"))
        z = svmp.Categorical("z", p=theta[doc], dims="token")
        word = svmp.Categorical.dist(p=phi)
        svmp.Mixture("word", z, word, dims="token", observed=rng.integers(0, 15, ROWS))
    fit_all(model, "default")
    svmp.fit(model, svmp.Batch(5, over="doc"), **OPTIONS)
    svmp.fit(model, svmp.Memoized(over="doc"), **OPTIONS)


def states() -> None:
    """Chains of states, with transitions that are all possible and with some that are not."""
    rng = np.random.default_rng(0)
    for known in (None, [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]]):
        with svmp.Model(coords={"state": 3, "to": 3, "row": ROWS}) as model:
            start = svmp.Dirichlet("start", a=1, dims="state")
            move = svmp.Dirichlet("move", a=1, dims=("state", "to")) if known is None else known
            night = np.arange(ROWS) // 20
            z = svmp.DiscreteMarkovChain("z", start, move, sequence=night, dims="row")
            mu = svmp.Normal("mu", mu=0, tau=0.1, dims="state")
            one = svmp.Normal.dist(mu=mu, tau=1)
            svmp.Mixture("x", z, one, dims="row", observed=rng.normal(size=ROWS))
        fit_all(model, "default")
        svmp.fit(model, svmp.Memoized(over="sequence", parts=2), **OPTIONS)


def joint_blocks() -> None:
    """Effects of many groups with a joint q, and the covariances of rows that are predicted."""
    rng, groups = np.random.default_rng(0), 300
    g, h = rng.integers(0, groups, ROWS), rng.integers(0, ITEMS, ROWS)
    with svmp.Model(coords={"g": groups, "h": ITEMS}) as model:
        a = svmp.Normal("a", mu=0, tau=1)
        u = svmp.Normal("u", mu=0, tau=svmp.Gamma("tau", alpha=1, beta=1), dims="g")
        v = svmp.Normal("v", mu=0, tau=1, dims="h")
        svmp.Normal("y", mu=a + u[g] + v[h], tau=1, observed=rng.normal(size=ROWS))
    fit = svmp.fit(model, joint="auto", **OPTIONS)
    _ = fit.predict(model, "y").var
    fit.draw(["a", "u"], 2)


def ratings() -> None:
    """The recommender of ratings, with factors that are kept, its lists, and its updates."""
    from svmp.recommend import RatingModel

    rng, users, items = np.random.default_rng(0), 200, 100
    pair = rng.choice(users * items, 10_000, replace=False)
    user, item = pair // items, pair % items
    u, v = rng.normal(size=(users, 2)), rng.normal(size=(items, 2))
    rating = np.einsum("rk,rk->r", u[user], v[item]) + 0.5 * rng.normal(size=len(pair))
    for covariance in ("diagonal", "full"):
        model = RatingModel(2, covariance=covariance, max_sweeps=6, progress=False)
        model.fit((user, item, rating)).recommend(3, n=5)
        model.recommend(3, n=5, diversity=0.1)
        model.update(([3, 3], [1, 2], [4.0, 5.0]))


def events() -> None:
    """The recommender of events, and its lists."""
    from svmp.datasets import netflix_shaped
    from svmp.recommend import EventModel

    EventModel(2, iterations=1, progress=False).fit(netflix_shaped(0.01)).recommend(3, n=5)


RECIPES: dict[str, Callable[[], None]] = {
    "sweeps": lambda: sweeps(np.float32),
    "sweeps in double precision": lambda: sweeps(np.float64),
    "many factors in turn": lambda: wide(np.float32),
    "many factors in turn, in double precision": lambda: wide(np.float64),
    "Algorithms 1 and 2": lambda: samples(np.float32),
    "Algorithms 1 and 2 in double precision": lambda: samples(np.float64),
    "logits": logits,
    "vectors": lambda: vectors(np.float32),
    "vectors in double precision": lambda: vectors(np.float64),
    "long keys": long_keys,
    "mixtures": mixture,
    "topics": topics,
    "chains of states": states,
    "joint blocks": joint_blocks,
    "recommendations from ratings": ratings,
    "recommendations from events": events,
}
"""What is compiled, by the name that the progress shows."""
