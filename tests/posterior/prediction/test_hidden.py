"""Hidden variables are predicted: known elements have their q, new ones their prior given q."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import svmp

pytestmark = pytest.mark.by_size


def declare(groups: Any, key: Any, values: Any = None) -> svmp.Model:
    with svmp.Model(coords={"group": groups, "row": len(key), "k": 3, "d": 2}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.1)
        spread = svmp.Gamma("spread", alpha=3, beta=2)
        u = svmp.Normal("u", mu=mu, tau=spread, dims="group")
        svmp.Normal("y", mu=u[np.asarray(key)], tau=2, dims="row", observed=values)
    return model


@pytest.mark.parametrize("joint", [None, [("mu", "u")]])
def test_known_elements_have_their_q_and_new_ones_follow_their_parents(joint: Any) -> None:
    rng = np.random.default_rng(0)
    key = np.repeat(np.arange(4), 3)
    fit = svmp.fit(declare([*"abcd"], key, rng.normal(size=12) + key), joint=joint)
    found = fit.predict(declare(["d", "new", "a"], [0]), "u", draws=400, corrected=False)
    known, q = [0, 2], fit.posteriors
    u, mu, spread = q["u"], q["mu"], q["spread"]
    np.testing.assert_allclose(found.mean[known], u.mean[[3, 0]])
    np.testing.assert_allclose(found.var[known], u.var[[3, 0]])
    np.testing.assert_allclose(found.interval(0.8)[:, known], u.interval(0.8)[:, [3, 0]])
    np.testing.assert_allclose(found.logpdf(0.5)[known], u.logpdf(np.full(4, 0.5))[[3, 0]])
    assert found.mean[1] == pytest.approx(mu.mean)
    noise = spread.beta / (spread.alpha - 1)
    assert found.var[1] == pytest.approx(mu.var + noise)
    gamma = stats.gamma(spread.alpha, scale=1 / spread.beta)

    def below(t: float) -> float:
        return float(gamma.pdf(t) * stats.norm.cdf(2, mu.mean, np.sqrt(mu.var + 1 / t)))

    truth = integrate.quad(below, 0, np.inf)[0]
    assert found.cdf(2.0)[1] == pytest.approx(truth, abs=2e-3)
    draws = found.draw(3000, seed=1)
    np.testing.assert_allclose(draws.mean(axis=0), found.mean, atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), found.std, rtol=0.1)
    if joint:  # the new group is correlated with the known ones through mu
        assert np.corrcoef(draws.T)[0, 1] > 0.05


def test_other_families_have_their_q() -> None:
    rng = np.random.default_rng(1)
    with svmp.Model(coords={"k": 3, "row": 20, "d": 2, "e": 2}) as model:
        p = svmp.Dirichlet("p", a=np.ones(3), dims="k")
        rate = svmp.Gamma("rate", alpha=1, beta=1, dims="k")
        w = svmp.Wishart("w", nu=4, V=np.eye(2), dims=("d", "e"))
        z = svmp.Categorical("z", p=p, dims="row")
        svmp.Mixture("y", z, svmp.Poisson.dist(mu=rate), dims="row", observed=rng.poisson(3, 20))
        svmp.MvNormal(
            "x", mu=np.zeros(2), tau=w, dims=("row", "d"), observed=rng.normal(size=(20, 2))
        )
    fit = svmp.fit(model)
    for name in ("p", "rate", "z"):
        found = fit.predict(model, name, corrected=False)
        np.testing.assert_allclose(found.mean, fit.posteriors[name].mean, err_msg=name)
        np.testing.assert_allclose(found.var, fit.posteriors[name].var, atol=1e-12, err_msg=name)
    assert fit.predict(model, "w", draws=4000, corrected=False).mean == pytest.approx(
        fit.posteriors["w"].mean, rel=0.1, abs=0.1
    )
