"""Random small networks of every kind, as Hypothesis strategies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

import svmp

from .random_means import PLATE, Mean, Means

Draw = Callable[..., Any]


class Sizes:
    """Draws the ingredients of a network: sizes, keys, numbers and booleans."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def size(self, most: int = 3) -> int:
        return int(self.draw(st.integers(1, most)))

    def yes(self) -> bool:
        return bool(self.draw(st.booleans()))

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def key(self, count: int, *shape: int) -> np.ndarray:
        return self.rng.integers(count, size=shape)

    def normal(self, *shape: int) -> np.ndarray:
        return self.rng.normal(size=shape).round(3)

    def positive(self, *shape: int) -> np.ndarray:
        return (self.rng.gamma(2.0, 1.0, size=shape) + 0.2).round(3)

    def counts(self, *shape: int) -> np.ndarray:
        return self.rng.poisson(2.0, size=shape)

    def precision(self, d: int) -> np.ndarray:
        root = self.rng.normal(size=(d, d)).round(2)
        return root @ root.T + np.eye(d)

    def missing(self, *shape: int) -> np.ndarray | bool:
        """Draw some missing rows, never all; or none."""
        if self.yes():
            return False
        mask = self.rng.random(shape) < 0.3
        mask.flat[0] = False
        return mask


def coins(draw: Draw) -> svmp.Model:
    """Beta parents of Bernoullis and Binomials, with hidden leaves too."""
    s = Sizes(draw)
    a, n = s.size(), s.size(5)
    with svmp.Model(coords={"a": a, "row": n}) as model:
        p = svmp.Beta("p", alpha=s.positive(a), beta=s.positive(), dims="a")
        key = s.key(a, n)
        trials = s.rng.integers(1, 6, n)
        svmp.Binomial(
            "x", n=trials, p=p[key], dims="row", observed=s.rng.binomial(trials, 0.4),
            missing=s.missing(n),
        )  # fmt: skip
        svmp.Bernoulli("y", p=p[s.key(a, n)], dims="row", observed=s.rng.integers(0, 2, n))
        if s.yes():
            svmp.Bernoulli("b", p=p[key], dims="row")
        if s.yes():
            svmp.Binomial("c", n=trials, p=p[key], dims="row")
    return model


def words(draw: Draw) -> svmp.Model:
    """Dirichlet parents of Categoricals and Multinomials, with hidden leaves too."""
    s = Sizes(draw)
    a, n, w = s.size(), s.size(4), s.size(3) + 1
    with svmp.Model(coords={"a": a, "row": n, "word": w}) as model:
        p = svmp.Dirichlet("p", a=s.positive(w), dims=("a", "word"))
        svmp.Categorical(
            "x", p=p[s.key(a, n)], dims="row", observed=s.key(w, n), missing=s.missing(n)
        )
        counts = s.counts(n, w)
        svmp.Multinomial(
            "y", n=counts.sum(axis=1), p=p[s.key(a, n)], dims=("row", "word"), observed=counts
        )
        if s.yes():
            svmp.Categorical("z", p=p[s.key(a, n)], dims="row")
        if s.yes():
            svmp.Multinomial("t", n=3, p=p[s.key(a, n)], dims=("row", "word"))
    return model


