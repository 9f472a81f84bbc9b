"""Local Categoricals that are not stored: which there are, and the messages that they leave.

Between two iterations such a variable has the best q for the others. Within one, the others read
the tally that was taken at its turn, as they would read a stored q.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from svmp.families.family import Array
from svmp.inference.rows import AllRows, Draw, DrawnBatch, Sampled
from svmp.inference.selection import Batch, FullVB, Growing, Selection
from svmp.kernels.topics_plan import Topics
from svmp.network.beliefs import Beliefs, Settled
from svmp.network.grid import Ints
from svmp.network.network import Edge, Network


def find_settled(
    network: Network, method: Selection, init: Container[str] = ()
) -> dict[str, Settled]:
    """Return the local variables that need not be stored under an algorithm.

    Where every element draws rows of its own, rows meet variables at different times, and q of
    each is kept; so is one for which there is a start.
    """
    if not isinstance(method, FullVB | Growing | Batch) or getattr(method, "over", None):
        return {}
    plans = {name: Topics.of(network, name) for name in network.hidden if name not in init}
    return {name: plan for name, plan in plans.items() if plan is not None}


def take_turn(network: Network, q: Beliefs, draw: Draw, name: str) -> int:
    """Let a settled variable follow the others; return how many rows it reads."""
    q.settle(name)
    return sum(int(drawn_children(draw, edge).sum()) for edge in network.edges[name])


def settled_message(q: Beliefs, draw: Draw, local: str, edge: Edge, elements: Ints) -> Array:
    """Return the scaled sum of the messages of the rows drawn, from their tally."""
    rows = draw.tables.get(local) if isinstance(draw, Sampled | DrawnBatch) else None
    tally = q.tally(local, None if rows is None else draw, rows)
    message = q.settled[local].message(q, tally, edge, elements)
    if isinstance(draw, DrawnBatch):
        message *= draw.scale(edge.parent.name, elements)[:, None]
    return message


def drawn_children(draw: Draw, edge: Edge) -> Ints:
    """Return how many of the rows drawn depend on each element."""
    if isinstance(draw, AllRows) or edge not in draw.pairs:  # type: ignore[attr-defined]
        return edge.children
    return np.asarray(draw.pairs.children(edge))  # type: ignore[attr-defined]
