"""Special cases of sampling: only local variables, co-parents in a row, elements without rows."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.network.network import Network
from tests.inference.tools import ALL, advance, begin, gallery
from tests.network.tools import bound

UNIT = svmp.Constant(1.0)
METHODS = [svmp.Children(ALL), svmp.Children(2), svmp.Batch(99), svmp.Batch(2), svmp.Growing(0.5)]
every_method = pytest.mark.parametrize("method", METHODS, ids=repr)


@every_method
@pytest.mark.parametrize("kernels", [True, False])
def test_one_row_with_two_parents(method, kernels):
    with svmp.Model() as model:
        a = svmp.Normal("a", mu=0, tau=1)
        b = svmp.Normal("b", mu=0, tau=1)
        svmp.Normal("x", mu=a + b, tau=1, observed=1.0)
    fit = svmp.fit(model, method, tol=1e-12, max_sweeps=40, kernels=kernels)
    assert fit.mean("a") == pytest.approx(1 / 3, abs=1e-3)  # of the joint Normal
    assert fit.mean("b") == pytest.approx(1 / 3, abs=1e-3)


@every_method
def test_categorical_with_known_components(method):
    """All variables are local: the posterior of each row has a closed form."""
    x = np.array([-1.0, 0.2, 1.5])
    with svmp.Model(coords={"k": 2, "row": 3}) as model:
        z = svmp.Categorical("z", p=svmp.data([0.5, 0.5], dims="k"), dims="row")
        mu = svmp.data([-1.0, 1.0], dims="k")
        svmp.Mixture("x", z, svmp.Normal.dist(mu=mu, tau=1), dims="row", observed=x)
    fit = svmp.fit(model, method, max_sweeps=20)
    assert fit.mean("z")[:, 1] == pytest.approx(1 / (1 + np.exp(-2 * x)))


def co_parents() -> svmp.Model:
    rng = np.random.default_rng(0)
    with svmp.Model(coords={"row": 8, "k": 5}) as model:
        x = svmp.Normal("x", mu=0, tau=1, dims=("row", "k"))
        g = svmp.Normal("g", mu=0, tau=1)
        svmp.Normal("y", mu=x.sum("k") + g, tau=100, dims="row", observed=3 + rng.normal(size=8))
    return model


@every_method
@pytest.mark.parametrize("kernels", [True, False])
def test_local_variables_of_one_row_are_not_updated_together(method, kernels):
    """Each is in the others' Markov blanket: updated together they would lower the bound."""
    fit = svmp.fit(co_parents(), method, kernels=kernels, tol=0, max_sweeps=20, bound_every=10**6)
    assert fit.status == "budget"
    assert fit.bound > -3000  # full VB: about -290 after 20 sweeps


def test_local_variables_of_one_row_never_lower_the_bound():
    network = Network(co_parents())
    q = begin(network)
    bounds = [bound(network, q)]
    for _ in range(10):
        advance(network, q, svmp.Children(ALL), 1)
        bounds.append(bound(network, q))
    assert np.diff(bounds).min() >= -1e-9 * abs(bounds[-1])


@every_method
def test_element_without_children_ends_at_its_prior(method):
    with svmp.Model(coords={"item": 3}) as model:
        v = svmp.Normal("v", mu=0.5, tau=4, dims="item")
        svmp.Normal("r", mu=v[[0, 0, 1, 1]], tau=1, observed=[1.0, 2, 3, 4])
    fit = svmp.fit(model, method, max_sweeps=50)
    assert fit.mean("v")[2] == pytest.approx(0.5, abs=1e-9)
    assert fit.var("v")[2] == pytest.approx(0.25, abs=1e-9)


@every_method
@pytest.mark.parametrize("kernels", [True, False])
def test_hidden_tables_above_the_observed_one(method, kernels):
    """Districts, schools, pupils: no observation is a child of a district."""
    fit = svmp.fit(gallery()["09"], method, kernels=kernels, max_sweeps=3, tol=0)
    assert fit.status == "budget"
    assert np.isfinite(fit.bound)


def test_categorical_of_a_missing_row_does_not_change_the_optimum():
    """Batches of all observations converge to the weights of full VB."""
    with svmp.Model(coords={"k": 2, "row": 6}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        m = svmp.Normal("m", mu=[-2.0, 2.0], tau=1, dims="k")
        x = np.array([-2.0, -2.5, 2.0, -1.8, 0.0, 0.0])
        missing = np.array([False] * 4 + [True] * 2)
        svmp.Mixture("x", z, svmp.Normal.dist(mu=m, tau=1), dims="row", observed=x, missing=missing)
    full = svmp.fit(model, svmp.FullVB(), tol=1e-13, max_sweeps=2000)
    fit = svmp.fit(model, svmp.Batch(4), steps=UNIT, tol=1e-13, max_sweeps=2000)
    assert fit["w"].a == pytest.approx(full["w"].a, rel=1e-4)