def rates(draw: Draw) -> svmp.Model:
    """Gammas in chains and products, over Poissons, Exponentials, Gammas and Normals."""
    s = Sizes(draw)
    a, b, n = s.size(), s.size(), s.size(5)
    with svmp.Model(coords={"a": a, "b": b, "row": n}) as model:
        top = svmp.Gamma("top", alpha=s.positive(), beta=s.positive())
        beta = s.pick(top, 2.0 * top, s.positive(a) * top)
        g = svmp.Gamma("g", alpha=s.positive(a), beta=beta, dims="a")
        h = svmp.Gamma("h", alpha=1.5, beta=s.pick(1.0, top), dims="b")
        i, j = s.key(a, n), s.key(b, n)
        rate = s.pick(g[i], g[i] * h[j], g[i] * h[j] * top, g[i] * s.positive(n) * h[j] / 2)
        kind = s.pick("Poisson", "Exponential", "Gamma", "Normal")
        if kind == "Poisson":
            observed = s.counts(n)
            svmp.Poisson("x", mu=rate, dims="row", observed=observed, missing=s.missing(n))
        elif kind == "Exponential":
            svmp.Exponential("x", lam=rate, dims="row", observed=s.positive(n))
        elif kind == "Gamma":
            svmp.Gamma("x", alpha=s.positive(n), beta=rate, dims="row", observed=s.positive(n))
        else:
            svmp.Normal("x", mu=s.normal(n), tau=rate, dims="row", observed=s.normal(n))
        if s.yes():
            svmp.Poisson("y", mu=h, dims="b", observed=s.counts(b))
        if s.yes():
            svmp.Exponential("e", lam=g, dims="a")
        if s.yes():
            svmp.Poisson("c", mu=g * h[0], dims="a")
    return model


def vectors(draw: Draw) -> svmp.Model:
    """MvNormals with hidden means and precision matrices, in groups."""
    s = Sizes(draw)
    a, n, d = s.size(), s.size(4), s.size(2)
    with svmp.Model(coords={"a": a, "row": n, "d": d}) as model:
        W = svmp.Wishart("W", nu=d + 1.5, V=s.precision(d), dims=("d", "d"))
        L = svmp.Wishart("L", nu=d + s.positive(a), V=np.eye(d), dims=("a", "d", "d"))
        m = svmp.MvNormal("m", mu=s.normal(d), tau=s.precision(d), dims="d")
        x = svmp.MvNormal("x", mu=m, tau=s.pick(W, s.precision(d)), dims=("a", "d"))
        key = s.key(a, n)
        svmp.MvNormal(
            "y", mu=x[key], tau=s.pick(W, L[key]), dims=("row", "d"), observed=s.normal(n, d),
            missing=s.missing(n),
        )  # fmt: skip
        if s.yes():
            tau = svmp.Gamma("tau", alpha=1.5, beta=1.5)
            svmp.Normal("r", mu=svmp.dot(x[key], m), tau=tau, dims="row", observed=s.normal(n))
        if s.yes():
            svmp.Normal("entries", mu=x, tau=1.5, dims=("a", "d"), observed=s.normal(a, d))
    return model


def matrices(draw: Draw) -> svmp.Model:
    """MvNormals whose precision matrices are diagonals of Gammas or multiples of Wisharts."""
    s = Sizes(draw)
    a, n, d = s.size(), s.size(4), s.size(3)
    with svmp.Model(coords={"a": a, "row": n, "d": d}) as model:
        f = svmp.Gamma("f", alpha=1.5, beta=s.positive())
        g = svmp.Gamma("g", alpha=s.positive(d), beta=s.pick(1.0, f), dims="d")
        h = svmp.Gamma("h", alpha=2, beta=1.5, dims="a")
        e = svmp.Gamma("e", alpha=2, beta=1, dims=("a", "d"))
        W = svmp.Wishart("W", nu=d + 1.5, V=s.precision(d), dims=("d", "d"))
        prior = s.pick(
            {"V": np.eye(d)}, {"rate": W}, {"rate": 0.5 * f * W}, {"rate": svmp.diag(g)},
            {"rate": svmp.diag(2 * e)}, {"rate": s.precision(d)}, {"rate": h * W},
        )  # fmt: skip
        L = svmp.Wishart("L", nu=d + s.positive(a), dims=("a", "d", "d"), **prior)
        key = s.key(a, n)
        tau = s.pick(svmp.diag(g), svmp.diag(f), svmp.diag(s.positive(d) * g * f), 0.5 * W, f * W)
        m = svmp.MvNormal("m", mu=s.normal(d), tau=tau, dims="d")
        tau = s.pick(
            svmp.diag(g * h), svmp.diag(e), svmp.diag(g[s.key(d, d)]), h * W, 2 * h * L, f * L,
            svmp.diag(e * f * g[0]), svmp.diag(s.positive(a, d) * h),
        )  # fmt: skip
        x = svmp.MvNormal("x", mu=m, tau=tau, dims=("a", "d"))
        rows = svmp.data(key, dims="row")
        tau = s.pick(
            svmp.diag(e[rows] * f), svmp.diag(g * h[rows]), h[rows] * W, s.positive(n) * L[key],
            f * h[key] * L[s.key(a, n)],
        )  # fmt: skip
        observed, missing = s.normal(n, d), s.missing(n)
        svmp.MvNormal("y", x[key], tau, dims=("row", "d"), observed=observed, missing=missing)
        if s.yes():
            svmp.Normal("r", mu=svmp.dot(x[key], m), tau=f, dims="row", observed=s.normal(n))
    return model


