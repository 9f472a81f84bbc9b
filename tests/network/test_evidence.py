"""The bound against the evidence, by numerical integration of the joint density.

With one hidden variable the approximation is exact, so the bound is the log evidence and q the
posterior; with two it stays below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import multigammaln

import svmp

from .tools import fitted

Density = Callable[[Any], Any]

REAL = [1.3, -0.4, 2.2]
POSITIVE = [0.7, 2.1, 0.2]
COUNTS = [3, 0, 5]


def normal() -> tuple[Density, Density, tuple[float, float]]:
    mu = svmp.Normal("h", mu=0.5, tau=0.8)
    svmp.Normal("x", mu=2 * mu - 1, tau=[1.0, 2.0, 0.5], observed=REAL)
    sd = np.array([1.0, 2.0, 0.5]) ** -0.5
    return (
        stats.norm(0.5, 0.8**-0.5).logpdf,
        lambda h: stats.norm.logpdf(REAL, 2 * h - 1, sd).sum(),
        (-12, 12),
    )


def gamma_normal() -> tuple[Density, Density, tuple[float, float]]:
    tau = svmp.Gamma("h", alpha=1.5, beta=0.7)
    svmp.Normal("x", mu=0.3, tau=2 * tau, observed=REAL)
    return (
        stats.gamma(1.5, scale=1 / 0.7).logpdf,
        lambda h: stats.norm.logpdf(REAL, 0.3, (2 * h) ** -0.5).sum(),
        (0, 60),
    )


def gamma_poisson() -> tuple[Density, Density, tuple[float, float]]:
    rate = svmp.Gamma("h", alpha=1.5, beta=0.7)
    svmp.Poisson("x", mu=rate * [0.5, 1.0, 2.0], observed=COUNTS)
    return (
        stats.gamma(1.5, scale=1 / 0.7).logpdf,
        lambda h: stats.poisson.logpmf(COUNTS, h * np.array([0.5, 1.0, 2.0])).sum(),
        (0, 60),
    )


def gamma_exponential() -> tuple[Density, Density, tuple[float, float]]:
    rate = svmp.Gamma("h", alpha=1.5, beta=0.7)
    svmp.Exponential("x", lam=rate, observed=POSITIVE)
    return (
        stats.gamma(1.5, scale=1 / 0.7).logpdf,
        lambda h: stats.expon.logpdf(POSITIVE, scale=1 / h).sum(),
        (0, 60),
    )


def gamma_gamma() -> tuple[Density, Density, tuple[float, float]]:
    rate = svmp.Gamma("h", alpha=1.5, beta=0.7)
    svmp.Gamma("x", alpha=[0.5, 1.0, 3.0], beta=rate, observed=POSITIVE)
    return (
        stats.gamma(1.5, scale=1 / 0.7).logpdf,
        lambda h: stats.gamma.logpdf(POSITIVE, [0.5, 1.0, 3.0], scale=1 / h).sum(),
        (0, 60),
    )


def beta_bernoulli() -> tuple[Density, Density, tuple[float, float]]:
    p = svmp.Beta("h", alpha=1.5, beta=0.7)
    svmp.Bernoulli("x", p=p, observed=[1, 1, 0])
    return (
        stats.beta(1.5, 0.7).logpdf,
        lambda h: stats.bernoulli.logpmf([1, 1, 0], h).sum(),
        (0, 1),
    )


def beta_binomial() -> tuple[Density, Density, tuple[float, float]]:
    p = svmp.Beta("h", alpha=1.5, beta=0.7)
    svmp.Binomial("x", n=[4, 1, 9], p=p, observed=[3, 0, 5])
    return (
        stats.beta(1.5, 0.7).logpdf,
        lambda h: stats.binom.logpmf([3, 0, 5], [4, 1, 9], h).sum(),
        (0, 1),
    )


def wishart_one() -> tuple[Density, Density, tuple[float, float]]:
    """A Wishart of dimension 1 is a Gamma with shape nu / 2 and rate 1 / (2 V)."""
    tau = svmp.Wishart("h", nu=2.5, V=[[0.6]], dims=("d", "d"))
    svmp.MvNormal("x", mu=[0.3], tau=tau, dims=("row", "d"), observed=np.c_[REAL])
    return (
        stats.gamma(1.25, scale=1.2).logpdf,
        lambda h: stats.norm.logpdf(REAL, 0.3, h**-0.5).sum(),
        (0, 60),
    )


ONE = [
    normal, gamma_normal, gamma_poisson, gamma_exponential, gamma_gamma, beta_bernoulli,
    beta_binomial, wishart_one,
]  # fmt: skip


@pytest.mark.parametrize("network", ONE, ids=lambda f: f.__name__)
def test_one_hidden_number(network: Callable[[], tuple[Density, Density, Any]]) -> None:
    with svmp.Model(coords={"d": 1}) as model:
        prior, likelihood, (low, high) = network()
    fit = fitted(model)

    def joint(h: float) -> float:
        return float(np.exp(prior(h) + likelihood(h)))

    peak = float(fit.mean("h").squeeze())

    def integral(function: Callable[[float], float]) -> float:
        value, _ = integrate.quad(function, low, high, points=[peak], epsabs=0, limit=200)
        return value

    evidence = integral(joint)
    assert fit.bound == pytest.approx(np.log(evidence), abs=1e-8)
    mean = integral(lambda h: h * joint(h)) / evidence
    second = integral(lambda h: h * h * joint(h)) / evidence
    assert fit.mean("h").squeeze() == pytest.approx(mean, rel=1e-7)
    assert fit.var("h").squeeze() == pytest.approx(second - mean**2, rel=1e-6)


def test_dirichlet_of_categoricals_and_multinomials() -> None:
    words, counts = np.array([0, 2, 2, 1]), np.array([[2, 0, 1], [0, 4, 0]])
    a = [0.9, 1.6, 2.3]
    with svmp.Model(coords={"word": 3}) as model:
        p = svmp.Dirichlet("p", a=a, dims="word")
        svmp.Categorical("x", p=p, observed=words)
        svmp.Multinomial("y", n=[3, 4], p=p, dims=("row", "word"), observed=counts)

    def joint(second: float, first: float) -> float:
        p = np.array([first, second, 1 - first - second])
        if p.min() <= 0:
            return 0.0
        log = stats.dirichlet.logpdf(p, a) + np.log(p[words]).sum()
        return float(np.exp(log + stats.multinomial.logpmf(counts, [3, 4], p).sum()))

    evidence, _ = integrate.dblquad(joint, 0, 1, 0, lambda p: 1 - p, epsabs=0, epsrel=1e-7)
    assert fitted(model).bound == pytest.approx(np.log(evidence), abs=1e-6)


def grid(low: float, high: float, count: int = 241) -> tuple[np.ndarray, float]:
    """Return points and their weight; the rule is exact for densities that vanish at both ends."""
    points, step = np.linspace(low, high, count, retstep=True)
    return points, float(step)


def integral(log_density: np.ndarray, *steps: float) -> float:
    """Return the logarithm of the integral of exp(log_density) over a grid."""
    top = log_density.max()
    return float(top + np.log(np.exp(log_density - top).sum()) + np.log(steps).sum())


def test_a_vector_of_weights() -> None:
    """Bayesian linear regression, with both coefficients in one MvNormal."""
    design, y = np.array([[1.0, 0.5], [1.0, -1.0], [0.3, 2.0]]), np.array(REAL)
    tau = np.array([[1.2, 0.3], [0.3, 0.8]])
    with svmp.Model(coords={"d": 2}) as model:
        w = svmp.MvNormal("w", mu=[0.2, -0.1], tau=tau, dims="d")
        svmp.Normal("y", mu=svmp.dot(design, w), tau=1.7, observed=y)
    points, step = grid(-9, 9)
    w = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1)
    log = stats.multivariate_normal.logpdf(w, [0.2, -0.1], np.linalg.inv(tau))
    log = log + stats.norm.logpdf(y, w @ design.T, 1.7**-0.5).sum(axis=-1)
    fit = fitted(model)
    assert fit.bound == pytest.approx(integral(log, step, step), abs=1e-9)
    weight = np.exp(log - log.max())
    mean = (weight[..., None] * w).sum(axis=(0, 1)) / weight.sum()
    np.testing.assert_allclose(fit.mean("w"), mean, atol=1e-9)


def test_a_vector_mean() -> None:
    tau, prior = np.array([[1.2, 0.3], [0.3, 0.8]]), np.array([[0.5, -0.2], [-0.2, 0.9]])
    x = np.array([[1.3, -0.4], [2.2, 0.1]])
    with svmp.Model(coords={"d": 2}) as model:
        m = svmp.MvNormal("m", mu=[0.2, -0.1], tau=prior, dims="d")
        svmp.MvNormal("x", mu=m, tau=tau, dims=("row", "d"), observed=x)
    points, step = grid(-11, 11)
    m = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1)
    log = stats.multivariate_normal.logpdf(m, [0.2, -0.1], np.linalg.inv(prior))
    for row in x:
        log = log + stats.multivariate_normal.logpdf(row - m, [0, 0], np.linalg.inv(tau))
    assert fitted(model).bound == pytest.approx(integral(log, step, step), abs=1e-9)


def test_a_precision_matrix() -> None:
    """Integrate over W = R R' with R = [[e^a, 0], [b, e^c]], whose Jacobian is 4 e^(3a + 2c)."""
    x, V = np.array([[1.3, -0.4], [0.2, 0.9], [-0.7, 0.6]]), np.array([[0.6, 0.2], [0.2, 0.5]])
    with svmp.Model(coords={"d": 2}) as model:
        W = svmp.Wishart("W", nu=4.5, V=V, dims=("d", "d"))
        svmp.MvNormal("x", mu=[0.1, 0.2], tau=W, dims=("row", "d"), observed=x)
    (a, da), (b, db), (c, dc) = grid(-5, 2.5, 91), grid(-7, 7, 141), grid(-6, 2.5, 91)
    a, b, c = np.meshgrid(a, b, c, indexing="ij")
    w11, w12, w22 = np.exp(2 * a), np.exp(a) * b, b**2 + np.exp(2 * c)
    log_det = 2 * a + 2 * c
    P = np.linalg.inv(V)
    trace = P[0, 0] * w11 + 2 * P[0, 1] * w12 + P[1, 1] * w22
    log = 0.5 * (4.5 - 3) * log_det - 0.5 * trace + 3 * a + 2 * c + np.log(4)
    log += -4.5 * np.log(2) - 0.5 * 4.5 * np.linalg.slogdet(V)[1]
    log -= multigammaln(2.25, 2)
    for y in x - [0.1, 0.2]:
        square = w11 * y[0] ** 2 + 2 * w12 * y[0] * y[1] + w22 * y[1] ** 2
        log += 0.5 * (log_det - square) - np.log(2 * np.pi)
    assert fitted(model).bound == pytest.approx(integral(log, da, db, dc), abs=1e-6)


