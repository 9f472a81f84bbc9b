"""Theorems of variational message passing, on random networks.

None takes its truth from svmp itself: the theorems hold for any network.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import svmp
from svmp.network.beliefs import Beliefs
from svmp.network.matrices import Diagonal
from svmp.network.network import Network
from tests.examples import natural_of

from .networks import KINDS, of_kind
from .tools import (
    anywhere,
    bound,
    copy,
    elements_of,
    negative_entropy,
    optimum,
    placed,
    reached,
    sweep,
    unknown,
)

every_kind = pytest.mark.parametrize("kind", KINDS)
MORE = {"random means": 3, "mixtures": 2}


def on_networks(kind: str, check: Callable[[Network, int], None], count: int) -> None:
    """Run a check on random networks of one kind, more of them where there is more to vary."""

    @settings(max_examples=count * MORE.get(kind, 1))
    @given(of_kind(kind), st.integers(0, 2**16))
    def run(model: svmp.Model, seed: int) -> None:
        check(Network(model), seed)

    run()


# --- the update is the natural gradient (claim 9) -------------------------------------------


@every_kind
def test_the_change_of_the_bound_is_given_by_the_messages(kind: str) -> None:
    """As a function of one element, L = lambda* . m - E[log q] + const, however far it moves.

    The statements about gradients below are derivatives of this. Where a density is replaced by a
    convex bound, L is at least that: the messages are tangents.
    """

    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        rng = np.random.default_rng(seed)
        here = bound(network, q)
        for name, variable in network.hidden.items():
            star = optimum(network, q, name)
            for element in reached(network, name):
                to = natural_of(variable.family, rng, variable.size)[element]
                there = placed(network, q, name, element, to)
                change = there.moments[name][element] - q.moments[name][element]
                before, after = (
                    negative_entropy(network, name, b.natural[name])[element] for b in (q, there)
                )
                rise = star[element] @ change - (after - before)
                scale = abs(here) + np.abs(star[element]) @ np.abs(change) + 1
                found = bound(network, there) - here
                if sends_tangents(network, name):
                    assert found >= rise - 1e-11 * scale
                else:
                    assert found == pytest.approx(rise, abs=1e-11 * scale)

    on_networks(kind, check, 15)


def sends_tangents(network: Network, name: str) -> bool:
    """Whether some child of a variable has a convex bound as its density."""
    edges = network.edges[name]
    return any(e.conditional.factor.convex and not e.choosing for e in edges)


def gradient(network: Network, q: Beliefs, name: str, element: int) -> np.ndarray:
    """Numerical gradient of the bound with respect to one element's natural parameter."""
    natural = q.natural[name][element]
    return slope(
        lambda at: np.array([bound(network, placed(network, q, name, element, at))]), natural
    )[0]


def fisher(network: Network, q: Beliefs, name: str, element: int) -> np.ndarray:
    """cov[phi] of one element: the numerical derivative of its moments by its natural parameter."""
    natural = q.natural[name][element]
    return slope(lambda at: placed(network, q, name, element, at).moments[name][element], natural)


def slope(function: Callable[[np.ndarray], np.ndarray], at: np.ndarray) -> np.ndarray:
    """Jacobian by central differences of the fourth order."""
    columns = []
    for i, x in enumerate(at):
        step = np.zeros_like(at)
        step[i] = 1e-3 * max(abs(x), 0.1)
        near, far = (function(at + s * step) - function(at - s * step) for s in (1, 2))
        columns.append((8 * near - far) / (12 * step[i]))
    return np.stack(columns, axis=-1)


@every_kind
def test_the_gradient_is_the_covariance_times_the_natural_gradient(kind: str) -> None:
    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        for name in network.hidden:
            natural_gradient = optimum(network, q, name) - q.natural[name]
            for element in reached(network, name)[:2]:
                cov = fisher(network, q, name, element)
                np.testing.assert_allclose(cov, cov.T, rtol=1e-5, atol=1e-7 * np.abs(cov).max())
                expected = cov @ natural_gradient[element]
                found = gradient(network, q, name, element)
                scale = np.abs(cov).max() * np.abs(natural_gradient[element]).max()
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * (scale + 1))

    on_networks(kind, check, 3)


