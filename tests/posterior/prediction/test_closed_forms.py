"""Predictions where parents have a q in closed form: SciPy's distributions and quadrature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import svmp

pytestmark = pytest.mark.by_size

P = np.array([0.05, 0.5, 0.95])


def one(declare: Callable[[Any], Any], observed: Any, count: int = 2, **coords: int) -> Any:
    """Fit rows, and return the fit and a network of new rows."""

    def network(values: Any, size: int) -> svmp.Model:
        with svmp.Model(coords={"row": size, **coords}) as model:
            declare(values)
        return model

    return svmp.fit(network(observed, len(observed)), svmp.FullVB()), network(None, count)


def rate(kind: str) -> Callable[[Any], Any]:
    def declare(values: Any) -> None:
        g = svmp.Gamma("g", alpha=3, beta=1.5)
        if kind == "Poisson":
            svmp.Poisson("y", mu=g * 2, dims="row", observed=values)
        elif kind == "Exponential":
            svmp.Exponential("y", lam=g * 2, dims="row", observed=values)
        else:
            svmp.Gamma("y", alpha=2.5, beta=g, dims="row", observed=values)

    return declare


def compounds(kind: str, q: Any) -> tuple[Any, Any]:
    """Return the distribution of a row, and of its mean, given q of the rate."""
    a, b = float(q.alpha), float(q.beta)
    if kind == "Poisson":
        return stats.nbinom(a, b / (b + 2)), stats.gamma(a, scale=2 / b)
    if kind == "Exponential":
        return stats.lomax(a, scale=b / 2), stats.invgamma(a, scale=b / 2)
    return stats.betaprime(2.5, a, scale=b), stats.invgamma(a, scale=2.5 * b)


@pytest.mark.parametrize("kind", ["Poisson", "Exponential", "Gamma"])
def test_rates_are_integrated_exactly(kind: str) -> None:
    fit, model = one(rate(kind), [1.0, 4.0, 2.0])
    for noise, truth in zip((True, False), compounds(kind, fit["g"]), strict=True):
        found = fit.predict(model, "y", noise=noise, corrected=False)
        assert found.exact
        np.testing.assert_allclose(found.mean, truth.mean())
        np.testing.assert_allclose(found.var, truth.var())
        np.testing.assert_allclose(found.quantile(P)[:, 0], truth.ppf(P), rtol=1e-8)
        np.testing.assert_allclose(found.cdf([1.0, 3.0]), truth.cdf([1, 3]), rtol=1e-9)
        if noise:
            log = truth.logpmf if kind == "Poisson" else truth.logpdf
            np.testing.assert_allclose(found.logpdf([2.0, np.nan]), [log(2), np.nan], rtol=1e-8)


def trials(values: Any) -> None:
    p = svmp.Beta("p", alpha=1.5, beta=2)
    svmp.Binomial("y", n=9, p=p, dims="row", observed=values)


def test_binomials_with_a_beta_are_beta_binomials() -> None:
    fit, model = one(trials, [3, 5])
    a, b = float(fit["p"].alpha), float(fit["p"].beta)
    found, truth = fit.predict(model, "y", corrected=False), stats.betabinom(9, a, b)
    np.testing.assert_allclose([found.mean[0], found.var[0]], truth.stats("mv"))
    np.testing.assert_array_equal(found.quantile(P)[:, 1], truth.ppf(P))
    np.testing.assert_allclose(
        fit.predict(model, "y", noise=False, corrected=False).quantile(P)[:, 0],
        9 * stats.beta(a, b).ppf(P),
    )


def test_multinomials_and_categoricals_have_the_expected_probabilities() -> None:
    def words(values: Any) -> None:
        p = svmp.Dirichlet("p", a=[1.0, 2.0, 0.5], dims="word")
        svmp.Categorical("y", p=p, dims="row", observed=values)

    fit, model = one(words, [0, 2, 2, 1], word=3)
    a = fit["p"].a
    found = fit.predict(model, "y", corrected=False)
    np.testing.assert_allclose(found.mean, np.tile(a / a.sum(), (2, 1)))
    np.testing.assert_allclose(found.var, found.mean * (1 - found.mean))
    assert set(np.unique(found.draw(50, seed=0))) == {0.0, 1.0, 2.0}
    np.testing.assert_allclose(found.logpdf([1, 7]), [np.log(a[1] / a.sum()), -np.inf])
    with pytest.raises(svmp.ModelError, match="no order"):
        found.quantile(0.5)

    def counts(values: Any) -> None:
        p = svmp.Dirichlet("p", a=[1.0, 2.0, 0.5], dims="word")
        svmp.Multinomial("y", n=6, p=p, dims=("row", "word"), observed=values)

    fit, model = one(counts, [[1, 2, 3], [0, 6, 0]], word=3)
    a, found = fit["p"].a, fit.predict(model, "y", corrected=False)
    for k in range(3):
        truth = stats.betabinom(6, a[k], a.sum() - a[k])
        np.testing.assert_allclose(found.var[0, k], truth.var())
        np.testing.assert_array_equal(found.quantile(P)[:, 0, k], truth.ppf(P))


def line(values: Any) -> None:
    a = svmp.Normal("a", mu=0, tau=0.1)
    b = svmp.Normal("b", mu=0, tau=0.1)
    tau = svmp.Gamma("tau", alpha=2, beta=1)
    x = np.arange(2.0) if values is None else np.linspace(-1, 1, len(values))
    svmp.Normal("y", mu=a + b * x, tau=tau, dims="row", observed=values)


def test_a_line_with_a_hidden_precision_matches_quadrature() -> None:
    fit, model = one(line, [1.0, 1.3, 2.9, 3.0, 4.2])
    found, means = (
        fit.predict(model, "y", corrected=False),
        fit.predict(model, "y", noise=False, corrected=False),
    )
    a, b, tau = (
        fit.posteriors["a"],
        fit.posteriors["b"],
        stats.gamma(fit.posteriors["tau"].alpha, scale=1 / fit.posteriors["tau"].beta),
    )
    x = np.arange(2.0)
    mean, var = a.mean + b.mean * x, a.var + b.var * x**2
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(
        found.var, var + fit.posteriors["tau"].beta / (fit.posteriors["tau"].alpha - 1)
    )
    np.testing.assert_allclose(means.interval(0.8), stats.norm(mean, var**0.5).ppf([[0.1], [0.9]]))
    quantiles = found.quantile(P)
    for row in (0, 1):

        def conditional(t: float, y: float, row: int = row) -> float:
            return float(tau.pdf(t) * stats.norm(mean[row], (var[row] + 1 / t) ** 0.5).cdf(y))

        for p, y in zip(P, quantiles[:, row], strict=True):
            assert integrate.quad(conditional, 0, np.inf, args=(y,))[0] == pytest.approx(
                p, abs=1e-3
            )


@pytest.mark.parametrize("tau", [0.02, 1.0, 50.0])
def test_logits_are_integrated_over_the_logistic_function(tau: float) -> None:
    """Also where the logit varies much; the lower bound of the fit plays no part."""

    def declare(values: Any) -> None:
        z = svmp.Normal("z", mu=1.0, tau=tau)
        svmp.Bernoulli("y", logit=2 * z - 1, dims="row", observed=values)

    fit, model = one(declare, [1])
    z = stats.norm(fit.posteriors["z"].mean, fit.posteriors["z"].std)

    def power(order: int) -> float:
        nodes = z.ppf((np.arange(200_000) + 0.5) / 200_000)
        return float((1 / (1 + np.exp(1 - 2 * nodes)) ** order).mean())

    found, means = (
        fit.predict(model, "y", corrected=False),
        fit.predict(model, "y", noise=False, corrected=False),
    )
    assert found.mean[0] == pytest.approx(power(1), abs=1e-6)
    assert found.var[0] == pytest.approx(power(1) * (1 - power(1)), abs=1e-6)
    assert means.var[0] == pytest.approx(power(2) - power(1) ** 2, abs=1e-6)
    np.testing.assert_allclose(means.quantile(P)[:, 0], 1 / (1 + np.exp(1 - 2 * z.ppf(P))))


def test_vectors_match_their_student_distribution() -> None:
    def declare(values: Any) -> None:
        tau = svmp.Wishart("tau", nu=8, V=[[0.3, 0.1], [0.1, 0.2]], dims=("d", "d"))
        svmp.MvNormal("y", mu=[1.0, 2.0], tau=tau, dims=("row", "d"), observed=values)

    fit, model = one(declare, [[1.0, 2.0], [2.0, 4.0]], d=2)
    nu, scale = float(fit["tau"].nu) - 1, np.diag(np.linalg.inv(fit["tau"].V))
    truth = stats.t(nu, [1, 2], np.sqrt(scale / nu))
    found = fit.predict(model, "y", draws=4000, corrected=False)
    np.testing.assert_allclose(found.var[0], truth.var(), rtol=0.05)
    np.testing.assert_allclose(found.interval(0.9)[:, 1], truth.interval(0.9), atol=0.03)


def test_a_mixture_of_new_rows_has_the_expected_weights() -> None:
    def declare(values: Any) -> None:
        w = svmp.Dirichlet("w", a=[2.0, 1.0], dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        m = svmp.Normal("m", mu=[-2.0, 2.0], tau=1, dims="k")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=m, tau=4), dims="row", observed=values)

    fit, model = one(declare, [-2.5, -1.0, 1.5, 3.0, 2.0], k=2)
    w, m = fit.posteriors["w"].mean, fit.posteriors["m"]
    found = fit.predict(model, "y", corrected=False)
    sd = np.sqrt(m.var + 0.25)
    assert found.exact
    np.testing.assert_allclose(found.mean, (w * m.mean).sum())
    second = (w * (sd**2 + m.mean**2)).sum()
    np.testing.assert_allclose(found.var, second - found.mean**2)
    share = (
        w[:, None] * stats.norm(m.mean[:, None], sd[:, None]).cdf(found.quantile(P)[:, 0])
    ).sum(axis=0)
    np.testing.assert_allclose(share, P, atol=1e-10)
