"""One iteration of variational message passing over a network.

For each hidden x_i, with rows_i those that the algorithm selects among its children,

    lambda_i <- eta_i + sum over e in rows_i of eta_(e -> i),

the paper's equation (5): a step of unit length along the natural gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from svmp.errors import ImproperError, ModelError
from svmp.families.family import Array
from svmp.inference.selection import Selection
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.variable import Variable


def iterate(network: Network, q: Beliefs, selection: Selection) -> int:
    """Update every hidden variable once, in place; return how many rows were accessed."""
    accesses = 0
    for name in update_order(network, selection.order):
        for elements in network.groups[name]:
            natural = np.array(network.prior(q, name, elements))
            for edge in network.edges[name]:
                owner, rows = selection.rows(edge, elements)
                natural += edge.message(q, elements, owner, rows)
                accesses += len(rows)
            check_domain(network.hidden[name], elements, natural)
            network.move(q, name, elements, natural)
    return accesses


def update_order(network: Network, order: Sequence[str] | None) -> list[str]:
    """Return the names of the hidden variables; by default first those that are nearest the rows.

    Choices among components come before the components, which would else forget how they differ.
    """
    if order is None:
        choosing = [name for name, edges in network.edges.items() if any(e.choosing for e in edges)]
        first = dict.fromkeys([*network.locals, *choosing])
        return [*first, *(name for name in network.hidden if name not in first)]
    if sorted(order) != sorted(network.hidden):
        raise ModelError(
            f"order names {sorted(order)}, but the hidden variables are {sorted(network.hidden)}"
        )
    return list(order)


def check_domain(variable: Variable, elements: Ints, natural: Array) -> None:
    """Refuse a natural parameter outside its domain, by variable and index."""
    sound = variable.family.at(elements).in_domain(natural)
    if not sound.all():
        position = int(np.flatnonzero(~sound)[0])
        where = variable.plate.locate(int(elements[position]))
        raise ImproperError(
            f"the natural parameter of '{variable.name}' at {where} left the domain of a "
            f"{type(variable.family).__name__}: {natural[position]}"
        )