def test_the_choices_of_a_mixture() -> None:
    """With known components the evidence is a product of sums over the categories."""
    x = np.array(REAL)
    p, m, tau = np.array([0.2, 0.5, 0.3]), np.array([-1.0, 0.5, 2.0]), np.array([1.0, 3.0, 0.5])
    with svmp.Model(coords={"k": 3, "row": 3}) as model:
        z = svmp.Categorical("z", p=svmp.data(p, dims="k"), dims="row")
        density = svmp.Normal.dist(mu=svmp.data(m, dims="k"), tau=svmp.data(tau, dims="k"))
        svmp.Mixture("x", z, density, dims="row", observed=x)
    joint = p * stats.norm.pdf(x[:, None], m, tau**-0.5)
    fit = fitted(model)
    assert fit.bound == pytest.approx(np.log(joint.sum(axis=1)).sum(), abs=1e-12)
    np.testing.assert_allclose(fit.mean("z"), joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)


def test_hidden_leaves_do_not_change_the_evidence() -> None:
    """A hidden variable without observed descendants integrates to one, whatever its family."""
    with svmp.Model(coords={"d": 2}) as model:
        mu = svmp.Normal("mu", mu=0.5, tau=0.8)
        svmp.Normal("x", mu=mu, tau=1, observed=REAL)
    alone = fitted(model).bound
    with model:
        svmp.Poisson("poisson", mu=2.5)
        svmp.Binomial("binomial", n=7, p=0.3)
        svmp.Multinomial("multinomial", n=5, p=[0.2, 0.8], dims="d")
        svmp.Bernoulli("bernoulli", p=0.1)
        svmp.Categorical("categorical", p=[0.1, 0.2, 0.7])
        svmp.Exponential("exponential", lam=3)
        svmp.Beta("beta", alpha=0.3, beta=2)
        svmp.Dirichlet("dirichlet", a=[0.3, 2], dims="d")
        svmp.Gamma("gamma", alpha=0.3, beta=2)
        svmp.Wishart("wishart", nu=3, V=np.eye(2), dims=("d", "d"))
        svmp.MvNormal("vector", mu=[1, 2], tau=np.eye(2), dims="d")
    assert fitted(model).bound == pytest.approx(alone, abs=1e-10)


