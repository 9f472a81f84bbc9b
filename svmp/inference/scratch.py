"""The local variables of some rows, optimised aside: q itself stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from svmp.inference.engine import settle_locals
from svmp.inference.rows import AllRows, by_colour
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network

NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Only(AllRows):
    """Some elements of local variables, each with all of its rows."""

    elements: Mapping[str, Ints]

    def groups(self, name: str) -> list[Ints]:
        return by_colour(self.network, name, self.elements[name])


def locals_of(network: Network, local: str, table: str, rows: Ints) -> tuple[Ints, Ints]:
    """Return the elements of a local variable in some rows, ascending, and the row of each."""
    found = [(NONE, NONE)]
    for edge in network.edges[local]:
        if edge.conditional.variable.name == table:
            elements, where = edge.pairs_in(rows)
            found.append(
                (elements, where if edge.choosing else where // edge.conditional.components)
            )
    elements, places = (np.concatenate(part) for part in zip(*found, strict=True))
    elements, first = np.unique(elements, return_index=True)
    return elements, places[first]


def aside(network: Network, q: Beliefs, elements: Mapping[str, Ints]) -> Beliefs:
    """Return a q of its own for some elements of local variables, that shares all the others.

    Elements that are not named have zeros, which take no memory until they are written.
    """
    natural, moments = dict(q.natural), dict(q.moments)
    for name, some in elements.items():
        variable = network.hidden[name]
        for arrays, values in ((natural, q.natural_at(name, some)), (moments, q.at(name, some))):
            arrays[name] = np.zeros((variable.size, variable.family.size))
            arrays[name][some] = values
    return Beliefs(natural, moments, loops=q.loops)


def settle(network: Network, q: Beliefs, elements: Mapping[str, Ints]) -> None:
    """Optimise some elements of the local variables in turn, given all of their rows."""
    settle_locals(network, q, Only(network, elements))
