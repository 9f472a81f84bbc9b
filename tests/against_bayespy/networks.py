"""The same networks, declared in svmp and in BayesPy, with the same start and order of updates.

BayesPy's parameters differ: GaussianARD(mu, alpha) has precision alpha, Wishart(n, V) the inverse
of our scale matrix. Plates of its nodes are aligned by position; ours have names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import bayespy.nodes as bp
import numpy as np

import svmp

RNG = np.random.Generator


@dataclass
class Twins:
    """A network in both libraries.

    Attributes
    ----------
    model, start
        Our model, and standard parameters of the start by variable.
    order
        For each of our hidden variables, in the order of updates, the node of BayesPy; or several,
        one for each index of the variable's last axis, where one node would not have a factorised
        q.
    others
        BayesPy's remaining nodes.
    """

    model: svmp.Model
    start: dict[str, dict[str, Any]]
    order: dict[str, Any]
    others: list[Any]

    @property
    def nodes(self) -> list[Any]:
        """BayesPy's hidden nodes, in the order of updates."""
        return [n for node in self.order.values() for n in _as_list(node)]


def _as_list(node: Any) -> list[Any]:
    return node if isinstance(node, list) else [node]


def normal_gamma(rng: RNG) -> Twins:
    y = rng.normal(2, 3, 30)
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0.5, tau=0.1)
        tau = svmp.Gamma("tau", alpha=1.5, beta=0.7)
        svmp.Normal("y", mu=mu, tau=tau, observed=y)
    start = {"mu": {"mu": 1.0, "tau": 2.0}, "tau": {"alpha": 2.0, "beta": 3.0}}

    mu, tau = bp.GaussianARD(0.5, 0.1), bp.Gamma(1.5, 0.7)
    node = bp.GaussianARD(mu, tau, plates=(30,))
    node.observe(y)
    mu.initialize_from_parameters(1.0, 2.0)
    tau.initialize_from_parameters(2.0, 3.0)
    return Twins(model, start, {"mu": mu, "tau": tau}, [node])


def regression_with_ard(rng: RNG) -> Twins:
    """Every weight is a separate factor of q, with a separate precision."""
    n, d = 25, 4
    X = rng.normal(size=(n, d))
    y = X @ [2.0, 0.0, -1.0, 0.0] + rng.normal(size=n)
    w0 = rng.normal(size=d)
    with svmp.Model(coords={"feature": d}) as model:
        alpha = svmp.Gamma("alpha", alpha=1e-2, beta=1e-2, dims="feature")
        w = svmp.Normal("w", mu=0, tau=alpha, dims="feature")
        tau = svmp.Gamma("tau", alpha=1e-2, beta=1e-2)
        svmp.Normal("y", mu=svmp.dot(X, w), tau=tau, observed=y)
    start = {
        "w": {"mu": w0, "tau": 1.5},
        "alpha": {"alpha": 1.0, "beta": 2.0},
        "tau": {"alpha": 3.0, "beta": 2.0},
    }

    alphas = [bp.Gamma(1e-2, 1e-2) for _ in range(d)]
    ws = [bp.GaussianARD(0, a) for a in alphas]
    tau = bp.Gamma(1e-2, 1e-2)
    mean = bp.Add(*(bp.SumMultiply(",", X[:, i], w) for i, w in enumerate(ws)))
    node = bp.GaussianARD(mean, tau, plates=(n,))
    node.observe(y)
    for i in range(d):
        ws[i].initialize_from_parameters(w0[i], 1.5)
        alphas[i].initialize_from_parameters(1.0, 2.0)
    tau.initialize_from_parameters(3.0, 2.0)
    return Twins(model, start, {"w": ws, "tau": tau, "alpha": alphas}, [node])