def vector_means(draw: Draw) -> svmp.Model:
    """MvNormals whose means are sums of products, some with a scaled matrix as their precision."""
    s = Sizes(draw)
    a, n, d, p = s.size(), s.size(4), s.size(3), s.size(2)
    with svmp.Model(coords={"a": a, "row": n, "d": d, "p": p, "component": 2}) as model:
        g = svmp.Gamma("g", alpha=1.5, beta=s.positive())
        h = svmp.Gamma("h", alpha=2, beta=1.5, dims="a")
        W = svmp.Wishart("W", nu=d + 1.5, V=s.precision(d), dims=("d", "d"))
        c = svmp.Normal("c", mu=s.normal(), tau=1.5)
        m = svmp.MvNormal("m", mu=s.normal(d), tau=g * s.precision(d), dims="d")
        b = svmp.Normal("b", mu=0, tau=1.5, dims=("p", "d"))
        B = svmp.MvNormal("B", mu=0, tau=s.precision(p), dims=("d", "p"))
        u = svmp.MvNormal("u", mu=0.5, tau=s.precision(p), dims=("a", "p"))
        x, key = s.normal(n, p), s.key(a, n)
        mean = s.pick(
            m - c, 2 * m + c * svmp.data(s.normal(n), "row"), svmp.dot(x, b, dim="p"),
            svmp.dot(x, B, dim="p") + m,
            svmp.dot(u[key], B, dim="p"), svmp.dot(u[key], b, dim="p") + m * c + c,
            svmp.dot(s.normal(d, p), u[0], dim="p"), b[s.key(p, n)] + s.normal(n, d), c,
            svmp.dot(sparse.csr_array(x), b, dim="p"), svmp.dot(u[key], B, dim="p") * c + B[0, 0],
        )  # fmt: skip
        tau = s.pick(
            W, g * W, g * s.precision(d), h[key] * (2 * s.precision(d)),
            s.positive(n) * g * np.stack([s.precision(d) for _ in range(n)]), s.precision(d),
        )  # fmt: skip
        kind, values = s.pick("observed", "hidden", "mixture"), s.normal(n, d)
        if kind == "observed":
            missing = s.missing(n)
            svmp.MvNormal("y", mean, tau, dims=("row", "d"), observed=values, missing=missing)
        elif kind == "hidden":
            y = svmp.MvNormal("y", mean, tau, dims=("row", "d"))
            svmp.MvNormal("e", y + m, 2 * W, dims=("row", "d"), observed=values)
        else:
            z = svmp.Categorical("z", p=svmp.data([0.4, 0.6], dims="component"), dims="row")
            v = svmp.MvNormal("v", mu=0, tau=s.precision(d), dims=("component", "d"))
            component = svmp.MvNormal.dist(mu=mean + v, tau=tau)
            svmp.Mixture("y", z, component, dims=("row", "d"), observed=values)
    return model


