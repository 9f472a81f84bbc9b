"""Runs: their cost, how they end, and that results are sound and reproducible."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import svmp
from svmp.datasets import netflix_shaped
from svmp.kernels.machine.threads import CORES
from svmp.network.network import Network
from svmp.ratings import Ratings
from svmp.study.netflix import matrix_factorization
from tests.examples import natural_of
from tests.inference.tools import begin, gallery
from tests.programs import iterate

K = 5
PLAIN = svmp.RobbinsMonro(kappa=0.6)  # t^-0.6


@cache
def ratings() -> Ratings:
    return netflix_shaped(0.02)


@cache
def model() -> svmp.Model:
    return matrix_factorization(ratings(), K)


def sound(fit: svmp.Fit) -> bool:
    """Every number finite, every natural parameter in its domain."""
    return (
        np.isfinite(fit.bound)
        and all(np.isfinite(fit.trace[c]).all() for c in fit.trace.columns)
        and all(
            np.isfinite(p.natural).all() and p.family.in_domain(p.natural).all()
            for p in fit.posteriors.values()
        )
    )


# --- accesses are the paper's ---------------------------------------------------------------


def accesses(method, **options) -> np.ndarray:
    fit = svmp.fit(
        model(), method, steps=svmp.Constant(0.001), bound_every=1, tol=0, **options
    )  # fmt: skip
    return np.diff(np.concatenate([[0], fit.trace["accesses"][fit.trace["iteration"] > 0]]))


@pytest.mark.parametrize("kernels", [True, False])
def test_sweep_of_full_vb_is_2_K_R_accesses(kernels):
    fit = svmp.fit(model(), svmp.FullVB(), max_sweeps=2, tol=0, kernels=kernels)
    assert fit.trace["accesses"].tolist() == [2 * K * len(ratings().rating) * n for n in (1, 2)]


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("C", [1, 5, 20])
@pytest.mark.parametrize("share_draw", [True, False])
def test_iteration_of_algorithm_1_reads_at_most_C_children(C, share_draw, kernels):
    counts = [np.bincount(x) for x in (ratings().user, ratings().item)]
    expected = K * sum(int(np.minimum(C, n).sum()) for n in counts)
    method = svmp.Children(C, share_draw=share_draw)
    found = accesses(method, max_accesses=1.5 * expected, max_sweeps=None, kernels=kernels)
    assert found.tolist() == [expected] * 2


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("option", ["a", "b"])
@pytest.mark.parametrize("size", [1, 100, 1000])
def test_iteration_of_algorithm_2_reads_2_K_C_global(size, option, kernels):
    found = accesses(
        svmp.Batch(size, option=option), max_accesses=5 * K * size, max_sweeps=None, kernels=kernels
    )
    assert found.tolist() == [2 * K * size] * 3


# --- divergence -----------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["a", "b"])
@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.filterwarnings("ignore::svmp.DivergenceWarning")
def test_diverging_schedule_is_detected_and_a_sound_q_returned(option, kernels):
    fit = svmp.fit(
        model(), svmp.Children(1, option=option), steps=PLAIN, max_sweeps=10, kernels=kernels
    )
    assert fit.status == "diverged"
    assert sound(fit)
    assert fit.bound >= fit.trace["bound"][0] - 1e-6 * abs(fit.bound)
    again = svmp.fit(model(), svmp.FullVB(), init=fit, max_sweeps=2, tol=0)  # it is a useful start
    assert again.bound > fit.bound


@pytest.mark.parametrize("option", ["a", "b"])
@pytest.mark.parametrize("C", [1, 2, 3, 5])
def test_nodewise_steps_do_not_diverge(C, option):
    method = svmp.Children(C, option=option)
    fit = svmp.fit(model(), method, steps=svmp.Nodewise(), max_sweeps=6, tol=0)
    assert fit.status == "budget"
    assert sound(fit)
    assert fit.bound > fit.trace["bound"][0]
    assert fit.bound > -3.0 * len(ratings().rating)


def with_outliers(seed: int) -> svmp.Model:
    """Declare a factorization with three outliers among 4,000 ratings."""
    rng = np.random.default_rng(seed)
    user, item = rng.integers(0, 400, 4000), rng.integers(0, 300, 4000)
    rating = 3 * rng.standard_t(2, 4000)
    rating[rng.choice(4000, 3, replace=False)] = [900, -700, 1200]
    with svmp.Model(coords={"user": 400, "item": 300, "factor": 5}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=1, observed=rating)
    return model


@pytest.mark.parametrize("option", "ab")
@pytest.mark.parametrize("C", [1, 3])
@pytest.mark.filterwarnings("ignore::svmp.DivergenceWarning")
def test_divergence_of_a_few_elements_is_detected(C, option):
    """Three rows make a few elements diverge; a random sample of rows would hardly have them."""
    model, method = with_outliers(C), svmp.Children(C, option=option)
    rng = np.random.default_rng(C)
    near_prior = {"u": 0.3 * rng.normal(size=(400, 5)), "v": 0.3 * rng.normal(size=(300, 5))}
    limits = {"max_sweeps": 3, "tol": 0, "bound_every": 10**9, "init": near_prior}
    fixed = svmp.fit(model, method, steps=svmp.Constant(0.3), **limits)
    assert fixed.status == "diverged"
    assert fixed.bound >= fixed.trace["bound"][0]
    adaptive = svmp.fit(model, method, steps=svmp.Nodewise(), **limits)
    assert adaptive.status == "budget"
    assert adaptive.bound >= adaptive.trace["bound"][0]


@pytest.mark.parametrize("option", ["a", "b"])
def test_nodewise_steps_do_not_diverge_in_batches(option):
    method = svmp.Batch(100, option=option)
    fit = svmp.fit(model(), method, steps=svmp.Nodewise(), max_sweeps=4, tol=0)
    assert fit.status == "budget"
    assert sound(fit)
    assert fit.bound > fit.trace["bound"][0]


@pytest.mark.parametrize("name", ["04 paper", "04 biases", "05", "07", "09", "10", "11"])
def test_default_never_ends_below_its_start(name):
    fit = svmp.fit(gallery()[name], max_sweeps=3)
    start = svmp.fit(gallery()[name], svmp.Children(1), max_accesses=1, bound_every=10**9)
    assert sound(fit)
    assert fit.status in ("budget", "converged")
    assert fit.bound >= start.trace["bound"][0]


def test_default_never_ends_below_its_start_on_many_ratings():
    whole = matrix_factorization(netflix_shaped(0.05), K)
    start = svmp.fit(whole, svmp.Children(1), max_accesses=1).trace["bound"][0]
    for sweeps in (0.05, 0.2, 1, 3):
        fit = svmp.fit(whole, max_sweeps=sweeps)
        assert sound(fit)
        assert fit.bound > start


# --- convergence ----------------------------------------------------------------------------


def test_tiny_steps_are_not_taken_for_convergence():
    """A run with small steps has not converged while full VB would still move q."""
    network = gallery()["04 paper"]
    fit = svmp.fit(
        network, svmp.Children(10**6), steps=svmp.Constant(1e-4), tol=1e-4, max_sweeps=200
    )
    assert fit.status == "budget"
    moved = svmp.fit(network, svmp.FullVB(), init=fit, max_sweeps=1, tol=0)
    assert moved.bound > fit.bound + 1e-4 * abs(fit.bound)


def test_algorithm_1_with_small_steps_stays_at_the_optimum_of_full_vb():
    network = gallery()["02"]
    best = svmp.fit(network, svmp.FullVB(), tol=1e-12)
    fit = svmp.fit(
        network, svmp.Children(10**6), steps=svmp.Constant(0.05), init=best, max_sweeps=500
    )
    assert fit.status == "converged"
    assert fit.bound == pytest.approx(best.bound, rel=1e-9)


# --- the same bits --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [svmp.FullVB(), svmp.Children(3), svmp.Children(3, "b"), svmp.Children(9, share_draw=True),
     svmp.Batch(5000), svmp.Batch(5000, "b"), svmp.Growing(0.2)],
    ids=repr,
)  # fmt: skip
@pytest.mark.skipif(CORES < 2, reason="one core")
def test_same_seed_gives_the_same_bits_on_any_number_of_threads(method):
    found = []
    for threads in (1, 2, 1):
        fit = svmp.fit(model(), method, seed=4, max_sweeps=1.2, tol=0, threads=threads)
        found.append((fit.bound, *(fit[n].natural.tobytes() for n in "uv")))
    assert found[0] == found[1] == found[2]
    other = svmp.fit(model(), method, seed=5, max_sweeps=1.2, tol=0)
    assert other["u"].natural.tobytes() != found[0][1]


# --- local variables ------------------------------------------------------------------------

METHODS = [svmp.Children(4), svmp.Children(4, "b"), svmp.Batch(20), svmp.Batch(20, "b"),
           svmp.Growing(0.2)]  # fmt: skip
on_locals = pytest.mark.parametrize("name", ["05", "06 pictures", "06 counts", "07"])


@on_locals
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_networks_with_local_variables_end_with_a_sound_q(name, method):
    assert Network(gallery()[name]).locals or name == "06 pictures"
    fit = svmp.fit(gallery()[name], method, max_sweeps=2, tol=0)
    assert fit.status == "budget"
    assert sound(fit)


@pytest.mark.parametrize("name", ["05", "06 counts", "07"])
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_globals_do_not_depend_on_the_previous_q_of_local_variables(name, method):
    """Local variables are optimised before the global ones, whatever their q was."""
    network = Network(gallery()[name])
    (local,) = network.locals
    one, other = begin(network), begin(network)
    rng = np.random.default_rng(0)
    family = network.hidden[local].family
    other.natural[local] = natural_of(family, rng, network.hidden[local].size)
    other.moments[local] = family.moments(other.natural[local])
    for iteration in (1, 2, 3):
        for q in (one, other):
            iterate(network, q, method, svmp.Constant(0.3), 0, iteration)
    for variable in network.hidden:
        if variable != local:
            assert np.array_equal(one.natural[variable], other.natural[variable])
    untouched = (one.natural[local] != other.natural[local]).any(axis=1)
    assert untouched.any() or isinstance(method, svmp.Growing)