@every_kind
def test_the_fisher_matrix_is_block_diagonal(kind: str) -> None:
    """The Fisher matrix of q, the Jacobian of all moments by all natural parameters.

    It has one block for each element, its covariance of phi, and zeros elsewhere. So solving it for
    the gradient of the bound, block by block, gives lambda* - lambda of each element, whatever the
    others are.
    """

    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        for name in network.hidden:
            for element in unknown(network, name)[:2]:
                rows = fisher_rows(network, q, name, element)
                for other, jacobian in rows.items():
                    apart = np.ones(len(jacobian), dtype=bool)
                    apart[element if other == name else []] = False
                    assert not jacobian[apart].any()
                block = rows[name][element]
                scale = np.abs(block).max()
                np.testing.assert_allclose(block, block.T, rtol=1e-5, atol=1e-7 * scale)
                draws = network.hidden[name].family.draw(
                    q.natural[name], np.random.default_rng(seed), 4000
                )
                phi = network.hidden[name].family.statistics(draws)[:, element]
                spread = phi - phi.mean(axis=0)
                # Within six standard errors of the covariance of draws.
                products = spread[:, :, None] * spread[:, None, :]
                error = 6 * products.std(axis=0) / np.sqrt(len(products)) + 1e-3 * scale
                assert (np.abs(products.mean(axis=0) - block) <= error).all()

    on_networks(kind, check, 3)


def fisher_rows(network: Network, q: Beliefs, name: str, element: int) -> dict[str, np.ndarray]:
    """Differentiate the moments of all elements by one's natural parameter, as `move` sets them."""

    def moments(natural: np.ndarray) -> np.ndarray:
        moved = copy(q)
        network.remember_means(moved)
        network.move(moved, name, np.array([element]), natural[None])
        return np.concatenate([moved.moments[n].ravel() for n in network.hidden])

    jacobian, start, rows = slope(moments, q.natural[name][element]), 0, {}
    for other in network.hidden:
        shape = q.moments[other].shape
        part = jacobian[start : start + shape[0] * shape[1]]
        rows[other], start = part.reshape(*shape, -1), start + shape[0] * shape[1]
    return rows


# --- full VB never lowers the bound (claim 1) -----------------------------------------------


@every_kind
def test_no_update_lowers_the_bound(kind: str) -> None:
    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        bounds = [bound(network, q)]
        for _ in range(2):
            network.remember_means(q)
            bounds += sweep(network, q)
        least = -1e-10 * (1 + np.abs(bounds).max())
        assert np.diff(bounds).min() >= least

    on_networks(kind, check, 8)


@every_kind
def test_no_sweep_of_a_fit_lowers_the_bound(kind: str) -> None:
    @settings(max_examples=6 * MORE.get(kind, 1))
    @given(of_kind(kind), st.integers(0, 2**16))
    def run(model: svmp.Model, seed: int) -> None:
        fit = svmp.fit(model, svmp.FullVB(), seed=seed, max_sweeps=8, tol=0)
        trace = fit.trace["bound"]
        assert np.diff(trace).min(initial=0) >= -1e-10 * (1 + np.abs(trace).max())
        assert fit.bound == trace[-1]

    run()


@every_kind
def test_the_gradient_of_an_optimal_element_is_zero(kind: str) -> None:
    """After an update lambda* = lambda, so that repeating it changes nothing.

    This does not hold for tangents, which then touch at another point.
    """

    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        for name in network.hidden:
            if sends_tangents(network, name):
                continue
            for group in network.groups[name]:
                network.move(q, name, group, optimum(network, q, name, group))
                again = optimum(network, q, name, group)
                np.testing.assert_allclose(q.natural[name][group], again, rtol=1e-12, atol=1e-12)

    on_networks(kind, check, 5)


# --- elements that are updated together -----------------------------------------------------


@every_kind
def test_no_two_elements_of_a_group_share_a_row(kind: str) -> None:
    """By brute force: move one element, and find the rows (and components) that change."""

    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        for name in network.hidden:
            groups = network.groups[name]
            assert sorted(np.concatenate(groups).tolist()) == unknown(network, name).tolist()
            for edge in network.edges[name]:
                if isinstance(edge.slot, Diagonal):
                    continue  # its entries share rows, but their messages add: see the next test
                conditional = edge.conditional
                observed = conditional.variable.rows
                noticed = []
                before = conditional.densities(q, observed)
                if edge.choosing:
                    before = conditional.log_density(q, observed)[:, None]
                for element in elements_of(network, name):
                    to = q.natural[name][element] * 1.1
                    moved = placed(network, q, name, element, to)
                    after = conditional.densities(moved, observed)
                    if edge.choosing:
                        after = conditional.log_density(moved, observed)[:, None]
                    noticed.append(before != after)
                for group in groups:
                    assert np.sum([noticed[e] for e in group], axis=0).max() <= 1

    on_networks(kind, check, 8)


@every_kind
def test_no_element_of_a_group_changes_the_optimum_of_another(kind: str) -> None:
    """So one update of all of them equals separate updates."""

    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        for name in network.hidden:
            for group in network.groups[name]:
                before = optimum(network, q, name, group)
                for place, element in enumerate(group):
                    to = q.natural[name][element] * 1.1
                    moved = placed(network, q, name, element, to)
                    others = np.arange(len(group)) != place
                    after = optimum(network, moved, name, group)
                    assert np.array_equal(after[others], before[others])

    on_networks(kind, check, 5)


