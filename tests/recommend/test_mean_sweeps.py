"""Sweeps over means: the solution of dense systems, and the exact bound of the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svmp.fitting.online import Online
from svmp.inference.steps import Constant
from svmp.kernels.machine.threads import share, use_threads
from svmp.kernels.vectors.mean_steps import move_means
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


def system_of(
    table: Ratings, run: Online, sweeps: MeanSweeps, name: str, key: int
) -> tuple[Any, Any]:
    """Return A = P + sum w E[x x^T] and b = P p + sum w r E[x], x the vectors of the other side."""
    assert run.state is not None
    moments, prior = run.state.q.moments, sweeps.priors[name]
    precision, width = prior.alpha / prior.beta, len(prior.mean)
    system, right = np.diag(precision), precision * prior.mean
    keys, others, other = (
        (table.user, table.item, "v") if name == "u" else (table.item, table.user, "u")
    )
    for e in np.flatnonzero(keys == key):
        x, weight = moments[other][others[e]], moments["noise"][table.user[e], 0]
        system += weight * x[width:].reshape(width, width)
        right += weight * table.rating[e] * x[:width]
    return system, right


@pytest.mark.parametrize("omega", [1.0, 1.7])
def test_means_of_an_item_move_to_the_maximum_along_their_direction(omega: float) -> None:
    """x + omega s d with g = b - A x, d = Cov g and s = g . d / d^T A d."""
    table, _, run = begun(3, "user")
    assert run.state is not None
    sweeps = MeanSweeps.of(run.state, SortedPairs.of(table), table.rating, FIRM)
    before = run.state.q.moments["v"].copy()
    sweeps.sweep(omega)
    for item in (0, 7, 11):  # item 7 has no ratings
        system, right = system_of(table, run, sweeps, "v", item)
        width = len(right)
        mean, second = before[item, :width], before[item, width:].reshape(width, width)
        gradient = right - system @ mean
        direction = (second - np.outer(mean, mean)) @ gradient
        step = gradient @ direction / (direction @ system @ direction)
        found = sweeps.lines["v"][item, :width]
        np.testing.assert_allclose(found, mean + omega * step * direction, rtol=2e-4, atol=2e-6)


def test_repeated_steps_of_users_converge_to_the_solution_of_their_system() -> None:
    table, _, run = begun(3, "user")
    assert run.state is not None
    sweeps = MeanSweeps.of(run.state, SortedPairs.of(table), table.rating, FIRM)
    prior = sweeps.priors["u"]
    precision = prior.alpha / prior.beta
    spread = sweeps.fixed["u"], sweeps.triangles["u"]
    arguments = sweeps.lines["v"], *spread, precision, precision * prior.mean, 1.0
    with use_threads(None, tell=False):
        for _ in range(30):
            share(move_means, sweeps.rows["u"], *arguments, sweeps.lines["u"])
    for user in (0, 5, 17):
        system, right = system_of(table, run, sweeps, "u", user)
        found = sweeps.lines["u"][user, : len(right)]
        np.testing.assert_allclose(found, np.linalg.solve(system, right), rtol=2e-4, atol=2e-6)


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
