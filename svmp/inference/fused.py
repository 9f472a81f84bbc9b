"""Hand a whole variable to the compiled loops, where they serve it: the same update, fused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from svmp.families.family import Array
from svmp.inference.draws import sample_each
from svmp.inference.grouped import DrawnGroups
from svmp.inference.rows import AllRows, Draw, DrawnBatch, DrawnChildren, Sampled
from svmp.inference.settled import settled_update
from svmp.kernels.plan import Drawn, Plan, Shared, Work, by_key
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints, ragged
from svmp.network.network import Network

if TYPE_CHECKING:
    from svmp.inference.engine import Pass, Rule


def find_loops(network: Network) -> dict[str, Plan]:
    """Return the plans of the tables that the loops serve."""
    variables = (*network.hidden.values(), *network.observed.values())
    plans = {v.name: Plan.of(v.conditional) for v in variables}
    return {name: plan for name, plan in plans.items() if plan is not None}


def fused_update(
    network: Network, q: Beliefs, draw: Draw, rule: Rule, name: str, at_once: bool, done: Pass
) -> tuple[Ints, Array] | None:
    """Return the elements and new natural parameters, or None where no loop serves the variable.

    Where a new value is seen at once, q has it already.
    """
    if getattr(rule.steps, "statistics", False):
        return None
    if q.settled and network.edges[name]:
        update = settled_update(network, q, draw, rule, name, at_once, done)
        if update is not None:
            return update
    if isinstance(draw, DrawnGroups):
        return None
    edges = network.edges[name]
    plan = q.loops.get(edges[0].conditional.variable.name) if len(edges) == 1 else None
    if not isinstance(plan, Plan) or edges[0].slot is not plan.linear:
        return None
    if name in network.locals and not isinstance(draw, AllRows):  # only those of drawn rows move
        return None
    work, read = share_out(network, plan, name, draw)
    width = plan.side(name).width
    elements = (work.keys[:, None] * width + np.arange(width)).ravel()
    rho = rule(name, work.keys * width, read)
    prior = np.ascontiguousarray(network.prior(q, name, elements))
    natural = plan.update(q, name, work, prior, np.ascontiguousarray(rho), at_once)
    done.note(False, rho, read)
    done.accesses += int(read.sum()) * width
    return elements, natural[elements]


def share_out(network: Network, plan: Plan, name: str, draw: Draw) -> tuple[Work, Ints]:
    """Return the keys to update with their rows, and how many rows each reads."""
    pointers, rows = plan.rows_by_key(name)
    counts = np.diff(pointers)
    keys = np.arange(len(counts))
    table = plan.conditional.variable.name
    whole = isinstance(draw, Sampled | DrawnBatch) and table not in draw.tables
    if isinstance(draw, AllRows) or whole:
        return Shared(keys, pointers, rows, np.ones(len(keys))), counts
    match draw:
        case Sampled():
            drawn = draw.tables[table]
            ends, sample = by_key(plan.side(name).key[drawn], drawn, len(keys))
            return Shared(keys, ends, sample, np.ones(len(keys))), np.diff(ends)
        case DrawnChildren():
            take = draw.most(name, counts)
            number = list(network.hidden).index(name)
            if not draw.share_draw:
                stream = (draw.seed, draw.iteration, number)
                return Drawn(*stream, keys, pointers, rows, take), take
            first = keys * plan.side(name).width  # the element whose stream all factors share
            chosen = sample_each(draw.seed, draw.iteration, number, first, counts, take)
            owner, _ = ragged(take, take)
            ends = np.concatenate([[0], np.cumsum(take)])
            scale = counts / np.maximum(take, 1)
            return Shared(keys, ends, rows[pointers[owner] + chosen], scale), take
        case DrawnBatch():
            drawn = draw.tables[table]
            every = plan.side(name).key[drawn]
            keys = np.union1d(every, np.flatnonzero(counts == 0))
            ends, batch = by_key(np.searchsorted(keys, every), drawn, len(keys))
            read = np.diff(ends)
            scale = counts[keys] / np.maximum(read, 1)
            return Shared(keys.astype(np.int64), ends, batch, scale), read
    raise AssertionError(f"no loop for a {type(draw).__name__}")