# --- two hidden variables: the bound stays below --------------------------------------------


def two_normal_gamma() -> float:
    mu = svmp.Normal("a", mu=0.5, tau=0.8)
    tau = svmp.Gamma("b", alpha=1.5, beta=0.7)
    svmp.Normal("x", mu=mu, tau=tau, observed=REAL)
    a, da = grid(-12, 12)
    b, db = grid(-14, 6)
    a, b = a[:, None], b[None, :]
    log = stats.norm.logpdf(a, 0.5, 0.8**-0.5) + log_gamma(b, 1.5, 0.7)
    return integral(log + sum(stats.norm.logpdf(x, a, np.exp(-b / 2)) for x in REAL), da, db)


def two_product() -> float:
    x, y = svmp.Normal("a", mu=0.5, tau=0.8), svmp.Normal("b", mu=-0.4, tau=1.2)
    svmp.Normal("x", mu=x * y + y, tau=1.5, observed=REAL)
    (a, da), (b, db) = grid(-10, 10), grid(-10, 10)
    a, b = a[:, None], b[None, :]
    log = stats.norm.logpdf(a, 0.5, 0.8**-0.5) + stats.norm.logpdf(b, -0.4, 1.2**-0.5)
    return integral(log + sum(stats.norm.logpdf(x, a * b + b, 1.5**-0.5) for x in REAL), da, db)


