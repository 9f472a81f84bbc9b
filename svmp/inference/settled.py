"""Local Categoricals that are not stored: which there are, and the messages that they leave.

Between two iterations such a variable has the best q for the others. Within one, the others read
the tally that was taken at its turn, as they would read a stored q.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from svmp.families.family import Array
from svmp.inference.grouped import DrawnGroups
from svmp.inference.guard import check_domain
from svmp.inference.posterior import Posterior, Posteriors
from svmp.inference.rows import AllRows, Draw, DrawnBatch, Sampled
from svmp.inference.selection import Batch, FullVB, Growing, Selection
from svmp.kernels.categorical.mixture_plan import Mixtures
from svmp.kernels.categorical.topics_plan import Topics
from svmp.network.beliefs import Beliefs, Settled, Tally
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network

if TYPE_CHECKING:
    from svmp.inference.engine import Rule
    from svmp.inference.messages import Pass


def find_settled(network: Network, method: Selection, init: Any = None) -> dict[str, Settled]:
    """Return the local variables that need not be stored under an algorithm.

    Where every element draws rows of its own, rows meet variables at different times, and q of
    each is kept; so is one that starts at values of the user's.
    """
    given = init if isinstance(init, Mapping) and not isinstance(init, Posteriors) else {}
    if not isinstance(method, FullVB | Growing | Batch):
        return {}
    found: dict[str, Settled] = {}
    for name in network.hidden:
        plan = Topics.of(network, name) or Mixtures.of(network, name)
        whole = name in network.locals or isinstance(method, FullVB)  # its rows come as one
        follows = isinstance(given.get(name), Posterior | None)
        if plan is not None and whole and follows:
            found[name] = plan
    over = getattr(method, "over", None)
    if over is None:
        return found
    divided = all(
        isinstance(p, Topics) and p.divides(network.grouped(over)) for p in found.values()
    )
    return found if divided else {}


def take_turn(network: Network, q: Beliefs, draw: Draw, name: str) -> int:
    """Let a settled variable follow the others; return how many rows it reads."""
    q.settle(name)
    if isinstance(draw, DrawnGroups):  # it came first, with its group
        return 0
    drawn = draw.pairs if isinstance(draw, Sampled | DrawnBatch) else None
    edges = network.edges[name]
    return sum(int((e.children if drawn is None else drawn.children(e)).sum()) for e in edges)


def tally_of(q: Beliefs, draw: Draw, local: str) -> Any:
    """Return the tally of the rows drawn."""
    key = None if isinstance(draw, AllRows) else draw
    return q.tally(local, key, lambda: draw.drawn_rows(local))


def settled_update(
    network: Network, q: Beliefs, draw: Draw, rule: Rule, name: str, at_once: bool, done: Pass
) -> list[tuple[Ints, Array]] | None:
    """Update all topics at once, as `fused_update` does; None for any other variable."""
    local = network.settling(q, network.edges[name][0].conditional.variable.name)
    plan = None if local is None else q.settled[local]
    if not isinstance(plan, Topics) or not plan.serves(network, name):
        return None
    elements = plan.topics
    rho = rule(name, elements, read := draw.read(name, elements))
    tally, scale = tally_of(q, draw, str(local)), draw.scale(name, elements)
    prior = np.array(network.prior(q, name, elements))
    steps = np.broadcast_to(rho, len(elements)).copy()
    natural = plan.update(q, tally, prior, steps, scale, at_once)
    done.note(False, rho, read)
    done.accesses += plan.reads(tally, network.edges[name][0], elements)
    if not at_once:
        return [(elements, natural[elements])]
    q.went_stale()
    check_domain(network.hidden[name], np.arange(len(natural)), natural)
    return []


def settled_message(
    q: Beliefs, draw: Draw, local: str, edge: Edge, elements: Ints
) -> tuple[Array, int]:
    """Return the scaled sum of the messages of the rows drawn, and how many they are."""
    tally, plan = tally_of(q, draw, local), q.settled[local]
    message = plan.message(q, tally, edge, elements)
    scale = draw.scale(edge.parent.name, elements)
    return message * scale[:, None], plan.reads(tally, edge, elements)


def settle_documents(
    network: Network, q: Beliefs, draw: DrawnGroups, rest: float, most: int
) -> int:
    """Bring the drawn documents to rest, from where they are; return how many rows were read."""
    read = 0
    for local, plan in q.settled.items():
        assert isinstance(plan, Topics)
        weights = plan.weights
        if weights is not None and weights.name in draw.grouping.group:
            documents = draw.grouping.rows(weights.name, draw.drawn)
            prior = network.prior(q, weights.name, documents)
            natural, counts, rows = plan.settle(q, documents, prior, rest, most)
            network.move(q, weights.name, documents, natural)
            q.tallies[local] = Tally(draw, counts)
            read += rows
    return read
