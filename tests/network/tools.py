"""Tools for the tests of theorems: a random q, lambda*, one update, the bound.

These tests use svmp's internals through this file only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import svmp
from svmp.families.family import Array, dot
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from tests.examples import natural_of
from tests.programs import bound_terms

Ints = NDArray[np.int64]


def anywhere(network: Network, seed: int, spread: float = 1.0) -> Beliefs:
    """Return a q with random, proper natural parameters."""
    rng = np.random.default_rng(seed)
    q = Beliefs()
    for name, variable in network.observed.items():
        if len(variable.rows) == variable.size:
            q.moments[name] = variable.conditional.child(q, variable.rows)
    for name, variable in network.hidden.items():
        q.natural[name] = spread * natural_of(variable.family, rng, variable.size)
        q.moments[name] = variable.family.moments(q.natural[name])
    return q


def copy(q: Beliefs) -> Beliefs:
    return Beliefs(
        {k: v.copy() for k, v in q.natural.items()}, {k: v.copy() for k, v in q.moments.items()}
    )


def elements_of(network: Network, name: str) -> Ints:
    return np.arange(network.hidden[name].size)


def reached(network: Network, name: str) -> Ints:
    """Return the elements with observed descendants: the bound does not depend on the others.

    Nor does it depend on the natural parameters of elements that are known.
    """
    return np.setdiff1d(unknown(network, name), network.barren(name))


def unknown(network: Network, name: str) -> Ints:
    """Return the elements that are not known."""
    family = network.hidden[name].family
    return family.unknown if isinstance(family, PartlyKnown) else elements_of(network, name)


def optimum(network: Network, q: Beliefs, name: str, elements: Ints | None = None) -> Array:
    """Return lambda*: the prior's message plus those of all rows, for the current q."""
    chosen = elements_of(network, name) if elements is None else elements
    natural = np.array(network.prior(q, name, chosen))
    for edge in network.edges[name]:
        owner, rows = edge.rows_of(chosen)
        natural += edge.message(q, chosen, owner, rows)
    return natural


def placed(network: Network, q: Beliefs, name: str, element: int, natural: Array) -> Beliefs:
    """Return a copy of q in which one element has another natural parameter."""
    moved = copy(q)
    moved.natural[name][element] = natural
    family = network.hidden[name].family
    moved.moments[name] = family.moments(moved.natural[name])
    return moved


def bound(network: Network, q: Beliefs) -> float:
    return float(sum(bound_terms(network, q).values()))


def negative_entropy(network: Network, name: str, natural: Array) -> Array:
    """E[log q] of every element, without the base measure."""
    family = network.hidden[name].family
    return dot(natural, family.moments(natural)) - family.log_partition(natural)


def sweep(network: Network, q: Beliefs) -> list[float]:
    """Update every group of every variable once, in place; return the bound after each update."""
    bounds = []
    for name in network.hidden:
        for group in network.groups[name]:
            network.move(q, name, group, optimum(network, q, name, group))
            bounds.append(bound(network, q))
    return bounds


def fitted(model: svmp.Model, **options: Any) -> svmp.Fit:
    """Fit by full VB until q does not change."""
    options = {"tol": 1e-13, "max_sweeps": 3000, **options}
    return svmp.fit(model, svmp.FullVB(), **options)