def regression_with_vector(rng: RNG) -> Twins:
    """The weights are one vector, with their covariance in q."""
    n, d = 25, 3
    X = rng.normal(size=(n, d))
    y = X @ [2.0, 0.0, -1.0] + rng.normal(size=n)
    with svmp.Model(coords={"feature": d}) as model:
        w = svmp.MvNormal("w", mu=0, tau=0.5 * np.eye(d), dims="feature")
        tau = svmp.Gamma("tau", alpha=1e-2, beta=1e-2)
        svmp.Normal("y", mu=svmp.dot(X, w), tau=tau, observed=y)
    start = {"w": {"mu": [0.0] * d, "tau": np.eye(d)}, "tau": {"alpha": 3.0, "beta": 2.0}}

    w = bp.GaussianARD(0, 0.5, shape=(d,))
    tau = bp.Gamma(1e-2, 1e-2)
    node = bp.GaussianARD(bp.SumMultiply("i,i", X, w), tau, plates=(n,))
    node.observe(y)
    w.initialize_from_parameters(np.zeros(d), np.ones(d))
    tau.initialize_from_parameters(3.0, 2.0)
    return Twins(model, start, {"tau": tau, "w": w}, [node])


def factor_analysis(rng: RNG) -> Twins:
    """Vectors of loadings and scores, a noise precision for each variable, a third missing."""
    m, n, k = 6, 12, 2
    y = rng.normal(size=(m, k)) @ rng.normal(size=(k, n)) + 0.3 * rng.normal(size=(m, n))
    gone = rng.random((m, n)) < 1 / 3
    c0, x0 = rng.normal(size=(m, k)), rng.normal(size=(n, k))
    with svmp.Model(coords={"m": m, "n": n, "k": k}) as model:
        c = svmp.MvNormal("c", mu=0, tau=0.3 * np.eye(k), dims=("m", "k"))
        x = svmp.MvNormal("x", mu=0, tau=np.eye(k), dims=("n", "k"))
        tau = svmp.Gamma("tau", alpha=0.1, beta=0.1, dims="m")
        svmp.Normal("y", mu=svmp.dot(c, x), tau=tau, dims=("m", "n"), observed=y, missing=gone)
    start = {
        "c": {"mu": c0, "tau": 2 * np.eye(k)},
        "x": {"mu": x0, "tau": 3 * np.eye(k)},
        "tau": {"alpha": 3.0, "beta": 2.0},
    }

    c = bp.GaussianARD(0, 0.3, shape=(k,), plates=(m, 1))
    x = bp.GaussianARD(0, 1, shape=(k,), plates=(1, n))
    tau = bp.Gamma(0.1, 0.1, plates=(m, 1))
    node = bp.GaussianARD(bp.SumMultiply("d,d->", c, x), tau, plates=(m, n))
    node.observe(y, mask=~gone)
    c.initialize_from_parameters(c0[:, None], 2 * np.ones(k))
    x.initialize_from_parameters(x0[None], 3 * np.ones(k))
    tau.initialize_from_parameters(3.0, 2.0)
    return Twins(model, start, {"x": x, "c": c, "tau": tau}, [node])


