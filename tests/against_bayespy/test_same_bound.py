"""The same start and the same updates give the same bound and the same q as BayesPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bayespy.inference import VB
from bayespy.nodes import CategoricalMarkovChain

import svmp

from .networks import NETWORKS, Twins

SWEEPS = 5


def their_bounds(twins: Twins) -> list[float]:
    vb = VB(*twins.nodes, *twins.others)
    bounds = []
    for _ in range(SWEEPS):
        vb.update(*twins.nodes, verbose=False)
        bounds.append(float(vb.compute_lowerbound()))
    return bounds


def first_moments(nodes: Any) -> np.ndarray:
    """Return BayesPy's first expected statistics of a variable's nodes, sorted.

    Plates are in another order there, so the numbers are compared as a set.
    """
    nodes = nodes if isinstance(nodes, list) else [nodes]
    return np.sort(np.concatenate([marginals(n).ravel() for n in nodes]))


def marginals(node: Any) -> np.ndarray:
    """Return the first expected statistics of a node, of a chain of states those of each step."""
    first = np.broadcast_to(node.u[0], node.get_shape(0))
    if not isinstance(node, CategoricalMarkovChain):
        return first
    return np.concatenate([first[None], node.u[1].sum(axis=-2)])


def our_first_moments(fit: svmp.Fit, name: str) -> np.ndarray:
    q = fit.posteriors[name]
    logs = type(q.family).__name__ in ("Beta", "Dirichlet")
    return np.sort((q.moments if logs else q.mean).ravel())


@pytest.mark.parametrize("network", NETWORKS, ids=lambda f: f.__name__)
def test_bound_and_q_are_those_of_bayespy(network: Callable[[np.random.Generator], Twins]) -> None:
    twins = network(np.random.default_rng(20))
    method = svmp.FullVB(order=list(twins.order))
    theirs = their_bounds(twins)
    fit = svmp.fit(twins.model, method, init=twins.start, max_sweeps=SWEEPS, tol=0)
    ours = fit.trace["bound"]
    if len(ours) < SWEEPS:  # converged
        assert fit.status == "converged"
        ours = np.append(ours, [ours[-1]] * (SWEEPS - len(ours)))
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    for name, nodes in twins.order.items():
        expected = first_moments(nodes)
        np.testing.assert_allclose(our_first_moments(fit, name), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("sweeps", [1, 2, 5])
def test_a_shorter_run_is_a_prefix_of_a_longer_one(sweeps: int) -> None:
    """So comparing the trace compares all shorter runs."""
    for network in NETWORKS:
        twins = network(np.random.default_rng(20))
        method = svmp.FullVB(order=list(twins.order))
        long = svmp.fit(twins.model, method, init=twins.start, max_sweeps=SWEEPS, tol=0)
        short = svmp.fit(twins.model, method, init=twins.start, max_sweeps=sweeps, tol=0)
        assert short.bound == long.trace["bound"][: len(short.trace)][-1]