def two_rates() -> float:
    g, h = svmp.Gamma("a", alpha=1.5, beta=0.7), svmp.Gamma("b", alpha=2.5, beta=1.1)
    svmp.Poisson("x", mu=g * h, observed=COUNTS)
    (a, da), (b, db) = grid(-16, 6), grid(-12, 6)
    a, b = a[:, None], b[None, :]
    log = log_gamma(a, 1.5, 0.7) + log_gamma(b, 2.5, 1.1)
    return integral(log + sum(stats.poisson.logpmf(x, np.exp(a + b)) for x in COUNTS), da, db)


def two_levels() -> float:
    g = svmp.Gamma("a", alpha=1.5, beta=0.7)
    h = svmp.Gamma("b", alpha=2.5, beta=g)
    svmp.Exponential("x", lam=h, observed=POSITIVE)
    (a, da), (b, db) = grid(-16, 6), grid(-14, 9)
    a, b = a[:, None], b[None, :]
    log = log_gamma(a, 1.5, 0.7) + log_gamma(b, 2.5, np.exp(a))
    return integral(log + sum(b - np.exp(b) * x for x in POSITIVE), da, db)


def two_of_a_mixture() -> float:
    p = np.array([0.3, 0.7])
    z = svmp.Categorical("z", p=svmp.data(p, dims="k"), dims="row")
    m = svmp.Normal("m", mu=[-1.0, 1.0], tau=0.5, dims="k")
    svmp.Mixture("x", z, svmp.Normal.dist(mu=m, tau=2), dims="row", observed=REAL)
    (a, da), (b, db) = grid(-12, 12), grid(-12, 12)
    a, b = a[:, None], b[None, :]
    log = stats.norm.logpdf(a, -1, 2**0.5) + stats.norm.logpdf(b, 1, 2**0.5)
    for x in REAL:
        near = [np.log(p[i]) + stats.norm.logpdf(x, m, 0.5**0.5) for i, m in enumerate((a, b))]
        log = log + np.logaddexp(*near)
    return integral(log, da, db)


def log_gamma(log_x: np.ndarray, alpha: float, beta: Any) -> np.ndarray:
    """Log density of the logarithm of a Gamma."""
    return stats.gamma.logpdf(np.exp(log_x), alpha, scale=1 / beta) + log_x


TWO = [two_normal_gamma, two_product, two_rates, two_levels, two_of_a_mixture]


@pytest.mark.parametrize("network", TWO, ids=lambda f: f.__name__)
def test_two_hidden_variables(network: Callable[[], float]) -> None:
    with svmp.Model(coords={"k": 2, "row": 3}) as model:
        evidence = network()
    bounds = [fitted(model, seed=seed).bound for seed in range(3)]
    assert max(bounds) <= evidence + 1e-9
    assert max(bounds) >= evidence - 2  # mean field has a gap here, but a small one
