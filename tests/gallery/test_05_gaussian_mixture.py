"""The mixture of Normal vectors: Bishop's section 10.2 in plain code, with q(mu_k) q(L_k)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma

import svmp

from .formulas import (
    LOG_2PI,
    assert_never_falls,
    categorical_entropy,
    dirichlet_mean_log,
    dirichlet_term,
    mvnormal_entropy,
    softmax,
)

METHOD = svmp.FullVB(order=["z", "weight", "mu", "tau"])
PRIOR = {"a": 0.01, "beta": 0.3, "nu": 3.0, "V": np.eye(2)}


def begin(script):
    rng = np.random.default_rng(2)
    k = script.COMPONENTS
    return {
        "weight": {"a": np.full(k, 2.0)},
        "mu": {"mu": rng.normal(size=(k, 2)), "tau": 5 * np.eye(2)},
        "tau": {"nu": np.full(k, 6.0), "V": np.eye(2) / 2},
    }


def by_hand(x, init, sweeps, optimised):
    a, mean = init["weight"]["a"].copy(), init["mu"]["mu"].copy()
    k = len(a)
    cov = np.broadcast_to(np.linalg.inv(init["mu"]["tau"]), (k, 2, 2)).copy()
    nu, scale = init["tau"]["nu"].copy(), np.broadcast_to(init["tau"]["V"], (k, 2, 2)).copy()

    def log_det():
        """E[log |L_k|]: Bishop's (10.65)."""
        value = digamma((nu[:, None] - np.arange(2)) / 2).sum(1) + 2 * np.log(2)
        return value + np.linalg.slogdet(scale)[1]

    def log_density():
        """E[log Normal(x_n | mu_k, L_k)], (n, k): as (10.64), with q(mu_k) q(L_k) factorised."""
        gap = x[:, None] - mean
        square = nu * np.einsum("nki,kij,nkj->nk", gap, scale, gap)
        square = square + nu * np.einsum("kij,kij->k", scale, cov)
        return 0.5 * (log_det() - 2 * LOG_2PI - square)

    for _ in range(sweeps):
        z = softmax(dirichlet_mean_log(a) + log_density())
        size = z.sum(0)
        a = PRIOR["a"] + size
        for j in range(k):
            own = nu[j] * scale[j]
            cov[j] = np.linalg.inv((PRIOR["beta"] + size[j]) * own)
            mean[j] = cov[j] @ own @ (z[:, j] @ x)
        for j in range(k):
            gap = x - mean[j]
            scatter = np.einsum("n,ni,nj->ij", z[:, j], gap, gap) + size[j] * cov[j]
            scatter += PRIOR["beta"] * (np.outer(mean[j], mean[j]) + cov[j])
            nu[j] = PRIOR["nu"] + size[j] + 1
            scale[j] = np.linalg.inv(np.linalg.inv(PRIOR["V"]) + scatter)
    if optimised:
        z = softmax(dirichlet_mean_log(a) + log_density())
    bound = (z * (dirichlet_mean_log(a) + log_density())).sum() + categorical_entropy(z)
    bound += dirichlet_term(PRIOR["a"], a) + mvnormal_entropy(cov)
    for j in range(k):
        second = np.outer(mean[j], mean[j]) + cov[j]
        bound += 0.5 * (2 * np.log(PRIOR["beta"]) + log_det()[j] - 2 * LOG_2PI)
        bound -= 0.5 * PRIOR["beta"] * nu[j] * (scale[j] * second).sum()
        q, p = stats.wishart(nu[j], scale[j]), stats.wishart(PRIOR["nu"], PRIOR["V"])
        # E[log p(L)] = log p(L0) + E[log|L| - log|L0|] (nu - 3)/2 - E[tr V^-1 (L - L0)]/2
        at = np.eye(2)
        bound += p.logpdf(at) + (PRIOR["nu"] - 3) / 2 * log_det()[j]
        bound -= 0.5 * np.trace(np.linalg.solve(PRIOR["V"], nu[j] * scale[j] - at))
        bound += q.entropy()
    return z, a, mean, cov, nu, scale, bound


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("sweeps", [1, 6])
def test_sweeps_and_bound_match_the_formulas(script, sweeps, kernels):
    """The compiled loops do not store z: theirs is the optimal one at the end of the sweep."""
    x = script.standardised(script.data())
    init = begin(script)
    z, a, mean, cov, nu, scale, bound = by_hand(x, init, sweeps, optimised=kernels)
    options = {"max_sweeps": sweeps, "tol": 0, "kernels": kernels}
    fit = svmp.fit(script.model(x), METHOD, init=init, **options)
    np.testing.assert_allclose(fit.mean("z"), z, atol=1e-9)
    np.testing.assert_allclose(fit["weight"].a, a, rtol=1e-8)
    np.testing.assert_allclose(fit.mean("mu"), mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(np.linalg.inv(fit["mu"].tau), cov, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fit["tau"].nu, nu, rtol=1e-8)
    np.testing.assert_allclose(fit["tau"].V, scale, rtol=1e-8, atol=1e-12)
    assert fit.bound == pytest.approx(bound, rel=1e-9)
    assert_never_falls(fit.trace["bound"])


def test_separated_groups_are_recovered(script):
    rng = np.random.default_rng(4)
    centres = np.array([[-8.0, 0.0], [0.0, 8.0], [8.0, 0.0]])
    which = np.repeat(np.arange(3), (30, 50, 20))
    x = script.standardised(centres[which] + rng.normal(size=(100, 2)))
    fits = [svmp.fit(script.model(x), svmp.FullVB(), seed=seed) for seed in range(12)]
    best = max(fits, key=lambda fit: fit.bound)
    assert len(script.in_use(best)) == 3
    members = best.mean("z").argmax(1)
    groups = [set(members[which == k]) for k in range(3)]
    assert all(len(group) == 1 for group in groups)
    assert len(set.union(*groups)) == 3
    for k, (group,) in enumerate(groups):
        own = x[which == k]
        np.testing.assert_allclose(best.mean("mu")[group], own.mean(0), atol=0.05)


def test_old_faithful_has_two_kinds(script):
    x = script.data()
    network = script.model(script.standardised(x))
    fits = [svmp.fit(network, svmp.FullVB(), seed=seed) for seed in range(script.STARTS)]
    best = max(fits, key=lambda fit: fit.bound)
    assert len(script.in_use(best)) == 2
    # the two kinds of eruptions are separated at 3 minutes, which is known without any model
    long = best.mean("z")[:, script.in_use(best)[0]] > 0.5
    assert np.mean(long == (x[:, 0] > 3)) > 0.98
