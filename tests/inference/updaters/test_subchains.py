"""Subchains of long sequences with buffers, against solutions of whole sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.methods.draw import AllRows, Draw
from svmp.inference.methods.groups import DrawnSubchains
from svmp.inference.program.program import Program
from svmp.inference.starts.start import start
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.plain import PlainUpdater
from svmp.network.beliefs import Beliefs
from svmp.network.chains.dependence import dependence
from svmp.network.network import Network

RNG = np.random.default_rng(3)
LENGTHS = (400, 90)
ROWS = sum(LENGTHS)
TRACK = np.repeat([0, 1], LENGTHS)
STATE = np.concatenate([np.cumsum(RNG.random(n) < 0.05) % 2 for n in LENGTHS])
Y = RNG.normal(2.0 * STATE, 1.0)
Y[50:80] = np.nan  # across the ends of subchains


def states(y: Any = Y, track: Any = TRACK) -> svmp.Model:
    with svmp.Model(coords={"state": 2, "to": 2, "row": len(y)}) as model:
        first = svmp.Dirichlet("first", a=1, dims="state")
        move = svmp.Dirichlet("move", a=1 + 9 * np.eye(2), dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", first, move, sequence=track, dims="row")
        mu = svmp.Normal("mu", mu=[0.0, 2.0], tau=1.0, dims="state")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=1.0), dims="row", observed=y, missing=True)
    return model


def vectors(y: Any = Y, track: Any = TRACK) -> svmp.Model:
    with svmp.Model(coords={"row": len(y), "latent": 2, "from": 2}) as model:
        A = svmp.MvNormal("A", mu=0.9 * np.eye(2), tau=20 * np.eye(2), dims=("latent", "from"))
        tau = svmp.Gamma("tau", alpha=4, beta=1, dims="latent")
        x = svmp.LinearGaussianChain(
            "x", svmp.Normal.dist(0, 1), A, tau, sequence=track, dims=("row", "latent")
        )
        noise = svmp.Gamma("noise", alpha=4, beta=4)
        svmp.Normal("y", x[:, 0] - x[:, 1], noise, dims="row", observed=y, missing=True)
    return model


def begun(model: svmp.Model, method: svmp.Batch, kernels: bool) -> tuple[Program, Beliefs]:
    network = Network(model)
    program = Program.of(network, method, kernels)
    return program, program.attach(start(network, 1))


def update(program: Program, name: str, q: Beliefs, rows: Draw) -> None:
    updater = next(u for u in program.updaters if name in u.names)
    for _ in updater.update(q, rows, StepRule.unit(rows)):
        pass


def sums(program: Program, name: str, q: Beliefs, rows: Draw) -> Any:
    updater = next(u for u in program.updaters if name in u.names)
    assert isinstance(updater, PlainUpdater)
    elements = np.arange(program.network.hidden[name].size)
    return updater.message_sum(q, rows, elements)[0]


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize(("declare", "tolerance"), [(states, 1e-9), (vectors, 1e-9)])
def test_mean_of_the_sums_of_all_subchains_is_that_of_all_rows(
    declare: Any, tolerance: float, kernels: bool
) -> None:
    method = svmp.Batch(1, over="row", length=30, tolerance=tolerance)
    program, q = begun(declare(), method, kernels)
    network, chain = program.network, "z" if declare is states else "x"
    others = [name for name in network.hidden if name != chain]
    whole = q.copy()
    update(program, chain, whole, AllRows(network))
    truth = {name: sums(program, name, whole, AllRows(network)) for name in others}
    grouping = method.grouping(network)
    assert grouping is not None
    assert grouping.count == 14 + 3
    found = {name: np.zeros_like(truth[name]) for name in others}
    for block in range(grouping.count):
        rows = DrawnSubchains(network, grouping, np.array([block]), tolerance)
        update(program, chain, q, rows)
        drawn = rows.drawn_rows(chain)
        np.testing.assert_allclose(q.moments[chain][drawn], whole.moments[chain][drawn], atol=1e-4)
        for name in others:
            found[name] += sums(program, name, q, rows) / grouping.count
    for name in others:
        if name != "first":  # which reads the first rows of all sequences as they are
            np.testing.assert_allclose(found[name], truth[name], rtol=1e-4, atol=1e-4)
    rows = DrawnSubchains(network, grouping, np.array([0, 14]), tolerance)
    if declare is states:
        np.testing.assert_allclose(sums(program, "first", q, rows), truth["first"], atol=1e-4)
    longest, left = q.joint[chain]["buffers"]
    assert longest > 16
    assert left <= tolerance


def test_looser_tolerances_err_more_with_shorter_buffers() -> None:
    errors, lengths = [], []
    for tolerance in (1e-2, 1e-5, 1e-8):
        method = svmp.Batch(1, over="row", length=30, tolerance=tolerance)
        program, q = begun(states(), method, False)
        whole = q.copy()
        update(program, "z", whole, AllRows(program.network))
        grouping, error = method.grouping(program.network), 0.0
        assert grouping is not None
        for block in range(grouping.count):
            rows = DrawnSubchains(program.network, grouping, np.array([block]), tolerance)
            update(program, "z", q, rows)
            drawn = rows.drawn_rows("z")
            error = max(error, float(np.abs(q.moments["z"] - whole.moments["z"])[drawn].max()))
        errors.append(error)
        lengths.append(q.joint["z"]["buffers"][0])
        assert error <= 3 * np.sqrt(tolerance / 2)
    assert lengths[0] <= lengths[1] <= lengths[2]
    assert errors[0] > errors[2]


@pytest.mark.parametrize("forward", [False, True])
def test_mutual_information_is_that_of_the_joint(forward: bool) -> None:
    track = np.repeat([0, 1], [6, 3])
    model = states(Y[:9], track)
    fit = svmp.fit(model, svmp.FullVB(), tol=1e-15)
    network = Network(model)
    q = start(network, 0, dict(fit.posteriors))
    program = Program.of(network, svmp.FullVB(), False)
    update(program, "z", q, AllRows(network))
    draws = np.array([fit["z"].pairs(t)[0] for t in range(1, 6)])  # exact pairs, chained below
    near, steps = (1, 3) if forward else (4, 3)
    joint = np.diag(fit.mean("z")[min(near, 4 - 3)])
    for t in range(2, 5):
        joint = joint @ (draws[t - 1] / draws[t - 1].sum(axis=1, keepdims=True))
    apart = joint.sum(axis=1)[:, None] * joint.sum(axis=0)
    truth = (joint * np.log(joint / apart)).sum()
    chain = network.chains["z"]
    found = dependence(chain, q, np.array([near]), np.array([steps]), forward, 0.0)
    assert found[0] == pytest.approx(truth, rel=1e-4)


def test_mutual_information_of_vectors_is_that_of_a_dense_solve() -> None:
    with svmp.Model(coords={"row": 5, "latent": 2}) as model:
        A = np.array([[0.9, 0.3], [-0.2, 0.7]])
        x = svmp.LinearGaussianChain("x", svmp.Normal.dist(0, 1), A, 2.0, dims=("row", "latent"))
        svmp.Normal("y", x[:, 0], 3.0, dims="row", observed=np.zeros(5))
    network = Network(model)
    q = start(network, 0)
    update(Program.of(network, svmp.FullVB(), False), "x", q, AllRows(network))
    precision = np.zeros((10, 10))
    precision[:2, :2] = np.eye(2)
    for t in range(5):
        precision[2 * t, 2 * t] += 3.0
        if t:
            slopes, both = np.hstack([-A, np.eye(2)]), slice(2 * t - 2, 2 * t + 2)
            precision[both, both] += 2.0 * slopes.T @ slopes
    cov = np.linalg.inv(precision)
    for near, far, forward in ((1, 4, True), (4, 1, False)):
        a, b = np.arange(2 * near, 2 * near + 2), np.arange(2 * far, 2 * far + 2)
        joint = np.append(a, b)
        dets = [np.linalg.slogdet(cov[np.ix_(i, i)])[1] for i in (a, b, joint)]
        given = network.chains["x"], q, np.array([near]), np.array([3]), forward, 0.0
        assert dependence(*given)[0] == pytest.approx(0.5 * (dets[0] + dets[1] - dets[2]))


@pytest.mark.parametrize("declare", [states, vectors])
def test_runs_end_near_full_vb_with_a_complete_q(declare: Any, tmp_path: Path) -> None:
    full = svmp.fit(declare(), svmp.FullVB(), tol=1e-7)
    method = svmp.Batch(6, over="row", length=30)
    fit = svmp.fit(declare(), method, max_sweeps=30, tol=0, seed=2)
    assert full.bound - 4.0 < fit.bound <= full.bound + 1e-2
    name = "mu" if declare is states else "noise"
    np.testing.assert_allclose(fit.mean(name), full.mean(name), rtol=0.1, atol=0.05)
    assert fit.trace["buffer"][-1] >= 16
    assert 0 < fit.trace["buffer_left"][-1] <= 1e-6
    if declare is states:  # q of whole sequences: pairs agree with both of their marginals
        rows = np.setdiff1d(np.arange(ROWS), [0, LENGTHS[0]])
        pairs = fit["z"].pairs(rows)
        np.testing.assert_allclose(pairs.sum(axis=1), fit.mean("z")[rows], atol=1e-10)
        np.testing.assert_allclose(pairs.sum(axis=2), fit.mean("z")[rows - 1], atol=1e-10)
    path = tmp_path / "run.ckpt"
    svmp.fit(declare(), method, max_sweeps=20, tol=0, seed=2, checkpoint=path)
    again = svmp.fit(declare(), max_sweeps=30, tol=0, resume=path)
    np.testing.assert_array_equal(again.mean(name), fit.mean(name))
    fit.save(tmp_path / "fit.svmp")
    assert svmp.load(tmp_path / "fit.svmp").trace.columns == fit.trace.columns


def test_two_chains_that_switch() -> None:
    with svmp.Model(coords={"state": 2, "to": 2, "row": ROWS, "latent": 1, "from": 1}) as model:
        first = svmp.data([0.5, 0.5], dims="state")
        z = svmp.DiscreteMarkovChain("z", first, [[0.95, 0.05], [0.05, 0.95]], dims="row")
        A = svmp.MvNormal(
            "A", mu=[[[0.9]], [[-0.5]]], tau=np.eye(1), dims=("state", "latent", "from")
        )
        x = svmp.LinearGaussianChain(
            "x", svmp.Normal.dist(0, 1), A, 1.0, switch=z, dims=("row", "latent")
        )
        svmp.Normal("y", x[:, 0], 10.0, dims="row", observed=Y, missing=True)
    full = svmp.fit(model, svmp.FullVB(), tol=1e-9)
    fit = svmp.fit(model, svmp.Batch(5, over="row", length=40), max_sweeps=30, tol=0)
    np.testing.assert_allclose(fit.mean("A"), full.mean("A"), atol=0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"length": 10}, "length needs over="),
        ({"over": "row", "length": 0}, "length must be a whole number of at least 1"),
        ({"over": "row", "length": 10, "tolerance": 0.0}, "tolerance must be between 0 and 1"),
        ({"over": "row", "length": 10, "tolerance": "1"}, "tolerance must be a number"),
        ({"over": "row", "length": 401}, "the longest sequence of 'z' has 400 rows"),
        ({"over": "state", "length": 4}, "no chain has the dimension 'state'"),
        ({"over": "row"}, "only subchains of rows: give length="),
    ],
)
def test_bad_subchains_are_refused(given: Any, message: str) -> None:
    with pytest.raises(svmp.ModelError, match=message):
        svmp.fit(states(), svmp.Batch(2, **given))
