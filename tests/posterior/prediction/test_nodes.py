"""Learned precisions are integrated over: Student's t, and adaptive quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import svmp
from svmp.posterior.prediction.nodes import gamma_nodes

P = np.array([0.01, 0.3, 0.5, 0.9])


@pytest.mark.parametrize("shape", [0.1, 0.5, 1.0, 3.0, 1e3, 1e6, 1e12])
@pytest.mark.parametrize("rate", [1e-6, 1.0, 1e6])
def test_scale_mixture_of_normals_is_students_t(shape: float, rate: float) -> None:
    nodes, weights = gamma_nodes(np.array([shape]), np.array([rate]))
    scale = np.sqrt(rate / shape)
    x = scale * np.array([0.1, 1.0, 3.0])[:, None]
    cdf = (weights * stats.norm.cdf(x, scale=1 / np.sqrt(nodes))).sum(axis=1)
    np.testing.assert_allclose(cdf, stats.t.cdf(x[:, 0], 2 * shape, scale=scale), atol=1e-6)


def integrated(function: Any, alpha: float, beta: float) -> float:
    """Return E[function(tau)] under a Gamma, by adaptive quadrature over quantiles."""
    gamma = stats.gamma(alpha, scale=1 / beta)
    ends = gamma.ppf([1e-14, 0.5]), gamma.ppf([0.5, 1 - 1e-14])
    return sum(
        integrate.quad(lambda t: gamma.pdf(t) * function(t), *end, epsabs=1e-13)[0] for end in ends
    )


def test_rows_with_a_learned_noise_have_no_error_of_draws() -> None:
    y = np.random.default_rng(0).normal(2, 3, size=6)
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=0.1)
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Normal("y", mu=mu, tau=tau, observed=y)
    fit = svmp.fit(model, svmp.FullVB())
    found = fit.predict(model, "y", draws=50, corrected=False)
    mean, var = float(fit.posteriors["mu"].mean), float(fit.posteriors["mu"].var)
    noise = float(fit.posteriors["tau"].alpha), float(fit.posteriors["tau"].beta)
    for p, x in zip(P, found.quantile(P)[:, 0], strict=True):
        below = integrated(lambda t, x=x: stats.norm.cdf(x, mean, np.sqrt(var + 1 / t)), *noise)
        assert below == pytest.approx(p, abs=1e-7)
        density = integrated(lambda t, x=x: stats.norm.pdf(x, mean, np.sqrt(var + 1 / t)), *noise)
        assert found.logpdf(x)[0] == pytest.approx(np.log(density), abs=1e-7)


def test_components_have_precisions_of_their_own() -> None:
    rng = np.random.default_rng(1)
    y = np.concatenate([rng.normal(-4, 1, 30), rng.normal(4, 2, 20)])

    def declare(rows: int, values: Any) -> svmp.Model:
        with svmp.Model(coords={"k": 2, "row": rows}) as model:
            p = svmp.Dirichlet("p", a=np.ones(2), dims="k")
            mu = svmp.Normal("mu", mu=0, tau=0.05, dims="k")
            tau = svmp.Gamma("tau", alpha=2, beta=2, dims="k")
            z = svmp.Categorical("z", p=p, dims="row")
            svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=values)
        return model

    fit = svmp.fit(declare(len(y), y), svmp.FullVB())
    new = declare(1, None)
    found = fit.predict(new, "y", new=["row"], draws=50, corrected=False)
    q = fit.posteriors["mu"], fit.posteriors["tau"]
    each = [*zip(fit["p"].mean, q[0].mean, q[0].var, q[1].alpha, q[1].beta, strict=True)]
    for x in (-5.0, 0.0, 3.0):
        below = 0.0
        for share, mean, var, alpha, beta in each:
            below += share * integrated(
                lambda t, x=x, m=mean, v=var: stats.norm.cdf(x, m, np.sqrt(v + 1 / t)), alpha, beta
            )
        assert found.cdf(x)[0] == pytest.approx(below, abs=1e-7)
