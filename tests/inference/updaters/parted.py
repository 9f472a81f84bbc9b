"""Networks whose rows can be split into parts: each part is a network of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import svmp

Ints = NDArray[np.int64]
ROWS = 240
USERS, ITEMS = 12, 7
RNG = np.random.default_rng(17)
USER, ITEM = RNG.integers(USERS, size=ROWS), RNG.integers(ITEMS - 1, size=ROWS)
SCORE = RNG.normal(1, 1, ROWS)
X, GROUP = RNG.normal(2, 1, (ROWS, 3)), RNG.integers(5, size=ROWS)


class Part(NamedTuple):
    """The network of some rows.

    Attributes
    ----------
    elements
        Elements of the undivided network, of the variables that have not all of them here.
    own
        Variables whose elements are in this part alone.
    """

    model: svmp.Model
    elements: Mapping[str, Ints]
    own: frozenset[str]


Make = Callable[[Ints], Part]


def keyed(keys: Ints) -> tuple[Ints, Ints]:
    """Return the different keys, and the place of each key among them."""
    found, place = np.unique(keys, return_inverse=True)
    return found, place


def lines(keys: Ints, width: int) -> Ints:
    return (keys[:, None] * width + np.arange(width)).ravel()


def mean_and_precision(rows: Ints) -> Part:
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=1, tau=0.5)
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        svmp.Normal("y", mu=mu, tau=tau, observed=SCORE[rows])
    return Part(model, {}, frozenset())


def ratings(k: int, logit: bool = False) -> Make:
    def make(rows: Ints) -> Part:
        users, user = keyed(USER[rows])
        items, item = keyed(ITEM[rows])
        items = items if len(rows) < ROWS else np.arange(ITEMS)  # the last item has no rows
        with svmp.Model(coords={"user": len(users), "item": len(items), "factor": k}) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
            v = svmp.Normal("v", mu=0.3, tau=2, dims=("item", "factor"))
            a = svmp.Normal("a", mu=0, tau=1, dims="user")
            b = svmp.Normal("b", mu=0.1, tau=1, dims="item")
            mu = 0.5 * svmp.dot(u[user], v[item]) + a[user] + b[item]
            if logit:
                svmp.Bernoulli("y", logit=mu, observed=SCORE[rows] > 1)
            else:
                tau = svmp.Gamma("tau", alpha=2, beta=1, dims="item")
                svmp.Normal("y", mu=mu, tau=tau[item], observed=SCORE[rows])
        elements = {"u": lines(users, k), "v": lines(items, k), "a": users, "b": items}
        if not logit:
            elements["tau"] = items
        return Part(model, elements, frozenset({"u", "a"}))

    make.__name__ = f"ratings_{k}{'_logit' * logit}"
    return make


def full_covariance(rows: Ints) -> Part:
    users, user = keyed(USER[rows])
    items, item = keyed(ITEM[rows])
    items = items if len(rows) < ROWS else np.arange(ITEMS)
    with svmp.Model(coords={"user": len(users), "item": len(items), "d": 4}) as model:
        u = svmp.MvNormal("u", mu=0, tau=np.eye(4), dims=("user", "d"))
        v = svmp.MvNormal("v", mu=0.2, tau=2 * np.eye(4), dims=("item", "d"))
        b = svmp.Normal("b", mu=0, tau=1, dims="item")
        mu = svmp.dot(u[user], v[item]) + b[item]
        svmp.Normal("y", mu=mu, tau=1.5, observed=SCORE[rows])
    return Part(model, {"u": users, "v": items, "b": items}, frozenset({"u"}))


def dense(dims: tuple[str, ...]) -> Make:
    """A matrix or tensor of ratings, in which the axis of the sum may be any of v's axes."""
    sizes = {"item": ITEMS, "factor": 3, "time": 2}

    def make(rows: Ints) -> Part:
        users = np.unique(USER[rows])
        y = np.random.default_rng(1).normal(size=(USERS, ITEMS, 2))[users]
        with svmp.Model(coords={"user": len(users), **sizes}) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
            v = svmp.Normal("v", mu=0.3, tau=2, dims=dims)
            dot = svmp.dot(u, v, dim="factor")
            svmp.Normal("y", mu=dot, tau=1.5, dims=("user", "item", "time"), observed=y)
        return Part(model, {"u": lines(users, 3)}, frozenset({"u"}))

    make.__name__ = f"dense_{'_'.join(dims)}"
    return make