def partly_observed(draw: Draw) -> svmp.Model:
    """Parents with missing values: covariates, vectors, rates, and classes of some rows."""
    s = Sizes(draw)
    a, n, d = s.size(), s.size(5) + 1, s.size(2)
    with svmp.Model(coords={"a": a, "row": n, "d": d, "component": 2}) as model:
        m = svmp.Normal("m", mu=0, tau=0.5)
        g = svmp.Gamma("g", alpha=2, beta=1)
        b = svmp.Normal("b", mu=0, tau=1, dims="a")
        gaps = np.arange(n) % 2 == 0
        kind = s.pick("covariate", "vector", "rate", "class", "shared")
        if kind == "covariate":
            x = svmp.Normal("x", mu=m, tau=g, dims="row", observed=s.normal(n), missing=gaps)
            mu = s.pick(b[0] * x, x + b[s.key(a, n)], b[s.key(a, n)] * x + m)
            missing = s.missing(n)
            svmp.Normal("y", mu=mu, tau=2, dims="row", observed=s.normal(n), missing=missing)
        elif kind == "vector":
            x = svmp.MvNormal(
                "x", mu=m, tau=g * np.eye(d), dims=("row", "d"), observed=s.normal(n, d),
                missing=gaps,
            )  # fmt: skip
            if s.yes():
                svmp.MvNormal("y", x, np.eye(d), dims=("row", "d"), observed=s.normal(n, d))
            else:
                w = svmp.Normal("w", mu=0, tau=1, dims="d")
                svmp.Normal("y", mu=svmp.dot(x, w), tau=g, dims="row", observed=s.normal(n))
        elif kind == "rate":
            x = svmp.Gamma("x", alpha=2, beta=g, dims="row", observed=s.positive(n), missing=gaps)
            svmp.Poisson("y", mu=s.pick(x, 2 * x * g), dims="row", observed=s.counts(n))
        elif kind == "class":
            p = svmp.Dirichlet("p", a=1.5, dims="component")
            z = svmp.Categorical("z", p=p, dims="row", observed=s.key(2, n), missing=gaps)
            c = svmp.Normal("c", mu=s.normal(2), tau=1, dims="component")
            svmp.Mixture("y", z, svmp.Normal.dist(mu=c, tau=g), dims="row", observed=s.normal(n))
        else:
            x = svmp.Normal("x", mu=m, tau=1, dims="row", observed=s.normal(n), missing=gaps)
            svmp.Normal("y", mu=x[s.key(n, 4)] * b[0], tau=g, observed=s.normal(4))
    return model


def _choice(s: Sizes, k: int, n: int) -> svmp.Variable:
    """Return the Categorical of a mixture: weights hidden or fixed, per group or shared."""
    kind = s.pick("shared", "grouped", "known")
    if kind == "shared":
        p = svmp.Dirichlet("w", a=s.positive(), dims="component")
        return svmp.Categorical("z", p=p, dims="row")
    if kind == "grouped":
        p = svmp.Dirichlet("w", a=s.positive(k), dims=("a", "component"))
        return svmp.Categorical("z", p=p[s.key(2, n)], dims="row")
    known = s.rng.dirichlet(np.ones(k), n).clip(0.05)
    known /= known.sum(axis=1, keepdims=True)
    return svmp.Categorical("z", p=svmp.data(known, dims=("row", "component")), dims="row")


