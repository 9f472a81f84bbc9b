"""Random hierarchies with known precisions: the bound is the log evidence, by dense matrices.

They are large enough for the sparse factor: nested and crossed groups, vectors of an intercept and
a slope, weights of rows, and rows that are missing.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import svmp
from svmp.posterior.uncertainty.covariance_of_q import covariance_of


@pytest.mark.parametrize("seed", range(12))
def test_bound_is_the_evidence(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, groups, items, tops = 260, int(rng.integers(120, 200)), int(rng.integers(3, 12)), 4
    g, h, top = (rng.integers(0, n, k) for n, k in ((groups, rows), (items, rows), (tops, groups)))
    x, weight = rng.normal(size=rows), rng.gamma(2, 1, rows)
    y = rng.normal(size=rows) + x
    nested, vectors = bool(seed % 2), bool(seed // 2 % 2)
    root = np.array([[1.5, 0.4], [0.4, 0.8]])
    y[rng.random(rows) < 0.1] = np.nan
    with svmp.Model(coords={"g": groups, "h": items, "t": tops, "d": 2, "row": rows}) as model:
        a = svmp.Normal("a", mu=1, tau=0.1)
        v = svmp.Normal("v", mu=0, tau=2, dims="h")
        t = svmp.Normal("t", mu=a, tau=0.5, dims="t")
        if vectors:
            u = svmp.MvNormal("u", mu=np.zeros(2), tau=root, dims=("g", "d"))
            mean = a + svmp.dot(svmp.data(np.c_[np.ones(rows), x], ("row", "d")), u[g])
        else:
            u = svmp.Normal("u", mu=t[top] if nested else 0, tau=0.7, dims="g")
            mean = u[g] if nested else a + u[g]
        svmp.Normal("y", mu=mean + v[h], tau=weight, dims="row", observed=y, missing=True)
    names = ["a", "v", "t", "u"]
    fit = svmp.fit(model, svmp.FullVB(), joint=[tuple(names)])

    # theta = A theta + b + e: prior precision and mean by dense matrices
    width = 2 if vectors else 1
    size = 1 + items + tops + width * groups
    first = 1 + items + tops
    own, precision = np.eye(size), np.zeros((size, size))
    own[1 + items : first, 0] = -1
    precision[0, 0] = 0.1
    precision[range(1, 1 + items), range(1, 1 + items)] = 2
    precision[range(1 + items, first), range(1 + items, first)] = 0.5
    precision[first:, first:] = np.kron(np.eye(groups), root if vectors else [[0.7]])
    if nested and not vectors:
        own[first + np.arange(groups), 1 + items + top] = -1
    prior, shift = own.T @ precision @ own, np.zeros(size)
    shift[0] = 1
    mean_of = np.linalg.solve(own, shift)
    X = np.zeros((rows, size))
    X[np.arange(rows), 1 + h] = 1
    X[np.arange(rows), first + width * g] = 1
    if vectors:
        X[np.arange(rows), first + 1 + 2 * g] = x
    if vectors or not nested:
        X[:, 0] += 1
    seen = ~np.isnan(y)
    X, values, w = X[seen], y[seen], weight[seen]
    spread = X @ np.linalg.inv(prior) @ X.T + np.diag(1 / w)
    evidence = multivariate_normal(X @ mean_of, spread).logpdf(values)
    assert fit.bound == pytest.approx(evidence, rel=1e-10)
    after = prior + X.T @ (w[:, None] * X)
    exact = np.linalg.inv(after)
    np.testing.assert_allclose(
        covariance_of(fit.joint, fit.posteriors, names), exact, rtol=1e-8, atol=1e-9
    )
    means = exact @ (prior @ mean_of + X.T @ (w * values))
    found = np.concatenate([fit.mean(name).ravel() for name in names])
    np.testing.assert_allclose(found, means, rtol=1e-8, atol=1e-8)