def gaussian_mixture(rng: RNG) -> Twins:
    n, d, k = 30, 2, 3
    y = np.concatenate([rng.normal(c, 1, (n // k, d)) for c in (-4, 0, 5)])
    p0 = rng.dirichlet(np.ones(k), n)
    V = np.array([[0.5, 0.1], [0.1, 0.4]])
    m0 = np.array([[-1.0, 0], [0, 1], [1, 0]])
    with svmp.Model(coords={"row": n, "k": k, "d": d}) as model:
        weight = svmp.Dirichlet("weight", a=0.5, dims="k")
        z = svmp.Categorical("z", p=weight, dims="row")
        mu = svmp.MvNormal("mu", mu=[0.1, -0.2], tau=0.05 * np.eye(d), dims=("k", "d"))
        tau = svmp.Wishart("tau", nu=3.5, V=V, dims=("k", "d", "d"))
        svmp.Mixture("y", z, svmp.MvNormal.dist(mu=mu, tau=tau), dims=("row", "d"), observed=y)
    start = {
        "weight": {"a": [1.0, 2.0, 3.0]},
        "z": {"p": p0},
        "mu": {"mu": m0, "tau": np.eye(d)},
        "tau": {"nu": 4.0, "V": 0.5 * np.eye(d)},
    }

    weight = bp.Dirichlet(0.5 * np.ones(k))
    z = bp.Categorical(weight, plates=(n,))
    mu = bp.Gaussian([0.1, -0.2], 0.05 * np.eye(d), plates=(k,))
    tau = bp.Wishart(3.5, np.linalg.inv(V), plates=(k,))
    node = bp.Mixture(z, bp.Gaussian, mu, tau)
    node.observe(y)
    weight.initialize_from_parameters([1.0, 2.0, 3.0])
    z.initialize_from_parameters(p0)
    mu.initialize_from_parameters(m0, np.eye(d))
    tau.initialize_from_parameters(4.0, 2 * np.eye(d))
    return Twins(model, start, {"weight": weight, "mu": mu, "tau": tau, "z": z}, [node])


def bernoulli_mixture(rng: RNG) -> Twins:
    n, d, k = 20, 5, 3
    x = (rng.random((n, d)) < rng.random((k, d))[rng.integers(k, size=n)]).astype(int)
    p0 = rng.dirichlet(np.ones(k), n)
    with svmp.Model(coords={"row": n, "k": k, "d": d}) as model:
        weight = svmp.Dirichlet("weight", a=1e-1, dims="k")
        z = svmp.Categorical("z", p=weight, dims="row")
        p = svmp.Beta("p", alpha=0.5, beta=0.7, dims=("k", "d"))
        svmp.Mixture("x", z, svmp.Bernoulli.dist(p=p), dims=("row", "d"), observed=x)
    start = {
        "weight": {"a": [1.0, 2.0, 3.0]},
        "z": {"p": p0},
        "p": {"alpha": 1.0, "beta": 2.0},
    }

    weight = bp.Dirichlet(1e-1 * np.ones(k))
    z = bp.Categorical(weight, plates=(n, 1))
    p = bp.Beta([0.5, 0.7], plates=(d, k))
    node = bp.Mixture(z, bp.Bernoulli, p)
    node.observe(x)
    weight.initialize_from_parameters([1.0, 2.0, 3.0])
    z.initialize_from_parameters(p0[:, None])
    p.initialize_from_parameters([1.0, 2.0])
    return Twins(model, start, {"p": p, "weight": weight, "z": z}, [node])


def poisson_mixture(rng: RNG) -> Twins:
    n, k = 25, 3
    x = rng.poisson(np.array([1, 8, 30])[rng.integers(k, size=n)])
    p0 = rng.dirichlet(np.ones(k), n)
    with svmp.Model(coords={"row": n, "k": k}) as model:
        weight = svmp.Dirichlet("weight", a=[0.5, 1.0, 1.5], dims="k")
        z = svmp.Categorical("z", p=weight, dims="row")
        rate = svmp.Gamma("rate", alpha=1.2, beta=0.1, dims="k")
        svmp.Mixture("x", z, svmp.Poisson.dist(mu=rate), dims="row", observed=x)
    start = {
        "weight": {"a": [1.0, 2.0, 3.0]},
        "z": {"p": p0},
        "rate": {"alpha": 1.0, "beta": [0.3, 0.2, 0.1]},
    }

    weight = bp.Dirichlet([0.5, 1.0, 1.5])
    z = bp.Categorical(weight, plates=(n,))
    rate = bp.Gamma(1.2, 0.1, plates=(k,))
    node = bp.Mixture(z, bp.Poisson, rate)
    node.observe(x)
    weight.initialize_from_parameters([1.0, 2.0, 3.0])
    z.initialize_from_parameters(p0)
    rate.initialize_from_parameters(1.0, [0.3, 0.2, 0.1])
    return Twins(model, start, {"rate": rate, "z": z, "weight": weight}, [node])


def topics(rng: RNG) -> Twins:
    """Latent Dirichlet allocation: a token's topic from its document, its word from its topic."""
    docs, k, words, n = 4, 3, 6, 40
    doc, word = rng.integers(docs, size=n), rng.integers(words, size=n)
    p0 = rng.dirichlet(np.ones(k), n)
    phi0 = rng.gamma(3.0, 1.0, (k, words))
    with svmp.Model(coords={"doc": docs, "topic": k, "word": words, "token": n}) as model:
        theta = svmp.Dirichlet("theta", a=0.6, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=0.2, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[doc], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    start = {"theta": {"a": 2.0}, "phi": {"a": phi0}, "z": {"p": p0}}

    theta = bp.Dirichlet(0.6 * np.ones(k), plates=(docs,))
    phi = bp.Dirichlet(0.2 * np.ones(words), plates=(k,))
    key = bp.Categorical(np.ones(docs) / docs, plates=(n,))  # only its value is needed
    key.observe(doc)
    z = bp.Categorical(bp.Gate(key, theta))
    node = bp.Categorical(bp.Gate(z, phi))
    node.observe(word)
    theta.initialize_from_parameters(2 * np.ones(k))
    phi.initialize_from_parameters(phi0)
    z.initialize_from_parameters(p0)
    return Twins(model, start, {"phi": phi, "theta": theta, "z": z}, [node])


def nested_groups(rng: RNG) -> Twins:
    """Random effects of schools and of classes in them, and three levels of precisions."""
    schools, classes, pupils = 4, 3, 5
    y = rng.normal(size=(schools, 1, 1)) + rng.normal(size=(schools, classes, 1))
    y = 3 + y + 0.5 * rng.normal(size=(schools, classes, pupils))
    gone = rng.random(y.shape) < 0.25
    s0, c0 = rng.normal(size=schools), rng.normal(size=(schools, classes))
    sizes = {"school": schools, "class": classes, "pupil": pupils}
    with svmp.Model(coords=sizes) as model:
        mu = svmp.Normal("mu", mu=0, tau=1e-2)
        taus = [svmp.Gamma(f"tau{i}", alpha=1, beta=0.5) for i in range(3)]
        school = svmp.Normal("school", mu=mu, tau=taus[0], dims="school")
        form = svmp.Normal("form", mu=school, tau=taus[1], dims=("school", "class"))
        svmp.Normal("y", mu=form, tau=taus[2], dims=tuple(sizes), observed=y, missing=gone)
    start = {
        "mu": {"mu": 0.5, "tau": 1.0},
        "school": {"mu": s0, "tau": 2.0},
        "form": {"mu": c0, "tau": 3.0},
        **{f"tau{i}": {"alpha": 2.0, "beta": 1.0 + i} for i in range(3)},
    }

    mu = bp.GaussianARD(0, 1e-2)
    taus = [bp.Gamma(1, 0.5) for _ in range(3)]
    school = bp.GaussianARD(mu, taus[0], plates=(schools, 1, 1))
    form = bp.GaussianARD(school, taus[1], plates=(schools, classes, 1))
    node = bp.GaussianARD(form, taus[2], plates=(schools, classes, pupils))
    node.observe(y, mask=~gone)
    mu.initialize_from_parameters(0.5, 1.0)
    school.initialize_from_parameters(s0[:, None, None], 2.0)
    form.initialize_from_parameters(c0[:, :, None], 3.0)
    for i, tau in enumerate(taus):
        tau.initialize_from_parameters(2.0, 1.0 + i)
    order = {"form": form, "school": school, "mu": mu}
    order |= {f"tau{i}": tau for i, tau in enumerate(taus)}
    return Twins(model, start, order, [node])


def matrix_factorization(rng: RNG) -> Twins:
    """The paper's network: every u_mk and v_nk is a separate factor of q; with biases."""
    m, n, k = 6, 5, 3
    r = rng.normal(3, 1, (m, n))
    gone = rng.random((m, n)) < 0.4
    user, item = np.nonzero(~gone)
    u0, v0 = 0.3 * rng.normal(size=(m, k)), 0.3 * rng.normal(size=(n, k))
    b0 = rng.normal(size=n)
    with svmp.Model(coords={"user": m, "item": n, "factor": k}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=2, dims=("item", "factor"))
        b = svmp.Normal("b", mu=3, tau=0.5, dims="item")
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        mean = svmp.dot(u[user], v[item]) + b[item]
        svmp.Normal("r", mu=mean, tau=tau, observed=r[user, item])
    start = {
        "u": {"mu": u0, "tau": 1.0},
        "v": {"mu": v0, "tau": 1.0},
        "b": {"mu": b0, "tau": 1.0},
        "tau": {"alpha": 2.0, "beta": 1.0},
    }

    us = [bp.GaussianARD(0, 1, plates=(m, 1)) for _ in range(k)]
    vs = [bp.GaussianARD(0, 2, plates=(1, n)) for _ in range(k)]
    b = bp.GaussianARD(3, 0.5, plates=(1, n))
    tau = bp.Gamma(2, 1)
    mean = bp.Add(*(bp.SumMultiply(",", p, q) for p, q in zip(us, vs, strict=True)), b)
    node = bp.GaussianARD(mean, tau, plates=(m, n))
    node.observe(r, mask=~gone)
    for i in range(k):
        us[i].initialize_from_parameters(u0[:, i : i + 1], 1.0)
        vs[i].initialize_from_parameters(v0[None, :, i], 1.0)
    b.initialize_from_parameters(b0[None], 1.0)
    tau.initialize_from_parameters(2.0, 1.0)
    return Twins(model, start, {"u": us, "v": vs, "b": b, "tau": tau}, [node])


def counts(rng: RNG) -> Twins:
    """Poissons whose rates are Gammas with a hidden rate."""
    a, n = 4, 6
    x = rng.poisson(3.0, (a, n))
    with svmp.Model(coords={"a": a, "n": n}) as model:
        beta = svmp.Gamma("beta", alpha=1.5, beta=0.5)
        rate = svmp.Gamma("rate", alpha=2.0, beta=beta, dims="a")
        svmp.Poisson("x", mu=rate, dims=("a", "n"), observed=x)
    start = {
        "beta": {"alpha": 1.0, "beta": 2.0},
        "rate": {"alpha": 2.0, "beta": [1.0, 2.0, 3.0, 4.0]},
    }

    beta = bp.Gamma(1.5, 0.5)
    rate = bp.Gamma(2.0, beta, plates=(a, 1))
    node = bp.Poisson(rate, plates=(a, n))
    node.observe(x)
    beta.initialize_from_parameters(1.0, 2.0)
    rate.initialize_from_parameters(2.0, np.array([[1.0], [2.0], [3.0], [4.0]]))
    return Twins(model, start, {"rate": rate, "beta": beta}, [node])


def coins(rng: RNG) -> Twins:
    trials = rng.integers(1, 10, 7)
    x = rng.binomial(trials, 0.3)
    with svmp.Model(coords={"coin": 7}) as model:
        p = svmp.Beta("p", alpha=0.5, beta=1.5, dims="coin")
        svmp.Binomial("x", n=trials, p=p, dims="coin", observed=x)
    start = {"p": {"alpha": 2.0, "beta": 3.0}}

    p = bp.Beta([0.5, 1.5], plates=(7,))
    node = bp.Binomial(trials, p)
    node.observe(x)
    return Twins(model, start, {"p": p}, [node])


def word_counts(rng: RNG) -> Twins:
    x = rng.multinomial([5, 8, 3], [0.2, 0.5, 0.3])
    with svmp.Model(coords={"word": 3}) as model:
        p = svmp.Dirichlet("p", a=[0.5, 1.0, 2.0], dims="word")
        svmp.Multinomial("x", n=[5, 8, 3], p=p, dims=("row", "word"), observed=x)
    start = {"p": {"a": 1.0}}

    p = bp.Dirichlet([0.5, 1.0, 2.0])
    node = bp.Multinomial([5, 8, 3], p)
    node.observe(x)
    return Twins(model, start, {"p": p}, [node])


def vectors(rng: RNG) -> Twins:
    """Vectors around hidden means around a hidden mean, with hidden precision matrices."""
    groups, n, d = 3, 4, 2
    x = rng.normal(size=(groups, 1, d)) + rng.normal(size=(groups, n, d))
    m0 = rng.normal(size=(groups, d))
    with svmp.Model(coords={"group": groups, "n": n, "d": d}) as model:
        top = svmp.MvNormal("top", mu=[0.5, -0.5], tau=0.1 * np.eye(d), dims="d")
        within = svmp.Wishart("within", nu=4, V=0.3 * np.eye(d), dims=("d", "d"))
        between = svmp.Wishart("between", nu=3, V=0.5 * np.eye(d), dims=("d", "d"))
        mean = svmp.MvNormal("mean", mu=top, tau=between, dims=("group", "d"))
        svmp.MvNormal("x", mu=mean, tau=within, dims=("group", "n", "d"), observed=x)
    start = {
        "top": {"mu": [0.1, 0.2], "tau": np.eye(d)},
        "mean": {"mu": m0, "tau": 2 * np.eye(d)},
        "within": {"nu": 5.0, "V": 0.2 * np.eye(d)},
        "between": {"nu": 5.0, "V": 0.4 * np.eye(d)},
    }

    top = bp.Gaussian([0.5, -0.5], 0.1 * np.eye(d))
    within = bp.Wishart(4, np.eye(d) / 0.3)
    between = bp.Wishart(3, np.eye(d) / 0.5)
    mean = bp.Gaussian(top, between, plates=(groups, 1))
    node = bp.Gaussian(mean, within, plates=(groups, n))
    node.observe(x)
    top.initialize_from_parameters([0.1, 0.2], np.eye(d))
    mean.initialize_from_parameters(m0[:, None], 2 * np.eye(d))
    within.initialize_from_parameters(5.0, np.eye(d) / 0.2)
    between.initialize_from_parameters(5.0, np.eye(d) / 0.4)
    order = {"mean": mean, "within": within, "top": top, "between": between}
    return Twins(model, start, order, [node])


def linear_chain(rng: RNG) -> Twins:
    """A linear dynamical system: unknown dynamics with ARD, precisions and emissions."""
    n, sensors, d = 25, 3, 2
    y = rng.normal(size=(n, sensors)).cumsum(axis=0)
    y[4:7] = np.nan
    y[12, 0] = np.nan
    A0, C0 = 0.5 * rng.normal(size=(d, d)), rng.normal(size=(sensors, d))
    m, P = np.array([0.5, -0.2]), np.array([[2.0, 0.3], [0.3, 1.0]])
    with svmp.Model(coords={"n": n, "sensor": sensors, "d": d, "from": d}) as model:
        relevance = svmp.Gamma("relevance", alpha=1.5, beta=0.8, dims="from")
        A = svmp.MvNormal("A", mu=0, tau=svmp.diag(relevance), dims=("d", "from"))
        tau = svmp.Gamma("tau", alpha=2.0, beta=1.5, dims="d")
        x = svmp.LinearGaussianChain(
            "x", init=svmp.MvNormal.dist(mu=m, tau=P), A=A, tau=tau, dims=("n", "d")
        )
        C = svmp.MvNormal("C", mu=0, tau=np.eye(d), dims=("sensor", "d"))
        noise = svmp.Gamma("noise", alpha=1.0, beta=1.0)
        svmp.Normal(
            "y", svmp.dot(C, x), noise, dims=("n", "sensor"), observed=y, missing=np.isnan(y)
        )
    start = {
        "relevance": {"alpha": 2.0, "beta": 3.0},
        "A": {"mu": A0, "tau": 10 * np.eye(d)},
        "tau": {"alpha": 2.0, "beta": 1.0},
        "C": {"mu": C0, "tau": 20 * np.eye(d)},
        "noise": {"alpha": 2.0, "beta": 2.0},
    }

    relevance = bp.Gamma(1.5, 0.8, plates=(d,))
    A = bp.GaussianARD(0, relevance, shape=(d,), plates=(d,))
    tau = bp.Gamma(2.0, 1.5, plates=(d,))
    x = bp.GaussianMarkovChain(m, P, A, tau, n=n)
    C = bp.GaussianARD(0, 1, shape=(d,), plates=(sensors, 1))
    noise = bp.Gamma(1.0, 1.0)
    node = bp.GaussianARD(bp.SumMultiply("i,i", C, x), noise)
    node.observe(np.where(np.isnan(y), 0, y).T, mask=~np.isnan(y).T)
    relevance.initialize_from_parameters(2.0, 3.0)
    A.initialize_from_parameters(A0, 10 * np.ones((d, d)))
    tau.initialize_from_parameters(2.0, 1.0)
    C.initialize_from_parameters(C0[:, None], 20 * np.ones((sensors, 1, d)))
    noise.initialize_from_parameters(2.0, 2.0)
    order = {"x": x, "C": C, "A": A, "relevance": relevance, "tau": tau, "noise": noise}
    return Twins(model, start, order, [node])


def switching_chain(rng: RNG) -> Twins:
    """A linear chain whose dynamics are chosen by a chain of states, which has a step less."""
    n, d, states = 20, 2, 3
    y = rng.normal(size=(n, d)).cumsum(axis=0)
    A0 = 0.5 * rng.normal(size=(states, d, d))
    coords = {"n": n, "d": d, "from": d, "state": states, "to": states, "step": n - 1}
    with svmp.Model(coords=coords) as model:
        begin = svmp.Dirichlet("begin", a=1.5, dims="state")
        move = svmp.Dirichlet("move", a=0.8, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", begin, move, dims="step")
        A = svmp.MvNormal("A", mu=0, tau=np.eye(d), dims=("state", "d", "from"))
        x = svmp.LinearGaussianChain(
            "x",
            init=svmp.Normal.dist(mu=0, tau=0.5),
            A=A,
            tau=[1.5, 0.7],
            switch=z[np.maximum(np.arange(n) - 1, 0)],
            sequence_dim="track",
            dims=("n", "d"),
        )
        noise = svmp.Gamma("noise", alpha=1.0, beta=1.0)
        svmp.Normal("y", x, noise, dims=("n", "d"), observed=y)
    start = {
        "begin": {"a": 1.2},
        "move": {"a": 1.1},
        "z": {"p": np.full((n - 1, states), 1 / states)},
        "A": {"mu": A0, "tau": 10 * np.eye(d)},
        "noise": {"alpha": 2.0, "beta": 2.0},
    }

    begin, move = bp.Dirichlet(1.5 * np.ones(states)), bp.Dirichlet(0.8 * np.ones((states, states)))
    z = bp.CategoricalMarkovChain(begin, move, states=n - 1)
    A = bp.GaussianARD(0, 1, shape=(d,), plates=(states, d))
    tau = np.array([1.5, 0.7])  # BayesPy has no message to it
    x = bp.SwitchingGaussianMarkovChain(np.zeros(d), 0.5 * np.eye(d), A, z, tau, n=n)
    noise = bp.Gamma(1.0, 1.0)
    node = bp.GaussianARD(x, noise, shape=(d,), plates=(n,))
    node.observe(y)
    begin.initialize_from_parameters(1.2 * np.ones(states))
    move.initialize_from_parameters(1.1 * np.ones((states, states)))
    A.initialize_from_parameters(A0, 10 * np.ones((states, d, d)))
    noise.initialize_from_parameters(2.0, 2.0)
    z.initialize_from_prior()  # uniform, as those of begin and move are
    order = {"x": x, "z": z, "A": A, "begin": begin, "move": move, "noise": noise}
    return Twins(model, start, order, [node])


def hidden_markov_model(rng: RNG) -> Twins:
    """A chain of states with Normal emissions."""
    n, states = 40, 3
    y = rng.normal(np.repeat([0.0, 4.0, -3.0, 4.0], 10), 1.0)
    m0, start_a, move_a = rng.normal(size=states), [1.0, 2.0, 0.5], rng.uniform(0.5, 3, (3, 3))
    with svmp.Model(coords={"state": states, "to": states, "row": n}) as model:
        begin = svmp.Dirichlet("begin", a=1.5, dims="state")
        move = svmp.Dirichlet("move", a=0.8, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", begin, move, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=0.1, dims="state")
        tau = svmp.Gamma("tau", alpha=1.0, beta=1.0, dims="state")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=y)
    start = {
        "begin": {"a": start_a},
        "move": {"a": move_a},
        "mu": {"mu": m0, "tau": 2.0},
        "tau": {"alpha": 2.0, "beta": 2.0},
        "z": {"p": np.full((n, states), 1 / states)},
    }

    begin, move = bp.Dirichlet(1.5 * np.ones(states)), bp.Dirichlet(0.8 * np.ones((states, states)))
    z = bp.CategoricalMarkovChain(begin, move, states=n)
    mu, tau = bp.GaussianARD(0, 0.1, plates=(states,)), bp.Gamma(1.0, 1.0, plates=(states,))
    node = bp.Mixture(z, bp.GaussianARD, mu, tau)
    node.observe(y)
    begin.initialize_from_parameters(np.array(start_a))
    move.initialize_from_parameters(move_a)
    mu.initialize_from_parameters(m0, 2.0 * np.ones(states))
    tau.initialize_from_parameters(2.0 * np.ones(states), 2.0 * np.ones(states))
    order = {"z": z, "begin": begin, "move": move, "mu": mu, "tau": tau}
    return Twins(model, start, order, [node])


NETWORKS: list[Callable[[RNG], Twins]] = [
    normal_gamma,
    regression_with_ard,
    regression_with_vector,
    factor_analysis,
    gaussian_mixture,
    bernoulli_mixture,
    poisson_mixture,
    topics,
    nested_groups,
    matrix_factorization,
    counts,
    coins,
    word_counts,
    vectors,
    linear_chain,
    switching_chain,
    hidden_markov_model,
]