def mixtures(draw: Draw) -> svmp.Model:
    """Mixtures of every kind, with parameters of the components, of the rows, and shared."""
    s = Sizes(draw)
    k, n, d = s.size(2) + 1, s.size(5), s.size(2)
    with svmp.Model(coords={"component": k, "row": n, "d": d, "a": 2}) as model:
        z = _choice(s, k, n)
        kind = s.pick(
            "Normal", "MvNormal", "Poisson", "Bernoulli", "Categorical", "Gamma", "Binomial"
        )
        missing = s.missing(n)
        if kind == "Normal":
            m = svmp.Normal("m", mu=0, tau=0.5, dims="component")
            b = svmp.Normal("b", mu=0, tau=1, dims="a")
            u = svmp.MvNormal("u", mu=0, tau=np.eye(d), dims=("component", "d"))
            i = s.key(2, n)
            mean = s.pick(
                m, m + b[i], m * b[i] + b[1], svmp.dot(u, s.normal(n, d), dim="d") + b[i],
                m - b[i] + 0.5 * b[0],
            )  # fmt: skip
            g = svmp.Gamma("g", alpha=2, beta=2, dims="component")
            h = svmp.Gamma("h", alpha=2, beta=1)
            tau = s.pick(1.5, g, h, g * h, h * s.positive(n))
            component = svmp.Normal.dist(mu=mean, tau=tau)
            svmp.Mixture("x", z, component, dims="row", observed=s.normal(n), missing=missing)
        elif kind == "MvNormal":
            m = svmp.MvNormal("m", mu=0, tau=s.precision(d), dims=("component", "d"))
            W = svmp.Wishart("W", nu=d + 2, V=np.eye(d), dims=("component", "d", "d"))
            V = svmp.Wishart("V", nu=d + 2, V=np.eye(d), dims=("d", "d"))
            g = svmp.Gamma("g", alpha=2, beta=1, dims=("component", "d"))
            h = svmp.Gamma("h", alpha=2, beta=1, dims="component")
            e = svmp.Gamma("e", alpha=2, beta=1, dims="d")
            tau = s.pick(
                W, V, s.precision(d), svmp.diag(g), svmp.diag(g * h * e), svmp.diag(e), h * V,
                s.positive(n) * h * W, e[0] * V,
            )  # fmt: skip
            component = svmp.MvNormal.dist(mu=m, tau=tau)
            svmp.Mixture(
                "x", z, component, dims=("row", "d"), observed=s.normal(n, d), missing=missing
            )
        elif kind == "Poisson":
            g = svmp.Gamma("g", alpha=2, beta=2, dims="component")
            h = svmp.Gamma("h", alpha=2, beta=1, dims="a")
            rate = s.pick(g, g * h[s.key(2, n)], g * 1.5 * s.positive(n), g * h[0])
            component = svmp.Poisson.dist(mu=rate)
            svmp.Mixture("x", z, component, dims="row", observed=s.counts(n), missing=missing)
        elif kind == "Bernoulli":
            p = svmp.Beta("p", alpha=1, beta=1.5, dims=("component", "d"))
            svmp.Mixture(
                "x", z, svmp.Bernoulli.dist(p=p), dims=("row", "d"),
                observed=s.rng.integers(0, 2, (n, d)),
            )  # fmt: skip
        elif kind == "Categorical":
            p = svmp.Dirichlet("p", a=0.7, dims=("component", "a"))
            svmp.Mixture(
                "x", z, svmp.Categorical.dist(p=p), dims="row", observed=s.key(2, n),
                missing=missing,
            )  # fmt: skip
        elif kind == "Gamma":
            g = svmp.Gamma("g", alpha=2, beta=2, dims="component")
            component = svmp.Gamma.dist(alpha=s.positive(n), beta=g)
            svmp.Mixture("x", z, component, dims="row", observed=s.positive(n), missing=missing)
        else:
            p = svmp.Beta("p", alpha=1, beta=1.5, dims="component")
            trials = s.rng.integers(1, 5, n)
            svmp.Mixture(
                "x", z, svmp.Binomial.dist(n=trials, p=p), dims="row",
                observed=s.rng.binomial(trials, 0.5), missing=missing,
            )  # fmt: skip
        if s.yes():  # a second table with the same Categorical
            r = svmp.Gamma("r", alpha=1, beta=1, dims="component")
            svmp.Mixture(
                "second", z, svmp.Exponential.dist(lam=r), dims="row", observed=s.positive(n)
            )
    return model


def inner_mixtures(draw: Draw) -> svmp.Model:
    """A hidden mixture, and a Categorical that several rows share."""
    s = Sizes(draw)
    k, a, n = s.size(2) + 1, s.size(), s.size(5)
    with svmp.Model(coords={"component": k, "a": a, "row": n}) as model:
        w = svmp.Dirichlet("w", a=1.0, dims="component")
        z = svmp.Categorical("z", p=w, dims="a")
        m = svmp.Normal("m", mu=s.normal(k), tau=1, dims="component")
        g = svmp.Gamma("g", alpha=2, beta=1, dims="component")
        key = s.key(a, n)
        if s.yes():
            x = svmp.Mixture("x", z, svmp.Normal.dist(mu=m, tau=s.pick(g, 2.0)), dims="a")
            svmp.Normal("y", mu=x[key] + m[0], tau=1.5, dims="row", observed=s.normal(n))
        else:
            svmp.Mixture(
                "y", z[key], svmp.Normal.dist(mu=m, tau=g), dims="row", observed=s.normal(n),
                missing=s.missing(n),
            )  # fmt: skip
        if s.yes():
            rate = svmp.Mixture("rate", z, svmp.Gamma.dist(alpha=2, beta=g), dims="a")
            svmp.Poisson("c", mu=rate[key], dims="row", observed=s.counts(n))
    return model


