"""Structured precision matrices, svmp.diag(...) and multiples of Wisharts, against closed forms.

The theorems about messages and bounds hold for them too: see the kind "matrices" of networks.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

import svmp

from .test_invariance import assert_same, run
from .tools import fitted

X = np.array([[1.3, -0.4], [0.2, 0.9], [-0.7, 0.6], [2.1, 0.3]])
MEAN = np.array([0.1, 0.2])
SHAPE, RATE = np.array([1.5, 2.0]), np.array([0.7, 1.2])


def gamma_normal_evidence(alpha: Any, beta: Any, count: Any, square: Any) -> float:
    """Log evidence of `count` Normals with known means, summed over independent precisions."""
    log = alpha * np.log(beta) - gammaln(alpha) - count / 2 * np.log(2 * np.pi)
    log = log + gammaln(alpha + count / 2) - (alpha + count / 2) * np.log(beta + square / 2)
    return float(np.sum(log))


def test_a_diagonal_of_gammas() -> None:
    """Its entries are independent, so that q is exact and the bound the evidence."""
    with svmp.Model(coords={"d": 2}) as model:
        g = svmp.Gamma("g", alpha=SHAPE, beta=RATE, dims="d")
        svmp.MvNormal("x", mu=MEAN, tau=svmp.diag(g), dims=("row", "d"), observed=X)
    fit = fitted(model)
    square = ((X - MEAN) ** 2).sum(axis=0)
    assert fit.bound == pytest.approx(gamma_normal_evidence(SHAPE, RATE, 4, square), abs=1e-10)
    np.testing.assert_allclose(fit["g"].alpha, SHAPE + 2, rtol=1e-12)
    np.testing.assert_allclose(fit["g"].beta, RATE + square / 2, rtol=1e-12)


def test_a_diagonal_of_one_gamma() -> None:
    """c g I: every entry of every row has the same precision."""
    c = np.array([0.5, 2.0])
    with svmp.Model(coords={"d": 2}) as model:
        g = svmp.Gamma("g", alpha=1.5, beta=0.7)
        svmp.MvNormal("x", mu=MEAN, tau=svmp.diag(c * g), dims=("row", "d"), observed=X)
    square = (c * (X - MEAN) ** 2).sum()
    evidence = gamma_normal_evidence(1.5, 0.7, 8, square) + 2 * np.log(c).sum()
    assert fitted(model).bound == pytest.approx(evidence, abs=1e-10)


def test_a_diagonal_of_numbers_is_the_matrix() -> None:
    fits = []
    for tau in (svmp.diag([0.5, 2.0]), np.diag([0.5, 2.0])):
        with svmp.Model(coords={"d": 2}) as model:
            m = svmp.MvNormal("m", mu=0, tau=tau, dims="d")
            svmp.MvNormal("x", mu=m, tau=np.eye(2), dims=("row", "d"), observed=X)
        fits.append(run(model, {}))
    assert_same(*fits)


def test_a_gamma_times_a_known_matrix() -> None:
    S = np.array([[0.6, 0.2], [0.2, 0.5]])
    with svmp.Model(coords={"d": 2}) as model:
        W = svmp.Wishart("W", nu=4, V=np.eye(2), dims=("d", "d"), observed=S)
        g = svmp.Gamma("g", alpha=1.5, beta=0.7)
        svmp.MvNormal("x", mu=MEAN, tau=g * W, dims=("row", "d"), observed=X)

    def joint(g: float) -> float:
        cov = np.linalg.inv(g * S)
        log = stats.multivariate_normal.logpdf(X, MEAN, cov).sum()
        return float(np.exp(log) * stats.gamma.pdf(g, 1.5, scale=1 / 0.7))

    evidence, _ = integrate.quad(joint, 0, 60, points=[1, 5], epsabs=0, limit=200)
    expected = np.log(evidence) + stats.wishart.logpdf(S, 4, np.eye(2))
    assert fitted(model).bound == pytest.approx(expected, abs=1e-8)


def test_a_multiple_of_a_wishart_is_a_wishart() -> None:
    """W ~ Wishart(nu, V) means c W ~ Wishart(nu, c V), with a different c for each group."""
    V, key, c = np.array([[0.6, 0.2], [0.2, 0.5]]), np.array([0, 1, 1, 0]), np.array([3.0, 0.5])
    fits = []
    for outside in (True, False):
        with svmp.Model(coords={"d": 2, "a": 2}) as model:
            scale = V if outside else c[:, None, None] * V
            W = svmp.Wishart("W", nu=4.5, V=scale, dims=("a", "d", "d"))
            tau = c[key] * W[key] if outside else W[key]
            svmp.MvNormal("x", mu=MEAN, tau=tau, dims=("row", "d"), observed=X)
        fits.append(fitted(model))
    assert fits[0].bound == pytest.approx(fits[1].bound, abs=1e-10)
    means = c[:, None, None] * fits[0].mean("W"), fits[1].mean("W")
    np.testing.assert_allclose(*means, rtol=1e-10)


def test_in_one_dimension_it_is_a_product_of_gammas() -> None:
    x, fits = X[:, 0], []
    for matrix in (True, False):
        with svmp.Model(coords={"d": 1}) as model:
            g = svmp.Gamma("g", alpha=1.5, beta=0.7)
            if matrix:
                W = svmp.Wishart("W", nu=2.5, V=[[0.6]], dims=("d", "d"))
                svmp.MvNormal("x", mu=[0.3], tau=2 * g * W, dims=("row", "d"), observed=np.c_[x])
            else:
                W = svmp.Gamma("W", alpha=1.25, beta=1 / 1.2)
                svmp.Normal("x", mu=0.3, tau=2 * g * W, observed=x)
        fits.append(fitted(model))
    assert fits[0].bound == pytest.approx(fits[1].bound, abs=1e-10)
    assert fits[0].mean("W").item() == pytest.approx(fits[1].mean("W"), rel=1e-6)


Entries = Callable[[Any, Any, Any], Any]
ENTRIES: dict[str, Entries] = {
    "a Gamma for each": lambda g, h, f: g,
    "one for all": lambda g, h, f: f,
    "a product": lambda g, h, f: 2 * f * g,
    "a product over the plate": lambda g, h, f: g * h,
    "numbers, Gammas": lambda g, h, f: [0.5, 2.0] * g * f,
    "keys": lambda g, h, f: g[svmp.data([1, 0], dims="d")] * h,
    "a key twice": lambda g, h, f: g[svmp.data([1, 1], dims="d")],
}


@pytest.mark.parametrize("entries", ENTRIES.values(), ids=ENTRIES)
def test_vectors_with_a_diagonal_are_their_entries(entries: Entries) -> None:
    """Where no row couples the entries of a vector, they are independent Normals."""
    key, fits = np.array([0, 1, 1, 0]), []
    for vector in (True, False):
        with svmp.Model(coords={"a": 2, "d": 2, "row": 4}) as model:
            g = svmp.Gamma("g", alpha=SHAPE, beta=RATE, dims="d")
            h = svmp.Gamma("h", alpha=2.5, beta=1.5, dims="a")
            tau = entries(g, h, svmp.Gamma("f", alpha=2, beta=1))
            if vector:
                m = svmp.MvNormal("m", mu=MEAN, tau=svmp.diag(tau), dims=("a", "d"))
            else:
                m = svmp.Normal("m", mu=MEAN, tau=tau, dims=("a", "d"))
            mean = m[svmp.data(key, dims="row"), :]
            svmp.Normal("x", mu=mean, tau=1, dims=("row", "d"), observed=X)
        start = {name: {"alpha": 2.0, "beta": 1.0} for name in "ghf"}
        fits.append(run(model, {"m": np.zeros((2, 2)), **start}))
    assert_same(*fits)


def test_a_mixture_of_diagonals() -> None:
    """Given the choices, the precisions of each component have the posterior of its rows."""
    z = np.array([0, 1, 0, 1])
    with svmp.Model(coords={"k": 2, "d": 2}) as model:
        choice = svmp.Categorical("z", p=svmp.data([0.5, 0.5], "k"), dims="row", observed=z)
        g = svmp.Gamma("g", alpha=SHAPE, beta=RATE, dims=("k", "d"))
        density = svmp.MvNormal.dist(mu=MEAN, tau=svmp.diag(g))
        svmp.Mixture("x", choice, density, dims=("row", "d"), observed=X)
    fit = fitted(model)
    square = np.array([((X[z == k] - MEAN) ** 2).sum(axis=0) for k in range(2)])
    np.testing.assert_allclose(fit["g"].beta, RATE + square / 2, rtol=1e-12)
    evidence = gamma_normal_evidence(SHAPE, RATE, 2, square) + 4 * np.log(0.5)
    assert fit.bound == pytest.approx(evidence, abs=1e-10)


@pytest.mark.parametrize("kind", ["diagonal", "multiple"])
def test_a_mixture_of_one(kind: str) -> None:
    fits = []
    for mixed in (True, False):
        with svmp.Model(coords={"k": 1, "d": 2, "row": 4}) as model:
            g = svmp.Gamma("g", alpha=2, beta=1, dims=("k", "d"))
            h = svmp.Gamma("h", alpha=2, beta=1, dims="k")
            W = svmp.Wishart("W", nu=4, V=np.eye(2), dims=("d", "d"))
            at = (lambda v: v) if mixed else (lambda v: v[0])
            tau = svmp.diag(at(g)) if kind == "diagonal" else at(h) * W
            density = svmp.MvNormal.dist(MEAN, tau)
            if mixed:
                z = svmp.Categorical("z", p=svmp.data([1.0], dims="k"), dims="row")
                svmp.Mixture("x", z, density, dims=("row", "d"), observed=X)
            else:
                svmp.MvNormal("x", MEAN, tau, dims=("row", "d"), observed=X)
        fits.append(fitted(model))
    assert fits[0].bound == pytest.approx(fits[1].bound, rel=1e-10)
    for name in "ghW":
        np.testing.assert_allclose(fits[0].mean(name), fits[1].mean(name), rtol=1e-5)
