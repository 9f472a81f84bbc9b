"""Joint updates of the elements of one sum: the solution is the limit of coordinate ascent."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.inference.methods.draw import AllRows
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.joint import JointUpdater
from svmp.inference.updaters.plain import PlainUpdater
from svmp.network.network import Network
from tests.inference.tools import GALLERY, advance, assert_same, begin, gallery
from tests.network.tools import anywhere, bound, copy, optimum
from tests.programs import iterate

UNIT = svmp.Constant(1.0)
with_and_without = pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "plain"])


def ratings(noise: str = "known") -> svmp.Model:
    rng = np.random.default_rng(4)
    user, item = rng.integers(8, size=90), rng.integers(6, size=90)
    with svmp.Model(coords={"user": 9, "item": 6, "factor": 4}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0.3, tau=2, dims=("item", "factor"))
        b = svmp.Normal("b", mu=0, tau=1, dims="item")
        tau = 1.5 if noise == "known" else svmp.Gamma("tau", alpha=2, beta=1, dims="item")[item]
        mu = 0.5 * svmp.dot(u[user], v[item]) + b[item]
        svmp.Normal("r", mu=mu, tau=tau, observed=rng.normal(1, 1, 90))
    return model


@pytest.mark.parametrize("noise", ["known", "by item"])
@pytest.mark.parametrize("name", ["u", "v"])
def test_joint_solution_is_the_limit_of_coordinate_ascent(name, noise):
    network = Network(ratings(noise))
    q = anywhere(network, 1)
    rows, plain = AllRows(network), PlainUpdater.of(network, name)
    joint = JointUpdater.of(network, plain)
    assert joint is not None
    (solved,) = joint.update(q, rows, StepRule.unit(rows))
    assert solved.accesses == network.child_counts[name].sum()
    for _ in range(300):
        for change in plain.update(q, rows, StepRule.unit(rows)):
            network.move(q, name, change.elements, change.natural)
    expected = q.natural[name][solved.elements]
    np.testing.assert_allclose(solved.natural, expected, rtol=1e-9, atol=1e-9)


def coupled(case: str) -> svmp.Model:
    """Declare Normals that are multiplied by variables whose entries are dependent."""
    rng = np.random.default_rng(5)
    row, key, third = rng.integers(8, size=90), rng.integers(6, size=90), rng.integers(5, size=90)
    with svmp.Model(coords={"time": 8, "sensor": 6, "place": 5, "factor": 3}) as model:
        w = svmp.Normal("w", mu=0.3, tau=2, dims=("sensor", "factor"))
        if case == "scale":  # one number for all entries
            mu = (svmp.Normal("x", mu=1, tau=1, dims="time")[row] * w[key]).sum("factor")
        else:
            x = svmp.MvNormal("x", mu=0.5, tau=np.eye(3), dims=("time", "factor"))
            mu = svmp.dot(x[row], w[key])
        if case == "three":
            v = svmp.Normal("v", mu=1, tau=1, dims=("place", "factor"))
            mu = (x[row] * w[key] * v[third]).sum("factor")
        if case == "numbers":
            mu = (
                svmp.data(rng.normal(size=(90, 3)), dims=("row", "factor")) * x[row] * w[key]
            ).sum("factor")
        mu = mu + svmp.Normal("b", mu=0, tau=1, dims="sensor")[key]
        svmp.Normal("y", mu=mu, tau=1.5, dims="row", observed=rng.normal(1, 1, 90))
    return model


@pytest.mark.parametrize("case", ["vector", "three", "numbers", "scale"])
def test_joint_solution_has_the_covariances_of_other_variables(case: str) -> None:
    network = Network(coupled(case))
    q, q_other = anywhere(network, 1), anywhere(network, 1)
    rows, plain = AllRows(network), PlainUpdater.of(network, "w")
    joint = JointUpdater.of(network, plain)
    assert joint is not None
    (solved,) = joint.update(q, rows, StepRule.unit(rows))
    for _ in range(500):
        for group in network.groups["w"]:
            network.move(q_other, "w", group, optimum(network, q_other, "w", group))
    expected = q_other.natural["w"][solved.elements]
    np.testing.assert_allclose(solved.natural, expected, rtol=1e-8, atol=1e-8)


def test_components_are_solved_with_the_weights_of_their_rows():
    rng = np.random.default_rng(0)
    x, z = rng.normal(2, 1, size=(80, 3)), rng.integers(0, 2, 80)
    y = (x * np.array([[1, 2, -1], [-2, 0, 3]])[z]).sum(axis=1) + rng.normal(size=80)
    with svmp.Model(coords={"row": 80, "component": 2, "feature": 3}) as model:
        share = svmp.Dirichlet("share", a=1, dims="component")
        chosen = svmp.Categorical("chosen", p=share, dims="row")
        w = svmp.Normal("w", mu=0, tau=0.1, dims=("component", "feature"))
        line = svmp.Normal.dist(mu=svmp.dot(svmp.data(x, dims=("row", "feature")), w), tau=1)
        svmp.Mixture("y", chosen, line, dims="row", observed=y)
    network = Network(model)
    q = anywhere(network, 1)
    rows, plain = AllRows(network), PlainUpdater.of(network, "w")
    joint = JointUpdater.of(network, plain)
    assert joint is not None
    (solved,) = joint.update(q, rows, StepRule.unit(rows))
    for _ in range(2000):
        for change in plain.update(q, rows, StepRule.unit(rows)):
            network.move(q, "w", change.elements, change.natural)
    expected = q.natural["w"][solved.elements]
    np.testing.assert_allclose(solved.natural, expected, rtol=1e-8, atol=1e-8)


@with_and_without
@pytest.mark.parametrize("name", GALLERY)
def test_bound_never_falls(name, kernels):
    network = Network(gallery()[name])
    q = begin(network, kernels)
    before = -np.inf
    for iteration in range(1, 8):
        iterate(network, q, svmp.Growing(1.0), UNIT, 0, iteration)
        now = bound(network, q)
        assert now >= before - 1e-9 * abs(now)
        before = now


def test_variable_in_two_tables_is_not_solved_jointly():
    rng = np.random.default_rng(0)
    user = rng.integers(5, size=30)
    with svmp.Model(coords={"user": 5, "factor": 3}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        w = svmp.Normal("w", mu=0, tau=1, dims="factor")
        svmp.Normal("x", mu=svmp.dot(u[user], w), tau=1, observed=rng.normal(size=30))
        svmp.Normal("y", mu=svmp.dot(u[user], w), tau=2, observed=rng.normal(size=30))
    network = Network(model)
    assert JointUpdater.of(network, PlainUpdater.of(network, "u")) is None
    start = anywhere(network, 2)
    full = advance(network, copy(start), svmp.FullVB())
    assert_same(advance(network, copy(start), svmp.Growing(1.0)), full, 1e-12)
