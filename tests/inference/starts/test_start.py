"""The start of a run: by its seed, or by init."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import svmp
from svmp.inference.starts.start import start
from svmp.kernels.machine.threads import CORES
from svmp.network.network import Network
from tests.inference.models import every_family, mixture, rates, ratings, regression

MODELS = [regression, ratings, mixture, rates, every_family]
every_model = pytest.mark.parametrize("build", MODELS, ids=lambda f: f.__name__)


def one_sweep(model: svmp.Model | Network, **options: object) -> svmp.Fit:
    return svmp.fit(model, svmp.FullVB(), **{"max_sweeps": 3, "tol": 0, **options})


def assert_same_bits(one: svmp.Fit, other: svmp.Fit) -> None:
    assert one.bound_terms == other.bound_terms
    np.testing.assert_array_equal(one.trace["bound"], other.trace["bound"])
    for name in one.posteriors:
        np.testing.assert_array_equal(one[name].natural, other[name].natural)


@every_model
def test_same_seed_gives_the_same_bits(build: Callable[[], svmp.Model]) -> None:
    assert_same_bits(one_sweep(build(), seed=7), one_sweep(build(), seed=7))


@pytest.mark.parametrize("build", [ratings, mixture], ids=lambda f: f.__name__)
def test_number_of_threads_does_not_change_the_bits(build: Callable[[], svmp.Model]) -> None:
    assert_same_bits(one_sweep(build(), threads=1), one_sweep(build(), threads=CORES))


@pytest.mark.parametrize("build", [ratings, mixture], ids=lambda f: f.__name__)
def test_different_seeds_start_elsewhere(build: Callable[[], svmp.Model]) -> None:
    network = Network(build())
    name = "u" if build is ratings else "m"
    starts = {start(network, seed).natural[name].tobytes() for seed in range(5)}
    assert len(starts) == 5


@pytest.mark.parametrize("seed", [0, 2**31, 2**63, 2**100])
def test_seeds_of_any_size(seed: int) -> None:
    assert one_sweep(rates(), seed=seed).status == "budget"


def test_numpy_integers_are_valid_seeds() -> None:
    assert_same_bits(one_sweep(rates(), seed=np.int64(5)), one_sweep(rates(), seed=5))


def test_fit_does_not_change_the_model_or_the_global_random_state() -> None:
    model = ratings()
    np.random.seed(3)  # noqa: NPY002
    first = one_sweep(model)
    np.testing.assert_equal(np.random.random(), np.random.RandomState(3).random())  # noqa: NPY002
    assert_same_bits(first, one_sweep(model))


# --- init -----------------------------------------------------------------------------------


def test_init_by_means() -> None:
    """u is updated first, so the run depends on the start of v only."""
    model, rng = ratings(), np.random.default_rng(0)
    u, v = rng.normal(size=(8, 2)), rng.normal(size=(6, 2))
    one = one_sweep(model, init={"u": u, "v": v})
    assert_same_bits(one, one_sweep(model, init={"u": {"mu": u}, "v": {"mu": v}}))
    assert_same_bits(one, one_sweep(model, init={"u": u, "v": v}, seed=9))
    other = one_sweep(model, init={"u": u, "v": 2 * v})
    assert other.trace["bound"][0] != one.trace["bound"][0]


def test_init_by_one_number_for_all() -> None:
    model = ratings()
    one = one_sweep(model, init={"u": 0.5, "v": [0.25, 0.75]})
    other = one_sweep(model, init={"u": np.full((8, 2), 0.5), "v": np.tile([0.25, 0.75], (6, 1))})
    assert_same_bits(one, other)


def test_init_by_standard_parameters() -> None:
    """After b is updated from a known g, by hand: alpha = 1 + 3 * 2, beta = 1 + sum E[g]."""
    start = {"b": {"alpha": 3.0, "beta": 2.0}, "g": {"alpha": [1.0, 2.0, 3.0], "beta": 4.0}}
    fit = svmp.fit(rates(), svmp.FullVB(order=["b", "g"]), init=start, max_sweeps=1)
    assert fit["b"].alpha == pytest.approx(7)
    assert fit["b"].beta == pytest.approx(1 + 6 / 4)
    np.testing.assert_allclose(fit["g"].alpha, [10, 2, 18])
    np.testing.assert_allclose(fit["g"].beta, 7 / 2.5 + np.array([2, 1, 2]))


def test_init_by_some_parameters() -> None:
    """Other parameters keep the values of the default start."""
    one = one_sweep(rates(), init={"b": {"alpha": 1.0}})
    assert one.bound != one_sweep(rates(), init={"b": {"alpha": 9.0}}, max_sweeps=1).bound


def test_init_by_probabilities() -> None:
    p = np.random.default_rng(0).dirichlet([1, 1], 30)
    order = svmp.FullVB(order=["w", "m", "z"])
    fit = svmp.fit(mixture(), order, init={"z": p}, max_sweeps=1)
    np.testing.assert_allclose(fit["w"].a, 1 + p.sum(axis=0))
    np.testing.assert_allclose(fit["m"].tau, 0.1 + p.sum(axis=0))


def test_init_by_posteriors_of_an_earlier_fit() -> None:
    """Two consecutive runs of three sweeps equal one of six."""
    for build in (ratings, rates, regression):
        first = one_sweep(build())
        second = one_sweep(build(), init=first.posteriors)
        whole = one_sweep(build(), max_sweeps=6)
        np.testing.assert_allclose(second.trace["bound"], whole.trace["bound"][3:], rtol=1e-9)


def test_init_by_a_fit() -> None:
    first = one_sweep(ratings())
    assert_same_bits(one_sweep(ratings(), init=first), one_sweep(ratings(), init=first.posteriors))


def test_network_can_be_fitted_again() -> None:
    """What a network caches does not change the bits."""
    for build in (ratings, rates, regression):
        network = Network(build())
        first = one_sweep(network)
        assert_same_bits(first, one_sweep(build()))
        assert_same_bits(one_sweep(network, init=first), one_sweep(build(), init=first))


def test_run_from_the_optimum_stays_there() -> None:
    best = svmp.fit(rates(), svmp.FullVB(), tol=1e-14)
    again = svmp.fit(rates(), svmp.FullVB(), init=best.posteriors)
    assert again.status == "converged"
    assert len(again.trace) <= 3
    assert again.bound == pytest.approx(best.bound, rel=1e-12)


def test_init_is_not_changed() -> None:
    first = one_sweep(ratings())
    before = {name: q.natural.copy() for name, q in first.posteriors.items()}
    u = np.ones((8, 2))
    one_sweep(ratings(), init={**first.posteriors, "u": u})
    for name, natural in before.items():
        np.testing.assert_array_equal(first[name].natural, natural)
    np.testing.assert_array_equal(u, np.ones((8, 2)))


@every_model
def test_default_start_is_proper_and_breaks_symmetries(build: Callable[[], svmp.Model]) -> None:
    model = build()
    fit = svmp.fit(model, svmp.FullVB(), max_seconds=1e-12)
    for q in fit.posteriors.values():
        assert q.family.in_domain(q.natural).all()
    if build is ratings:
        assert len(np.unique(fit.mean("u"))) == 16


def test_mixtures_find_their_components() -> None:
    """Components start apart, so that none stays empty where clusters are well separated."""
    for seed in range(5):
        fit = svmp.fit(mixture(), svmp.FullVB(), seed=seed)
        np.testing.assert_allclose(np.sort(fit.mean("m")), [-3, 3], atol=0.7)