def tensor(rows: Ints) -> Part:
    users, user = keyed(USER[rows])
    with svmp.Model(coords={"user": len(users), "item": ITEMS, "group": 5, "k": 3}) as model:
        a = svmp.Normal("a", mu=0, tau=1, dims=("user", "k"))
        b = svmp.Normal("b", mu=0.5, tau=1, dims=("item", "k"))
        c = svmp.Normal("c", mu=0.5, tau=1, dims=("group", "k"))
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        mu = svmp.dot(a[user], b[ITEM[rows]], c[GROUP[rows]])
        svmp.Normal("y", mu=mu, tau=tau, observed=SCORE[rows])
    return Part(model, {"a": lines(users, 3)}, frozenset({"a"}))


def topics(rows: Ints) -> Part:
    docs, doc = keyed(USER[rows])
    words = RNG_WORDS[rows]
    with svmp.Model(coords={"doc": len(docs), "row": len(rows), "k": 3, "word": 9}) as model:
        theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "k"))
        phi = svmp.Dirichlet("phi", a=0.3, dims=("k", "word"))
        z = svmp.Categorical("z", p=theta[doc], dims="row")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="row", observed=words)
    return Part(model, {"theta": docs, "z": rows}, frozenset({"theta", "z"}))


RNG_WORDS = np.random.default_rng(2).integers(9, size=ROWS)


def mixture(rows: Ints) -> Part:
    with svmp.Model(coords={"row": len(rows), "k": 3, "d": 3}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=1, dims=("k", "d"))
        tau = svmp.Gamma("tau", alpha=2, beta=2, dims="k")
        x = X[rows]
        svmp.Mixture("x", z, svmp.Normal.dist(mu=mu, tau=tau), dims=("row", "d"), observed=x)
    return Part(model, {"z": rows}, frozenset({"z"}))


def regression(logit: bool = False) -> Make:
    def make(rows: Ints) -> Part:
        groups, group = keyed(GROUP[rows])
        with svmp.Model(coords={"group": len(groups), "d": 3}) as model:
            a = svmp.Normal("a", mu=0.5, tau=0.1)
            u = svmp.Normal("u", mu=0, tau=1, dims="group")
            w = svmp.MvNormal("w", mu=0.1, tau=2 * np.eye(3), dims="d")
            s = svmp.Normal("s", mu=0, tau=0.3, dims="group")
            mu = a + u[group] + s[group] * X[rows, 0] + svmp.dot(X[rows], w)
            if logit:
                svmp.Bernoulli("y", logit=mu, observed=SCORE[rows] > 1)
            else:
                tau = svmp.Gamma("tau", alpha=2, beta=1)
                svmp.Normal("y", mu=mu, tau=tau, observed=SCORE[rows])
        return Part(model, {"u": groups, "s": groups}, frozenset())

    make.__name__ = "logistic_regression" if logit else "regression"
    return make


def ard(rows: Ints) -> Part:
    with svmp.Model(coords={"d": 3}) as model:
        alpha = svmp.Gamma("alpha", alpha=2, beta=1, dims="d")
        w = svmp.Normal("w", mu=0, tau=alpha, dims="d")
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        svmp.Normal("y", mu=svmp.dot(X[rows], w), tau=tau, observed=SCORE[rows])
    return Part(model, {}, frozenset())


def hierarchy(rows: Ints) -> Part:
    groups, group = keyed(USER[rows])
    with svmp.Model(coords={"group": len(groups)}) as model:
        top = svmp.Normal("top", mu=1, tau=0.1)
        slope = svmp.Normal("slope", mu=0, tau=1)
        between = svmp.Gamma("between", alpha=2, beta=1)
        u = svmp.Normal("u", mu=2 * top, tau=between, dims="group")
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        mu = u[group] + slope * X[rows, 0]
        svmp.Normal("y", mu=mu, tau=tau, observed=SCORE[rows])
    return Part(model, {"u": groups}, frozenset({"u"}))


def counts(rows: Ints) -> Part:
    groups, group = keyed(USER[rows])
    with svmp.Model(coords={"user": len(groups), "group": 5}) as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1)
        own = svmp.Gamma("own", alpha=2, beta=rate, dims="user")
        g = svmp.Gamma("g", alpha=2, beta=1, dims="group")
        times = np.random.default_rng(3).poisson(2, ROWS)[rows]
        svmp.Poisson("y", mu=own[group] * g[GROUP[rows]], observed=times)
    return Part(model, {"own": groups}, frozenset({"own"}))


NETWORKS: list[Any] = [
    mean_and_precision,
    ratings(1),
    ratings(5),
    ratings(20),
    ratings(5, logit=True),
    ratings(20, logit=True),
    full_covariance,
    dense(("item", "factor", "time")),
    dense(("factor", "item", "time")),
    dense(("item", "time", "factor")),
    tensor,
    topics,
    mixture,
    regression(),
    regression(logit=True),
    ard,
    hierarchy,
    counts,
]