def factorization(draw: Draw) -> svmp.Model:
    """The paper's matrix factorization, with biases and hidden precisions."""
    s = Sizes(draw)
    users, items, k, n = s.size(), s.size(), s.size(), s.size(6)
    coords = {"user": users, "item": items, "k": k, "row": n}
    with svmp.Model(coords=coords) as model:
        tau_u = svmp.Gamma("tau_u", alpha=2, beta=1, dims="k")
        u = svmp.Normal("u", mu=0, tau=s.pick(1.0, tau_u), dims=("user", "k"))
        v = _items(s, k)
        b = svmp.Normal("b", mu=0, tau=1, dims="item")
        c = svmp.Normal("c", mu=0, tau=1)
        i, j = s.key(users, n), s.key(items, n)
        mean = s.pick(
            svmp.dot(u[i], v[j]), svmp.dot(u[i], v[j]) + b[j], svmp.dot(u[i], v[j]) + b[j] + c,
            svmp.dot(u[i], v[j]) * c + b[j] - b[0],
        )  # fmt: skip
        tau = svmp.Gamma("tau", alpha=2, beta=1, dims="item")
        svmp.Normal(
            "r", mu=mean, tau=s.pick(2.0, tau[j]), dims="row", observed=s.normal(n),
            missing=s.missing(n),
        )  # fmt: skip
    return model


def _items(s: Sizes, k: int) -> svmp.Variable:
    if s.yes():
        return svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))
    return svmp.MvNormal("v", mu=0, tau=np.eye(k), dims=("item", "k"))


def comparisons(draw: Draw) -> svmp.Model:
    """Games between players, s[a] - s[b], where a may be b."""
    s = Sizes(draw)
    players, n = s.size(4), s.size(6)
    with svmp.Model(coords={"player": players, "game": n}) as model:
        tau = svmp.Gamma("tau", alpha=2, beta=2)
        skill = svmp.Normal("skill", mu=0, tau=s.pick(1.0, tau), dims="player")
        home = svmp.Normal("home", mu=0, tau=1)
        a, b = s.key(players, n), s.key(players, n)
        mean = s.pick(skill[a] - skill[b], skill[a] - skill[b] + home, home * skill[a] - skill[b])
        if s.yes():
            edge = svmp.Normal("edge", mu=mean, tau=2, dims="game")
            svmp.Normal("x", mu=edge, tau=tau, dims="game", observed=s.normal(n))
        else:
            svmp.Normal("x", mu=mean, tau=tau, dims="game", observed=s.normal(n))
    return model


