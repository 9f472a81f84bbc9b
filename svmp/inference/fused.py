"""Hand a whole variable to the compiled loops, where they serve it: the same update, fused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from svmp.families.family import Array
from svmp.inference.grouped import DrawnGroups
from svmp.inference.guard import check_domain
from svmp.inference.rows import AllRows, Draw, DrawnBatch, DrawnChildren, Sampled
from svmp.inference.settled import settled_update
from svmp.kernels.machine.streams import sample_each
from svmp.kernels.multilinear.prior import Prior
from svmp.kernels.multilinear.updater import Plan
from svmp.kernels.multilinear.work import Drawn, Work
from svmp.kernels.vectors.updater import VectorPlan
from svmp.network.beliefs import Beliefs, Loop
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.slot import Single

if TYPE_CHECKING:
    from svmp.inference.engine import Rule
    from svmp.inference.messages import Pass

ONE = np.ones(1)


def find_loops(network: Network) -> dict[str, Loop]:
    """Return the loops of the tables that they serve; the network keeps them."""
    if not network.loops:
        for variable in (*network.hidden.values(), *network.observed.values()):
            table = variable.conditional, network.present[variable.name]
            loop = Plan.of(*table) or VectorPlan.of(*table) or Prior.of(*table)
            if loop is not None:
                network.loops[variable.name] = loop
    return network.loops


def fused_update(
    network: Network,
    q: Beliefs,
    draw: Draw,
    rule: Rule,
    name: str,
    joint: bool,
    at_once: bool,
    done: Pass,
) -> list[tuple[Ints, Array]] | None:
    """Return the updates that are left to make, or None where no loop serves the variable.

    None are left where a new value is seen at once: q has it already.
    """
    if getattr(rule.steps, "statistics", False):
        return None
    local = name in network.locals
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
    if local and not isinstance(draw, AllRows):  # only those of drawn rows move
        return None
    work, width = share_out(network, plan, name, draw), plan.operand(name).width
    variable, first = network.hidden[name], work.keys * width
    rho = rule(name, first, work.read, children=work.children)
    within = set(variable.plate.labels[-1:]) if width > 1 else set()
    if set(variable.conditional.kinds.grid.labels) <= within:  # the same for each key
        prior = variable.conditional.to_first(q, width)
    elif len(first) * width == variable.size:
        prior = variable.conditional.to_children(q)
    else:
        prior = network.prior(q, name, (first[:, None] + np.arange(width)).ravel())
    natural, sound = plan.update(q, name, work, prior, rho, at_once, joint and not local)
    done.note(False, rho, work.read)
    done.accesses += int(work.read.sum()) * width
    if at_once and sound:
        return []
    elements = (first[:, None] + np.arange(width)).ravel()
    if at_once:
        check_domain(variable, elements, natural[elements])
    return [(elements, natural[elements])]


def share_out(network: Network, plan: Plan, name: str, draw: Draw) -> Work:
    """Return the keys to update, with their rows."""
    column = plan.operand(name).column
    every = plan.all_rows(column)
    counts, keys = every.counts, every.keys
    table = plan.conditional.variable.name
    whole = isinstance(draw, Sampled | DrawnBatch) and table not in draw.tables
    if isinstance(draw, AllRows) or whole:
        return Work(every, keys, ONE, counts, counts)
    match draw:
        case Sampled():
            if (name, table) not in draw.memory:
                draw.memory[name, table] = plan.keyed(column, draw.tables[table])
            keyed = draw.memory[name, table]
            return Work(keyed, keys, ONE, keyed.counts, counts)
        case DrawnChildren():
            take = draw.most(name, counts)
            number = list(network.hidden).index(name)
            if not (draw.share_draw or isinstance(plan, VectorPlan)):
                drawn = Drawn(draw.seed, draw.iteration, number, take)
                return Work(every, keys, ONE, take, counts, drawn)
            scale = counts / np.maximum(take, 1)
            first = keys * plan.operand(name).width  # the element whose stream all of a key share
            chosen = sample_each(draw.seed, draw.iteration, number, first, counts, take)
            some = every.at(every.begin.repeat(take) + chosen, take)
            return Work(some, keys, scale, take, counts)
        case DrawnBatch():
            batch = plan.keyed(column, draw.tables[table])
            read = batch.counts
            keys = np.flatnonzero((read > 0) | (counts == 0))
            scale, read, counts = counts / np.maximum(read, 1), read[keys], counts[keys]
            return Work(batch, keys, scale[keys], read, counts)
    raise AssertionError(f"no loop for a {type(draw).__name__}")


def noise_message(q: Beliefs, draw: Draw, edge: Edge, elements: Ints) -> tuple[Array, int] | None:
    """Return what the rows drawn say about their precision, scaled, and how many are read.

    None where no loop serves it.
    """
    table, slot = edge.conditional.variable.name, edge.slot
    plan = q.loops.get(table)
    if not isinstance(plan, Plan) or not isinstance(slot, Single) or plan.noise is None:
        return None
    if isinstance(draw, DrawnChildren | DrawnGroups):
        return None
    rows = draw.drawn_rows(table)
    keyed = plan.all_rows(plan.noise) if rows is None else plan.keyed(plan.noise, rows)
    message, counts = plan.noise_messages(q, keyed), keyed.counts
    if not slot.varies:
        counts = counts.sum(keepdims=True)
    scale = np.ones(len(elements)) if rows is None else draw.scale(edge.parent.name, elements)
    return scale[:, None] * message[elements], int(counts[elements].sum())