@every_kind
def test_updating_a_group_equals_updating_its_elements_one_by_one(kind: str) -> None:
    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        single = copy(q)
        network.remember_means(q)
        network.remember_means(single)
        for name in network.hidden:
            for group in network.groups[name]:
                network.move(q, name, group, optimum(network, q, name, group))
                for element in group:
                    one = np.array([element])
                    network.move(single, name, one, optimum(network, single, name, one))
            np.testing.assert_allclose(
                single.natural[name], q.natural[name], rtol=1e-10, atol=1e-10
            )

    on_networks(kind, check, 8)


def test_the_groups_of_a_factorization_are_its_factors() -> None:
    """Users are updated together; the factors of one user are co-parents, updated in turn."""
    with svmp.Model(coords={"user": 5, "item": 4, "factor": 3}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        user, item = np.divmod(np.arange(20), 4)
        svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=1, observed=np.ones(20))
    network = Network(model)
    assert [g.tolist() for g in network.groups["u"]] == [
        [k, k + 3, k + 6, k + 9, k + 12] for k in range(3)
    ]
    assert [len(g) for g in network.groups["v"]] == [4, 4, 4]


# --- rows with equal parameters -------------------------------------------------------------


def hierarchies() -> svmp.Model:
    """Declare tables whose rows have the same parameters, or the same along an axis."""
    rng = np.random.default_rng(0)
    with svmp.Model(coords={"site": 4, "trait": 3, "day": 2}) as model:
        mean = svmp.Normal("mean", mu=0, tau=1, dims="trait")
        tau = svmp.Gamma("tau", alpha=2, beta=1, dims="trait")
        level = svmp.Gamma("level", alpha=2, beta=1)
        centre = svmp.MvNormal("centre", mu=np.zeros(3), tau=np.eye(3), dims="trait")
        spread = svmp.Gamma("spread", alpha=2, beta=1, dims="trait")
        known = svmp.data(rng.normal(size=2), dims="day")
        x = svmp.Normal("x", mu=mean + known, tau=tau, dims=("day", "site", "trait"))
        noise = svmp.Gamma("noise", alpha=3, beta=3 * level, dims="site")
        w = svmp.MvNormal("w", mu=centre, tau=svmp.diag(spread), dims=("site", "trait"))
        y = rng.normal(size=(2, 4, 3))
        svmp.Normal("y", mu=x, tau=1, dims=("day", "site", "trait"), observed=y)
        total = svmp.dot(w, svmp.data(np.ones(3), dims="trait"))
        svmp.Normal("z", mu=total, tau=noise, dims="site", observed=y[0, :, 0])
    return model


def check_pools(network: Network, seed: int) -> int:
    """Compare pooled messages with the sum of single ones; return the number of pooled tables."""
    q, tables = anywhere(network, seed), set()
    terms = network.bound(q)
    for name, edges in network.edges.items():
        some = elements_of(network, name)[::2]
        for edge in (e for e in edges if e.conditional.pools):
            alone = edge.message(q, some, *edge.rows_of(some))
            np.testing.assert_allclose(edge.pooled_message(q, some), alone, rtol=1e-9, atol=1e-9)
            table = edge.conditional.variable
            alone = network.terms(q, table.name, network.rows(table)).sum()
            np.testing.assert_allclose(terms[table.name], alone, rtol=1e-9, atol=1e-9)
            tables.add(table.name)
    return len(tables)


@every_kind
def test_pooled_messages_of_equal_rows_equal_their_sum(kind: str) -> None:
    on_networks(kind, lambda network, seed: check_pools(network, seed) and None, 5)


def test_hierarchies_have_few_kinds_of_rows() -> None:
    network = Network(hierarchies())
    assert check_pools(network, 0) == 3
    kinds = {n: v.conditional.kinds.grid.size for n, v in network.hidden.items()}
    assert [kinds[name] for name in ("x", "noise", "w")] == [2 * 3, 1, 1]


# --- stored means ---------------------------------------------------------------------------


@every_kind
def test_stored_means_are_refreshed_by_every_update(kind: str) -> None:
    """Full VB stores E[mu] of every row; after updates they are those of the current q."""

    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        network.remember_means(q)
        sweep(network, q)
        fresh = copy(q)
        network.remember_means(fresh)
        assert q.means.keys() == fresh.means.keys()
        for name in q.means:
            np.testing.assert_allclose(q.means[name], fresh.means[name], rtol=1e-9, atol=1e-9)

    on_networks(kind, check, 5)
