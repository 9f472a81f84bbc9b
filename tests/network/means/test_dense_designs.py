"""Means with a dense design: the evidence of a conjugate regression, and linear messages.

With known noise the posterior of the weights is Normal, so that the bound is the log evidence,

    log Normal(y; 0, diag(1 / tau) + X Lambda^-1 X^T).

A term of the bound is linear in the moments of each variable, and the message is its slope.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import svmp
from svmp.network.network import Network

from ..tools import anywhere

RNG = np.random.default_rng(3)
ROWS, SIZE, GROUPS = 600, 12, 4
X = RNG.normal(size=(ROWS, SIZE))
GROUP = RNG.integers(0, GROUPS, ROWS)
PRIOR = np.diag(RNG.gamma(2, size=SIZE)) + 0.1
TAU = RNG.gamma(3, size=ROWS)
Y = X @ RNG.normal(size=SIZE) + RNG.normal(size=ROWS)


def log_evidence(design: np.ndarray, prior: np.ndarray, tau: np.ndarray, y: np.ndarray) -> float:
    spread = np.diag(1 / tau) + design @ np.linalg.solve(prior, design.T)
    return float(stats.multivariate_normal(np.zeros(len(y)), spread).logpdf(y))


@pytest.mark.parametrize("tau", [np.full(ROWS, 0.7), TAU], ids=["same", "by row"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("method", [svmp.FullVB(), None], ids=["full", "default"])
def test_the_bound_of_a_regression_is_the_log_evidence(
    tau: np.ndarray, missing: bool, method: svmp.FullVB | None
) -> None:
    here = np.ones(ROWS, dtype=bool)
    here[::7] = not missing
    with svmp.Model(coords={"feature": SIZE}) as model:
        w = svmp.MvNormal("w", mu=0, tau=PRIOR, dims="feature")
        y = np.where(here, Y, np.nan)
        svmp.Normal("y", mu=svmp.dot(X, w), tau=tau, observed=y, missing=missing)
    fit = svmp.fit(model, method, kernels=False, progress=False)
    expected = log_evidence(X[here], PRIOR, tau[here], Y[here])
    np.testing.assert_allclose(fit.bound, expected, rtol=1e-10)
    precision = PRIOR + X[here].T @ (tau[here, None] * X[here])
    mean = np.linalg.solve(precision, X[here].T @ (tau * Y)[here])
    np.testing.assert_allclose(fit.mean("w"), mean, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("groups", [GROUPS, ROWS // 3], ids=["large groups", "small groups"])
def test_the_bound_of_regressions_by_group_is_the_sum_of_log_evidences(groups: int) -> None:
    group = np.arange(ROWS) % groups
    with svmp.Model(coords={"feature": SIZE, "group": groups}) as model:
        w = svmp.MvNormal("w", mu=0, tau=PRIOR, dims=("group", "feature"))
        svmp.Normal("y", mu=svmp.dot(X, w[group]), tau=TAU, observed=Y)
    fit = svmp.fit(model, svmp.FullVB(), progress=False)
    own = (group == g for g in range(groups))
    expected = sum(log_evidence(X[at], PRIOR, TAU[at], Y[at]) for at in own)
    np.testing.assert_allclose(fit.bound, expected, rtol=1e-9)


def several_terms() -> svmp.Model:
    """A mean with every kind of regular term, and a positive noise."""
    keys = {"a": 5, "b": 6, "feature": SIZE, "factor": 3, "group": GROUPS}
    rng = np.random.default_rng(1)
    i, j = rng.integers(0, 5, ROWS), rng.integers(0, 6, ROWS)
    with svmp.Model(coords=keys) as model:
        one = svmp.Normal("one", mu=0, tau=1)
        bias = svmp.Normal("bias", mu=0, tau=1, dims="group")
        slope = svmp.Normal("slope", mu=0, tau=1, dims="feature")
        w = svmp.MvNormal("w", mu=0, tau=PRIOR, dims=("group", "feature"))
        u = svmp.MvNormal("u", mu=0, tau=np.eye(3), dims=("a", "factor"))
        v = svmp.MvNormal("v", mu=0, tau=np.eye(3), dims=("b", "factor"))
        p = svmp.Normal("p", mu=0, tau=1, dims=("a", "factor"))
        r = svmp.Normal("r", mu=0, tau=1, dims=("factor", "b"))
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        mu = one + 2 * X[:, 0] * bias[GROUP] + svmp.dot(X, slope) + svmp.dot(X, w[GROUP])
        mu = mu + svmp.dot(u[i], v[j]) - svmp.dot(p[i], r[:, j])
        svmp.Normal("y", mu=mu, tau=tau, observed=Y)
    return model


@pytest.mark.parametrize("name", ["one", "bias", "slope", "w", "u", "v", "p", "r", "tau"])
def test_messages_are_the_slopes_of_the_bound(name: str) -> None:
    network = Network(several_terms())
    q = anywhere(network, 5)
    rng, size = np.random.default_rng(2), network.hidden[name].size
    (edge,) = network.edges[name]
    for elements in (np.arange(size), np.arange(size)[-1:]):
        before = network.bound_term(q, "y")
        messages = edge.message(q, elements, *edge.rows_of(elements))
        for place, element in enumerate(elements):
            kept = q.moments[name][element].copy()
            change = 0.1 * rng.normal(size=kept.shape)
            q.moments[name][element] += symmetric(change)
            after = network.bound_term(q, "y")
            q.moments[name][element] = kept
            expected = messages[place] @ symmetric(change)
            np.testing.assert_allclose(after - before, expected, rtol=1e-7, atol=1e-7)


def symmetric(moments: np.ndarray) -> np.ndarray:
    """Return a change of moments (x, x x^T) whose second part is a symmetric matrix."""
    size = int(np.sqrt(len(moments)))
    if size**2 + size != len(moments) or size == 1:
        return moments
    matrix = moments[size:].reshape(size, size)
    return np.concatenate([moments[:size], (0.5 * (matrix + matrix.T)).ravel()])


@pytest.mark.parametrize("name", ["one", "bias", "slope", "w", "u", "v", "p", "r"])
def test_stored_means_follow_a_change(name: str) -> None:
    network = Network(several_terms())
    q, other = anywhere(network, 5), anywhere(network, 6)
    every = np.arange(network.hidden[name].size)
    for elements in (every[::-1], every[::2]):
        network.remember_means(q)
        network.move(q, name, elements, other.natural[name][elements])
        stored = q.means["y"].copy()
        network.remember_means(q)
        np.testing.assert_allclose(stored, q.means["y"], rtol=1e-9, atol=1e-9)
