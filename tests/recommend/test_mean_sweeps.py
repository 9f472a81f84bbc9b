"""Sweeps over means: the solution of dense systems, and the exact bound of the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svmp.inference.online import Online
from svmp.inference.steps import Constant
from svmp.kernels.machine.threads import use_threads
from svmp.kernels.vectors.means import mean_and_covariance
from svmp.network.network import Network
from svmp.ratings import Ratings
from svmp.recommend.mean_sweeps import MeanSweeps, SortedPairs, sweep_means
from svmp.recommend.network import FIRM, network
from svmp.recommend.starts import start
from tests.recommend.tools import drawn


def begun(factors: int, noise: Any, seed: int = 0) -> tuple[Ratings, Network, Online]:
    """Return ratings, some users and items without any, and a run after two sweeps."""
    ratings = drawn(seed, 300)
    keep = (ratings.user != 5) & (ratings.item != 7)
    ratings = ratings.take(np.flatnonzero(keep))
    unit = (ratings.rating - ratings.rating.mean()) / ratings.rating.std()
    table = Ratings(ratings.user, ratings.item, unit, ratings.user_ids, ratings.item_ids)
    model = Network(network(table, factors, "full", noise, FIRM))
    init = start(table.users, table.items, True, factors, "full", seed)
    run = Online(Constant(1.0), seed, init, tell=False)
    for _ in range(2):
        run.advance(model)
    return table, model, run


def bound(model: Network, run: Online) -> float:
    assert run.state is not None
    return sum(model.bound(run.state.q).values())


@pytest.mark.parametrize("noise", ["user", "shared"])
@pytest.mark.parametrize("factors", [2, 3, 9])
def test_every_over_relaxed_sweep_raises_the_exact_bound(factors: int, noise: Any) -> None:
    table, model, run = begun(factors, noise)
    assert run.state is not None
    pairs, before = SortedPairs.of(table), bound(model, run)
    for omega in (1.0, 0.3, 1.5, 1.9, 1.0):
        sweep_means(model, run.state, pairs, table.rating, FIRM, [omega], None)
        now = bound(model, run)
        assert now > before
        before = now


@pytest.mark.parametrize("noise", ["user", "shared"])
def test_moments_stay_those_of_the_natural_parameters(noise: Any) -> None:
    table, model, run = begun(3, noise)
    assert run.state is not None
    q = run.state.q
    sweep_means(model, run.state, SortedPairs.of(table), table.rating, FIRM, [1.4, 1.8], None)
    for name in ("u", "v", "mean_u", "mean_v", "of_u", "of_v"):
        expected = model.hidden[name].family.moments(q.natural[name])
        np.testing.assert_allclose(q.moments[name], expected, rtol=1e-10, atol=1e-12)


def test_means_of_a_user_solve_the_system_of_their_ratings() -> None:
    """x* = (P + sum w E[v v^T])^-1 (P p + sum w r E[v]), written down with NumPy."""
    table, _, run = begun(3, "user")
    assert run.state is not None
    sweeps = MeanSweeps.of(run.state, SortedPairs.of(table), table.rating, FIRM)
    items, noise = run.state.q.moments["v"].copy(), run.state.q.moments["noise"][:, 0]
    sweeps.sweep(1.0)
    prior = sweeps.priors["u"]
    precision, width = prior.alpha / prior.beta, len(prior.mean)
    for m in (0, 5, 17):  # user 5 has no ratings
        system, right = np.diag(precision), precision * prior.mean
        for e in np.flatnonzero(table.user == m):
            own = items[table.item[e]]
            system += noise[m] * own[width:].reshape(width, width)
            right += noise[m] * table.rating[e] * own[:width]
        expected = np.linalg.solve(system, right)
        found = sweeps.lines["u"][m, :width]
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-6)


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    found = []
    for threads in (1, 2):
        table, model, run = begun(4, "user")
        assert run.state is not None
        pairs = SortedPairs.of(table)
        sweep_means(model, run.state, pairs, table.rating, FIRM, [1.3, 1.7], threads)
        found.append(run.state.q)
    for name, natural in found[0].natural.items():
        np.testing.assert_array_equal(natural, found[1].natural[name])


@pytest.mark.parametrize("width", [1, 3, 8])
def test_mean_and_covariance_are_those_of_the_precision_matrix(width: int) -> None:
    rng = np.random.default_rng(width)
    root, mu = rng.normal(size=(5, width, 2 * width)), rng.normal(size=(5, width))
    tau = root @ np.swapaxes(root, 1, 2)
    natural = np.concatenate([np.einsum("mij,mj->mi", tau, mu), -0.5 * tau.reshape(5, -1)], axis=1)
    natural.flags.writeable = False
    with use_threads(1, tell=False):
        mean, covariance = mean_and_covariance(natural, width)
    np.testing.assert_allclose(mean, mu, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(covariance, np.linalg.inv(tau), rtol=1e-4, atol=1e-5)
