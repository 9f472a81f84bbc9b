"""One hidden variable: the textbook posterior, and the evidence by Bayes' rule.

log p(x) = log p(x | theta) + log p(theta) - log p(theta | x) holds at every theta, so SciPy's
densities give the evidence without a formula for it.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import svmp

ONE = np.ones(3)


def beta(x):
    q = {"alpha": 2 + x.sum(), "beta": 2 + (1 - x).sum()}
    theta = 0.6
    prior, posterior = stats.beta(2, 2), stats.beta(q["alpha"], q["beta"])
    return q, stats.bernoulli(theta).logpmf(x).sum() + prior.logpdf(theta), posterior.logpdf(theta)


def gamma(x):
    q = {"alpha": 2 + x.sum(), "beta": 0.5 + len(x)}
    theta = 3.7
    prior = stats.gamma(2, scale=2)
    posterior = stats.gamma(q["alpha"], scale=1 / q["beta"])
    return q, stats.poisson(theta).logpmf(x).sum() + prior.logpdf(theta), posterior.logpdf(theta)


def dirichlet(x):
    q = {"a": 1 + np.bincount(x, minlength=3)}
    theta = np.array([0.45, 0.3, 0.25])
    joint = np.log(theta)[x].sum() + stats.dirichlet(ONE).logpdf(theta)
    return q, joint, stats.dirichlet(q["a"]).logpdf(theta)


def normal(x):
    q = {"mu": 2 * x.sum() / (1 + 2 * len(x)), "tau": 1 + 2 * len(x)}
    theta = 0.5
    joint = stats.norm(theta, np.sqrt(0.5)).logpdf(x).sum() + stats.norm(0, 1).logpdf(theta)
    return q, joint, stats.norm(q["mu"], 1 / np.sqrt(q["tau"])).logpdf(theta)


def wishart(x):
    q = {"nu": 4 + len(x), "V": np.linalg.inv(4 * np.eye(2) + x.T @ x)}
    theta = np.array([[1.5, -0.4], [-0.4, 2.0]])
    joint = stats.multivariate_normal(np.zeros(2), np.linalg.inv(theta)).logpdf(x).sum()
    joint += stats.wishart(4, np.eye(2) / 4).logpdf(theta)
    return q, joint, stats.wishart(q["nu"], q["V"]).logpdf(theta)


EXACT = {
    "Beta-Bernoulli": beta,
    "Gamma-Poisson": gamma,
    "Dirichlet-Categorical": dirichlet,
    "Normal-Normal": normal,
    "Wishart-MvNormal": wishart,
}


@pytest.mark.parametrize("name", EXACT)
def test_posterior_and_evidence_are_exact(script, name):
    x = script.data()
    posterior, joint, log_posterior = EXACT[name](x[name])
    fit = svmp.fit(script.model(x)[name], svmp.FullVB())
    assert fit.status == "converged"
    for parameter, value in posterior.items():
        np.testing.assert_allclose(fit["theta"].parameters[parameter], value, rtol=1e-12)
    assert fit.bound == pytest.approx(joint - log_posterior, abs=1e-10)
    assert script.log_evidence(x)[name] == pytest.approx(joint - log_posterior, abs=1e-10)


@pytest.mark.parametrize("name", EXACT)
def test_one_sweep_is_enough(script, name):
    network = script.model(script.data())[name]
    once = svmp.fit(network, svmp.FullVB(), max_sweeps=1)
    again = svmp.fit(network, svmp.FullVB(), max_sweeps=5, tol=0, seed=3)
    np.testing.assert_allclose(once["theta"].natural, again["theta"].natural, rtol=1e-12)
