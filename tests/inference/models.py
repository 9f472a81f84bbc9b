"""Small models for the tests of inference."""

from __future__ import annotations

import numpy as np

import svmp


def regression(count: int = 20) -> svmp.Model:
    """Correlated weights, so that full VB takes some sweeps; the precision is hidden."""
    rng = np.random.default_rng(0)
    design = rng.normal(size=(count, 3)) + rng.normal(size=(count, 1))
    y = design @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=count)
    with svmp.Model(coords={"feature": 3}) as model:
        w = svmp.Normal("w", mu=0, tau=0.1, dims="feature")
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Normal("y", mu=svmp.dot(design, w), tau=tau, observed=y)
    return model


def ratings() -> svmp.Model:
    """The paper's model, which full VB fits slowly."""
    rng = np.random.default_rng(1)
    user, item = rng.integers(8, size=40), rng.integers(6, size=40)
    with svmp.Model(coords={"user": 8, "item": 6, "factor": 2}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=1, observed=rng.normal(3, 1, 40))
    return model


def mixture() -> svmp.Model:
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(-3, 1, 15), rng.normal(3, 1, 15)])
    with svmp.Model(coords={"k": 2, "row": 30}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        m = svmp.Normal("m", mu=0, tau=0.1, dims="k")
        svmp.Mixture("x", z, svmp.Normal.dist(mu=m, tau=1), dims="row", observed=x)
    return model


def rates() -> svmp.Model:
    """A chain of Gammas, for which there are no compiled loops."""
    with svmp.Model(coords={"a": 3}) as model:
        b = svmp.Gamma("b", alpha=1, beta=1)
        g = svmp.Gamma("g", alpha=2, beta=b, dims="a")
        svmp.Poisson("x", mu=g[[0, 0, 1, 2, 2]], observed=[3, 5, 0, 9, 7])
    return model


def every_family() -> svmp.Model:
    """One hidden variable of each family, with a plate of two where it can have one."""
    with svmp.Model(coords={"a": 2, "b": 3, "d": 2}) as model:
        normal = svmp.Normal("normal", mu=0, tau=1, dims=("a", "b"))
        svmp.MvNormal("vector", mu=[1, 2], tau=np.eye(2), dims=("a", "d"))
        gamma = svmp.Gamma("gamma", alpha=2, beta=1, dims="a")
        svmp.Wishart("wishart", nu=3, V=np.eye(2), dims=("a", "d", "d"))
        beta = svmp.Beta("beta", alpha=2, beta=3, dims="a")
        dirichlet = svmp.Dirichlet("dirichlet", a=[1, 2, 3], dims=("a", "b"))
        svmp.Bernoulli("bernoulli", p=beta, dims="a")
        svmp.Binomial("binomial", n=[4, 7], p=beta, dims="a")
        svmp.Categorical("categorical", p=dirichlet, dims="a")
        svmp.Multinomial("multinomial", n=[5, 6], p=dirichlet, dims=("a", "b"))
        svmp.Poisson("poisson", mu=gamma, dims="a")
        svmp.Exponential("exponential", lam=gamma, dims="a")
        svmp.Normal("scalar", mu=0, tau=1)
        svmp.Normal("x", mu=normal, tau=1, dims=("a", "b"), observed=np.ones((2, 3)))
    return model
