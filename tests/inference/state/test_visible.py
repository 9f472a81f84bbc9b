"""What is judged of q: the distance of rows' means and sds, against all rows by closed forms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import svmp
from svmp.inference.execute import execute
from svmp.inference.running.problem import OneTable
from svmp.inference.state.visible import SAMPLE, Visible
from svmp.network.network import Network


def ratings(rows: int) -> tuple[svmp.Model, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    user, item = rng.integers(0, 60, rows), rng.integers(0, 40, rows)
    values = 3 + rng.normal(size=(60, 2))[user] @ [1.0, 0.5] + rng.normal(size=rows)
    with svmp.Model(coords={"user": 60, "item": 40, "factor": 3}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=1, observed=values)
    return model, user, item


@pytest.mark.parametrize(("rows", "tolerance"), [(SAMPLE, 1e-6), (20_000, 0.2)])
def test_distance_of_sampled_rows_is_that_of_all(rows: int, tolerance: float) -> None:
    """The root mean square of (m - m') / s, and of log(s / s') where .01 of it counts as .03 of m.

    Given factors that are independent under q, the variance of a product is
    E[u]^2 var v + E[v]^2 var u + var u var v.
    """
    model, user, item = ratings(rows)
    network = Network(model)
    visible = Visible(network)
    readings, moments = [], []
    for sweeps in (5, 10, 20):
        q = execute(OneTable(network), max_sweeps=sweeps, tol=0, progress=False).run.state.q
        readings.append(visible.read(q))
        fit = svmp.fit(model, max_sweeps=sweeps, tol=0, progress=False)
        m, n = fit.mean("u")[user], fit.mean("v")[item]
        s, t = fit.std("u")[user] ** 2, fit.std("v")[item] ** 2
        moments.append(((m * n).sum(axis=1), (m**2 * t + n**2 * s + s * t).sum(axis=1)))
    for (one, other), ((mean, var), (last, unit)) in zip(
        pairwise(readings), pairwise(moments), strict=True
    ):
        means = np.mean((mean - last) ** 2 / np.maximum(var, unit))
        sds = np.mean(np.log(np.sqrt(var / unit)) ** 2)
        (name,) = one.keys() - visible.traded
        distance = visible.distance(name, one[name], other[name])
        assert distance == pytest.approx(np.sqrt(means + 9 * sds), rel=tolerance)


def test_choices_alone_have_converged_after_one_sweep() -> None:
    with svmp.Model(coords={"row": 1, "component": 2}) as model:
        z = svmp.Categorical("z", p=svmp.data([0.4, 0.6], dims="component"), dims="row")
        rates = svmp.Poisson.dist(mu=svmp.data([1.9, 0.8], dims="component"))
        svmp.Mixture("y", z, rates, dims="row", observed=[5])
    fit = svmp.fit(model, kernels=True)
    weights = np.array([0.4 * 1.9**5 * np.exp(-1.9), 0.6 * 0.8**5 * np.exp(-0.8)])
    assert fit.status == "converged"
    np.testing.assert_allclose(fit.mean("z")[0], weights / weights.sum(), rtol=1e-12)


def test_components_with_products_in_their_means_share_a_precision() -> None:
    with svmp.Model(coords={"row": 1, "component": 2}) as model:
        z = svmp.Categorical("z", p=svmp.data([0.4, 0.6], dims="component"), dims="row")
        x = svmp.Normal("x", mu=0.36, tau=svmp.Gamma("g", 2.0, 1.0), dims="row", observed=[-0.54])
        a, tau = svmp.Normal("a", mu=1.3, tau=2.3), svmp.Gamma("tau", 2.0, 1.0)
        mean = svmp.data([1.28, 0.2], dims="component") + a * x
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mean, tau=tau), dims="row", observed=[-2.54])
    fit, long = svmp.fit(model), svmp.fit(model, tol=1e-12)
    assert fit.status == "converged"
    assert abs(fit.mean("a") - long.mean("a")) < 0.03 * long.std("a")