def random_means(draw: Draw) -> tuple[svmp.Model, Mean]:
    """A Normal table whose mean is any tree of sums, products, keys and designs."""
    s = Sizes(draw)
    sizes = {axis: s.size(3 if axis in "qa" else 2) for axis in ("p", "q", "k", "l", "a", "b")}
    every = tuple(sizes)
    with svmp.Model(coords=sizes) as model:
        variables: list[svmp.Variable] = []
        for name in ("x", "y", "s", "v")[: s.size(4)]:
            dims = tuple(draw(st.permutations(every))[: draw(st.integers(0, 2))])
            shape = tuple(sizes[d] for d in dims)
            kind = s.pick("Normal", "Normal", "MvNormal", "observed") if dims else "Normal"
            if kind == "MvNormal":
                tau = s.precision(shape[-1])
                variables.append(svmp.MvNormal(name, mu=s.normal(*shape), tau=tau, dims=dims))
            else:
                observed = s.normal(*shape) if kind == "observed" and variables else None
                variables.append(
                    svmp.Normal(name, mu=s.normal(*shape), tau=1.5, dims=dims, observed=observed)
                )
        mean = Means(draw, sizes, variables).mean()
        shape = tuple(sizes[d] for d in PLATE)
        tau = svmp.Gamma("tau", alpha=2, beta=1.5, dims="q")
        precision = s.pick(1.3, tau)
        if s.yes():
            r = svmp.Normal("r", mu=mean.ours, tau=precision, dims=PLATE)
            svmp.Normal("e", mu=r, tau=2, dims=PLATE, observed=s.normal(*shape))
        else:
            svmp.Normal(
                "r", mu=mean.ours, tau=precision, dims=PLATE, observed=s.normal(*shape),
                missing=s.missing(*shape),
            )  # fmt: skip
    return model, mean


def logits(draw: Draw) -> svmp.Model:
    """Bernoullis and Binomials with logits of many kinds, with hidden leaves and mixtures too."""
    s = Sizes(draw)
    a, b, k, n = s.size(), s.size(), s.size(), s.size(6)
    with svmp.Model(coords={"a": a, "b": b, "k": k, "row": n, "component": 2}) as model:
        tau = svmp.Gamma("tau", alpha=2, beta=1, dims="k")
        u = svmp.Normal("u", mu=0, tau=s.pick(1.0, tau), dims=("a", "k"))
        v = svmp.MvNormal("v", mu=0.2, tau=np.eye(k), dims=("b", "k"))
        c = svmp.Normal("c", mu=0, tau=1, dims="a")
        i, j = s.key(a, n), s.key(b, n)
        logit = s.pick(
            c[i], c[i] - c[s.key(a, n)], 2 * c[i] - 1, svmp.dot(u[i], v[j]) + c[i],
            svmp.dot(s.normal(n, k), v[j]) + c[0], u[i, 0] * c[i],
            svmp.dot(u[i], v[j]) * c[i] + c[0], svmp.dot(s.normal(n, k), u[i]) + c[i] * s.normal(n),
        )  # fmt: skip
        observed, missing = s.rng.integers(0, 2, n), s.missing(n)
        if s.yes():
            own = svmp.Normal("own", mu=logit, tau=s.pick(2.0, tau[0]), dims="row")
            svmp.Bernoulli("x", logit=own, dims="row", observed=observed, missing=missing)
        elif s.yes():
            trials = observed + s.rng.integers(0, 3, n)
            svmp.Binomial(
                "x", n=trials, logit=logit, dims="row", observed=observed, missing=missing
            )
        else:
            svmp.Bernoulli("x", logit=logit, dims="row", observed=observed, missing=missing)
        if s.yes():
            svmp.Bernoulli("leaf", logit=c, dims="a")
        if s.yes():
            p = svmp.Dirichlet("p", a=1.5, dims="component")
            z = svmp.Categorical("z", p=p, dims="row")
            m = svmp.Normal("m", mu=0, tau=1, dims="component")
            component = svmp.Bernoulli.dist(logit=m + c[i])
            svmp.Mixture("y", z, component, dims="row", observed=s.rng.integers(0, 2, n))
    return model


KINDS: dict[str, Callable[[Draw], svmp.Model]] = {
    "coins": coins,
    "words": words,
    "rates": rates,
    "vectors": vectors,
    "matrices": matrices,
    "vector means": vector_means,
    "partly observed": partly_observed,
    "mixtures": mixtures,
    "inner mixtures": inner_mixtures,
    "factorization": factorization,
    "comparisons": comparisons,
    "logits": logits,
    "random means": lambda draw: random_means(draw)[0],
}


def of_kind(kind: str) -> st.SearchStrategy[svmp.Model]:
    return st.composite(KINDS[kind])()


def with_random_mean() -> st.SearchStrategy[tuple[svmp.Model, Mean]]:
    return st.composite(random_means)()
