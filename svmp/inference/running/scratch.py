"""Optimise the local variables of some rows in a scratch copy of q."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from svmp.inference.methods.draw import AllRows, by_colour
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.domain import check_domain
from svmp.inference.updaters.plain import PlainUpdater
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network

NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ChosenElements(AllRows):
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


def scratch_copy(network: Network, q: Beliefs, elements: Mapping[str, Ints]) -> Beliefs:
    """Return a q with its own arrays for local variables, of which only some elements are copied.

    The other elements are zeros, which take no memory until they are written. All other variables
    share their arrays with q.
    """
    natural, moments = dict(q.natural), dict(q.moments)
    for name, some in elements.items():
        variable = network.hidden[name]
        for arrays, values in ((natural, q.natural_at(name, some)), (moments, q.at(name, some))):
            arrays[name] = np.zeros((variable.size, variable.family.size))
            arrays[name][some] = values
    return Beliefs(natural, moments, row_moments=q.row_moments, blocks=q.blocks)


def optimise(network: Network, q: Beliefs, elements: Mapping[str, Ints]) -> None:
    """Optimise some elements of the local variables in turn, given all of their rows."""
    rows = ChosenElements(network, elements)
    rho = StepRule.unit(rows)
    for name in network.locals:
        for change in PlainUpdater.of(network, name).update(q, rows, rho):
            check_domain(network.hidden[name], change.elements, change.natural)
            network.move(q, name, change.elements, change.natural)
