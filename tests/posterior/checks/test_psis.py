"""PSIS of q: joint densities written out in NumPy, exact evidences, and known tails."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import svmp
from svmp.errors import SvmpError
from svmp.posterior.checks.psis import importance, smooth
from svmp.posterior.uncertainty.fitted import network_and_q
from svmp.posterior.uncertainty.joint_density import Draws, JointDensity

RNG = np.random.default_rng(3)
Y = np.concatenate([RNG.normal(-2, 0.7, 6), RNG.normal(2, 0.7, 6)])
X = RNG.normal(size=(12, 2))
PAIR = np.repeat(np.arange(6), 2)
pytestmark = pytest.mark.by_size


def normal(count: int = 12) -> svmp.Model:
    with svmp.Model() as model:
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        mu = svmp.Normal("mu", mu=0, tau=0.1)
        svmp.Normal("y", mu=mu, tau=tau, observed=Y[:count])
    return model


def mixture(by: str = "row") -> svmp.Model:
    with svmp.Model(coords={"k": 2, "row": 12, "pair": 6}) as model:
        p = svmp.Dirichlet("p", a=np.ones(2), dims="k")
        mu = svmp.Normal("mu", mu=0, tau=0.1, dims="k")
        z = svmp.Categorical("z", p=p, dims=by)
        chosen = z if by == "row" else z[PAIR]
        svmp.Mixture("y", chosen, svmp.Normal.dist(mu=mu, tau=2), dims="row", observed=Y)
    return model


def logistic() -> svmp.Model:
    with svmp.Model(coords={"k": 2}) as model:
        w = svmp.Normal("w", mu=0, tau=0.5, dims="k")
        svmp.Bernoulli("y", logit=svmp.dot(X, w), observed=(Y > 0).astype(float))
    return model


def hidden_markov() -> svmp.Model:
    with svmp.Model(coords={"state": 2, "to": 2, "row": 6}) as model:
        start = svmp.Dirichlet("start", a=np.ones(2), dims="state")
        move = svmp.Dirichlet("move", a=np.ones(2), dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", init=start, P=move, dims="row")
        rate = svmp.Gamma("rate", alpha=1, beta=0.1, dims="state")
        svmp.Mixture("x", z, svmp.Poisson.dist(mu=rate), dims="row", observed=[0, 1, 1, 30, 31, 28])
    return model


def density_of(model: svmp.Model) -> tuple[svmp.Fit, JointDensity]:
    fit = svmp.fit(model, kernels=False)
    return fit, JointDensity(*network_and_q(fit, model))


def log_ratio(density: JointDensity, draws: Draws, place: int) -> float:
    return density.log_joint(density.at(draws, place)) - float(density.log_q(draws)[place])


def test_log_ratios_are_those_of_the_densities() -> None:
    fit, density = density_of(normal())
    draws = density.draw(5, seed=1)
    for i in range(5):
        mu, tau = float(draws["mu"][i, 0]), float(draws["tau"][i, 0])
        joint = stats.norm.logpdf(Y, mu, tau**-0.5).sum() + stats.gamma.logpdf(tau, 2)
        joint += stats.norm.logpdf(mu, 0, 0.1**-0.5)
        own = fit.posteriors["mu"].logpdf(mu) + fit.posteriors["tau"].logpdf(tau)
        assert log_ratio(density, draws, i) == pytest.approx(joint - own)


@pytest.mark.parametrize("by", ["row", "pair"])
def test_choices_are_summed_out(by: str) -> None:
    fit, density = density_of(mixture(by))
    assert density.summed == {"z"}
    draws = density.draw(4, seed=1)
    group = np.arange(12) if by == "row" else PAIR
    for i in range(4):
        mu, p = draws["mu"][i], draws["p"][i, 0]
        each = stats.norm.logpdf(Y[:, None], mu, 2**-0.5)
        by_group = np.log(p) + np.array([each[group == g].sum(axis=0) for g in np.unique(group)])
        joint = logsumexp(by_group, axis=1).sum() + stats.norm.logpdf(mu, 0, 0.1**-0.5).sum()
        own = float(fit.posteriors["mu"].logpdf(mu).sum() + fit.posteriors["p"].logpdf(p))
        point = density.at(draws, i)
        expected = joint + stats.dirichlet.logpdf(p, np.ones(2)) - own
        assert log_ratio(density, draws, i) == pytest.approx(expected)
        rest = by_group[group] - each
        alone = logsumexp(by_group[group], axis=1) - logsumexp(rest, axis=1)
        np.testing.assert_allclose(density.log_likelihood(point), alone)


def test_logits_have_their_density_and_not_its_bound() -> None:
    _, density = density_of(logistic())
    draws = density.draw(3, seed=1)
    for i in range(3):
        z = X @ draws["w"][i]
        exact = stats.bernoulli.logpmf((Y > 0).astype(int), 1 / (1 + np.exp(-z)))
        np.testing.assert_allclose(density.log_likelihood(density.at(draws, i)), exact)


def test_the_mean_log_ratio_is_the_bound() -> None:
    model = normal()
    fit = svmp.fit(model)
    found = importance(fit, model, draws=4000, seed=0)
    error = found.log_ratios.std() / np.sqrt(4000)
    assert abs(found.log_ratios.mean() - fit.bound) < 5 * error


def test_an_exact_q_has_its_evidence_and_no_tail() -> None:
    with svmp.Model() as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1)
        svmp.Poisson("count", mu=rate, observed=[3, 4, 8])
    fit = svmp.fit(model)
    found = importance(fit, model)
    assert found.khat == fit.khat(model) == 0
    assert found.log_evidence == pytest.approx(fit.bound)


def test_the_evidence_of_few_rows_is_that_of_quadrature() -> None:
    """Two rows: q is a product where the posterior is not, and the bound is below the evidence."""
    model = normal(2)
    fit = svmp.fit(model)
    grid = np.exp(np.linspace(-9, 4, 4001))
    cov = np.eye(2) / grid[:, None, None] + 10.0
    quadratic = np.einsum("i,gij,j->g", Y[:2], np.linalg.inv(cov), Y[:2])
    log_density = -0.5 * (quadratic + np.linalg.slogdet(cov)[1]) - np.log(2 * np.pi)
    log_density += 2 * np.log(grid) - grid  # a Gamma(2, 1) times the slope of exp
    evidence = logsumexp(log_density) + np.log(13 / 4000)
    found = importance(fit, model, draws=4000)
    assert fit.bound < evidence - 0.02
    assert found.log_evidence == pytest.approx(evidence, abs=0.05)


@pytest.mark.parametrize(("scale", "low", "high"), [(1.2, -0.5, 0.5), (2.0, 0.6, 0.9)])
def test_khat_of_a_wider_normal(scale: float, low: float, high: float) -> None:
    """Weights N(0, s) / N(0, 1) have a Pareto tail of shape 1 - 1 / s^2: 0.31 and 0.75."""
    x = np.random.default_rng(0).normal(size=20_000)
    _, khat = smooth(stats.norm.logpdf(x, 0, scale) - stats.norm.logpdf(x))
    assert low < khat < high


def test_a_student_has_a_heavy_tail() -> None:
    x = np.random.default_rng(0).normal(size=20_000)
    _, khat = smooth(stats.t.logpdf(x, 2, scale=1.5) - stats.norm.logpdf(x))
    assert khat > 0.7


def test_khat_is_worse_where_q_leaves_more_out() -> None:
    """Two coefficients of nearly the same covariate, against two of independent ones."""

    def regression(x: Any) -> svmp.Model:
        with svmp.Model(coords={"k": 2}) as model:
            w = svmp.Normal("w", mu=0, tau=0.1, dims="k")
            svmp.Normal("y", mu=svmp.dot(x, w), tau=1, observed=Y)
        return model

    independent = np.linalg.qr(X)[0]
    alike = np.stack([X[:, 0], X[:, 0] + 0.3 * X[:, 1]], axis=1)
    good, bad = (svmp.fit(m).khat(m) for m in map(regression, (independent, alike)))
    assert good < 0.5
    assert bad > 0.7


def test_a_joint_q_of_a_normal_posterior_is_exact() -> None:
    """Also where an element has no observed descendants, and is left out."""
    with svmp.Model(coords={"group": 4}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.01)
        theta = svmp.Normal("theta", mu=mu, tau=4, dims="group")
        svmp.Normal("y", mu=theta[np.arange(12) % 3], tau=1, observed=Y)
    product, joint = svmp.fit(model), svmp.fit(model, joint=[("mu", "theta")])
    found = importance(joint, model)
    assert found.khat == 0
    assert found.log_evidence == pytest.approx(joint.bound)
    assert product.khat(model) > 0.3
    said = joint.diagnose(model)
    assert "q is the posterior of its 4 hidden numbers" in said
    assert "Trust its variances." in said


def test_bad_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = normal()
    fit = svmp.fit(model)
    for draws in (10, 2.5, True):
        with pytest.raises(svmp.ModelError, match="draws must be a whole number"):
            fit.khat(model, draws=draws)  # type: ignore[arg-type]
    with pytest.raises(svmp.ModelError, match=r"bound .* under this model"):
        fit.khat(normal(11))
    with pytest.raises(svmp.ModelError, match="the model hides"):
        fit.khat(logistic())
    chain = hidden_markov()
    states = svmp.fit(chain, kernels=False)
    with pytest.raises(svmp.ModelError, match=r"'z' is a chain.*svmp.calibrate"):
        states.khat(chain)
    with svmp.Model(coords={"row": 3}) as partly:
        w = svmp.Normal("w", mu=0, tau=1)
        x = svmp.Normal("x", mu=0, tau=1, dims="row", observed=[1, np.nan, 2], missing=True)
        svmp.Normal("y", mu=w * x, tau=1, dims="row", observed=[1.0, 2.0, 3.0])
    gaps = svmp.fit(partly)
    for refused in (
        lambda: gaps.khat(partly),
        lambda: svmp.calibrate(partly),
    ):
        with pytest.raises(svmp.ModelError, match="'x' is a parent that is observed in part"):
            refused()
    monkeypatch.setitem(sys.modules, "arviz_stats.base", None)
    with pytest.raises(SvmpError, match=r"pip install 'svmp\[psis\]'"):
        fit.khat(model)
