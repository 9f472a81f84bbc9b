"""Runs over batches of groups: convergence, results, resuming."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.inference.running.guard import Guard
from svmp.network.network import Network
from tests.inference.tools import begin
from tests.inference.updaters.test_groups import NETWORKS, on_networks, options, ratings, topics
from tests.programs import iterate, optimise_locals

HOFFMAN = svmp.RobbinsMonro(kappa=0.7, tau=1)


@pytest.fixture(scope="module")
def documents() -> svmp.Model:
    return topics(documents=120, k=4, words=40, length=25)


def test_one_pass_over_documents_beats_full_vb_at_equal_accesses(documents):
    full = svmp.fit(documents, svmp.FullVB(), max_sweeps=8, tol=0)
    method = svmp.Batch(10, over="doc")
    fit = svmp.fit(documents, method, steps=HOFFMAN, bound_every=12, max_sweeps=8, tol=0)
    after = fit.trace["iteration"].tolist().index(12)  # 12 batches are one pass
    sweeps = fit.trace["accesses"][after] / full.accesses * 8
    assert sweeps < 8
    assert fit.trace["bound"][after] > full.trace["bound"][0]
    assert fit.trace["bound"][after] > full.trace["bound"][int(np.ceil(sweeps)) - 1]
    assert fit.bound > full.bound


@on_networks
@options
def test_node_wise_steps_do_not_diverge(name, option):
    model, over, _ = NETWORKS[name]
    fit = svmp.fit(model(), svmp.Batch(2, option, over=over), max_sweeps=30, tol=0)
    assert fit.status == "budget"
    assert fit.trace["rollbacks"][-1] == 0
    assert fit.bound > fit.trace["bound"][0]
    assert all(np.isfinite(q.natural).all() for q in fit.posteriors.values())


def test_returned_q_is_optimised_in_every_group(documents):
    """The bound is that of q, and optimising the groups again does not change q."""
    method = svmp.Batch(10, over="doc")
    fit = svmp.fit(documents, method, steps=HOFFMAN, max_sweeps=2, kernels=False)
    network = Network(documents)
    q = begin(network)
    for name, posterior in fit.posteriors.items():
        q.natural[name] = posterior.natural.copy()
        q.moments[name] = posterior.moments.reshape(q.moments[name].shape)
    assert sum(network.bound(q).values()) == pytest.approx(fit.bound, rel=1e-12)
    optimise_locals(network, q, "doc")
    assert np.array_equal(q.natural["theta"], fit["theta"].natural)


@options
def test_batch_of_all_groups_converges_to_the_optimum_of_full_vb(option):
    """With all groups in the batch it is coordinate ascent in another order of updates."""
    model = NETWORKS["regression"][0]()
    full = svmp.fit(model, svmp.FullVB(), tol=1e-10)
    method = svmp.Batch(5, option, over="group")
    fit = svmp.fit(model, method, steps=svmp.Constant(0.5), tol=1e-8, max_sweeps=5000)
    assert fit.status == "converged"
    assert fit.bound == pytest.approx(full.bound, abs=1e-3)
    assert fit.mean("b") == pytest.approx(full.mean("b"), abs=1e-3)


@options
@pytest.mark.parametrize("name", ["topics", "ratings by user", "regression"])
def test_resumed_run_gives_the_same_bits(name, option, tmp_path):
    model, over, _ = NETWORKS[name]
    network, path = model(), tmp_path / "run"
    method = svmp.Batch(2, option, over=over)
    whole = svmp.fit(network, method, steps=HOFFMAN, max_sweeps=20, tol=0)
    svmp.fit(network, method, steps=HOFFMAN, max_sweeps=7, tol=0, checkpoint=path, every=1)
    resumed = svmp.fit(network, resume=path, max_sweeps=20)
    assert resumed.bound == whole.bound
    assert (resumed.iterations, resumed.accesses) == (whole.iterations, whole.accesses)
    for variable in whole.posteriors:
        assert np.array_equal(whole[variable].natural, resumed[variable].natural)


def test_computing_the_bound_does_not_change_the_run(documents):
    method = svmp.Batch(10, over="doc")
    often, never = (
        svmp.fit(documents, method, steps=HOFFMAN, max_sweeps=2, tol=0, bound_every=n)
        for n in (1, 10**9)
    )
    assert len(often.trace) > len(never.trace)
    assert np.array_equal(often["theta"].natural, never["theta"].natural)


@pytest.mark.parametrize("model", [topics, ratings], ids=["topics", "ratings"])
@pytest.mark.filterwarnings("ignore::svmp.DivergenceWarning")
def test_steps_that_are_too_long_are_diagnosed(model):
    over = "doc" if model is topics else "user"
    steps = svmp.Constant(4.0, force=True)
    fit = svmp.fit(model(), svmp.Batch(1, over=over), steps=steps, max_sweeps=100)
    assert fit.status == "diverged"
    assert fit.diagnosis is not None
    assert fit.diagnosis.variable == ("phi" if model is topics else "v")
    assert fit.diagnosis.safe_rho1 is not None
    assert np.isfinite(fit.bound)
    assert all(q.family.in_domain(q.natural).all() for q in fit.posteriors.values())


def test_groups_that_were_not_drawn_raise_no_alarm():
    """Only the variables of drawn groups must agree with the global ones."""
    network = Network(NETWORKS["regression"][0]())
    q = begin(network)
    guard = Guard.of(network)
    safety = guard.begin(q)
    guard.keep(q, safety)
    method = svmp.Batch(2, over="group")
    drawn = method.draw(network, 0, 1).drawn
    others = np.setdiff1d(np.arange(5), drawn)
    far = network.hidden["a"].family.natural(np.full(5, 1e4), np.ones(5))
    network.move(q, "a", others, far[others])
    done = iterate(network, q, method, svmp.Constant(0.1), 0, 1)
    assert guard.check(q, safety) is not None
    assert guard.check(q, safety, done.fresh) is None
    network.move(q, "a", drawn, far[drawn])
    assert guard.check(q, safety, done.fresh) is not None


def test_one_iteration_is_exact_if_all_variables_are_local():
    heads, coin = np.array([1, 0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 1, 3])
    with svmp.Model(coords={"coin": 4, "toss": 6}) as model:  # the third coin was never tossed
        p = svmp.Beta("p", alpha=2, beta=3, dims="coin")
        svmp.Bernoulli("heads", p=p[coin], dims="toss", observed=heads)
    fit = svmp.fit(model, svmp.Batch(1, over="coin"))
    assert fit.status == "converged"
    assert fit["p"].alpha.tolist() == [3, 4, 2, 3]
    assert fit["p"].beta.tolist() == [4, 4, 3, 3]


def test_documents_without_words():
    doc, word = np.array([1, 1, 3, 3, 3]), np.array([0, 1, 2, 0, 0])
    with svmp.Model(coords={"doc": 6, "topic": 2, "word": 3, "token": 5}) as model:
        theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=0.4, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[doc], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    method = svmp.Batch(1, over="doc")
    fit = svmp.fit(model, method, steps=HOFFMAN, max_accesses=300, tol=0, bound_every=1)
    assert fit.status == "budget"
    empty = fit["theta"].a[[0, 2, 4, 5]]
    assert empty == pytest.approx(np.full((4, 2), 0.5))
    then = fit.trace["iteration"][1:].astype(int)
    drawn = [method.draw(Network(model), 0, t).drawn[0] in (1, 3) for t in then]
    read = np.diff(fit.trace["accesses"]) > 0
    assert read.tolist() == drawn
    assert fit.trace["bound"][1:][~read].size  # phi moved towards its prior, and the bound too
    assert np.all(np.diff(fit.trace["bound"]) != 0)


def test_grow_with_batches_is_refused():
    with pytest.raises(svmp.ModelError, match="goes with Children"):
        svmp.fit(topics(), svmp.Batch(2, over="doc"), steps=svmp.Grow())
