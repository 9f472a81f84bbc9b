"""The change of factors that raises the bound most, against numerical optimisation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import svmp
from svmp.inference.acceleration.rotating import natural_of, rotate, sides_of, write
from svmp.inference.acceleration.rotation import Side, best_change, rotated
from svmp.inference.starts.products import products
from svmp.network.network import Network
from tests.network.tools import anywhere, bound, copy


def ratings(vector: bool, tau_u: float = 2.0, tau_v: float = 0.5) -> Network:
    rng = np.random.default_rng(1)
    user, item = rng.integers(12, size=80), rng.integers(7, size=80)
    with svmp.Model(coords={"user": 12, "item": 7, "k": 3}) as model:
        made = {}
        for name, dim, tau in (("u", "user", tau_u), ("v", "item", tau_v)):
            if vector:
                made[name] = svmp.MvNormal(name, mu=0, tau=tau * np.eye(3), dims=(dim, "k"))
            else:
                made[name] = svmp.Normal(name, mu=0, tau=tau, dims=(dim, "k"))
        mu = svmp.dot(made["u"][user], made["v"][item])
        svmp.Normal("r", mu=mu, tau=1, observed=rng.normal(3, 1, 80))
    return Network(model)


def bound_after(network: Network, q: svmp.network.beliefs.Beliefs, matrix: np.ndarray) -> float:
    """Return the exact bound after a change of factors."""
    (product,) = products(network)
    left, right = sides_of(network, q, product)
    inverse = np.linalg.inv(matrix)
    q = copy(q)
    write(network, q, "u", natural_of(left.changed(matrix, inverse)))
    write(network, q, "v", natural_of(right.changed(inverse.T, matrix.T)))
    return bound(network, q)


def test_best_change_is_that_of_numerical_optimisation() -> None:
    network = ratings(vector=True)
    q = anywhere(network, 2)
    (product,) = products(network)
    best = bound_after(network, q, best_change(*sides_of(network, q, product)))
    assert best > bound(network, q)
    found = minimize(
        lambda b: -bound_after(network, q, b.reshape(3, 3)), np.eye(3).ravel(), method="BFGS"
    )
    assert best == pytest.approx(-found.fun, rel=1e-6)


@pytest.mark.parametrize("more", [5, 40])
def test_rotating_twice_is_rotating_once(more: int) -> None:
    rng = np.random.default_rng(3)
    left, right = (
        Side(rng.normal(size=(n, 4)), rng.normal(size=(n, 4, 4)) * 0.1 + 2 * np.eye(4), 1.5)
        for n in (20, more)
    )
    left, right = (s._replace(precision=s.precision @ s.precision.mT) for s in (left, right))
    once = rotated(left, right)
    again = best_change(*once)
    np.testing.assert_allclose(again @ again.T, np.eye(4), atol=1e-8)
    np.testing.assert_allclose(once[0].mean @ once[1].mean.T, left.mean @ right.mean.T, atol=1e-9)


@pytest.mark.parametrize("vector", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_factors_are_rotated_only_if_the_bound_rises(vector: bool, seed: int) -> None:
    network = ratings(vector)
    q = anywhere(network, seed)
    before, old = bound(network, q), copy(q)
    moved = rotate(network, q, lambda q: bound(network, q))
    assert moved or not vector
    assert (bound(network, q) > before) == moved
    if not moved:
        assert all((q.natural[n] == old.natural[n]).all() for n in "uv")


def test_priors_that_differ_between_factors_are_left_alone() -> None:
    network = ratings(False, tau_u=np.array([1.0, 2.0, 3.0]))
    assert not rotate(network, anywhere(network, 1), lambda q: bound(network, q))
