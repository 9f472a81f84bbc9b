"""What is computed where the parts are: pure functions of a context, of q and of some parts.

The same functions run here and on other machines. A task covers a group of parts: it adds their
sums in the order of the parts, and returns one total.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from svmp.families.family import Array
from svmp.inference.updaters.updater import LineAdder
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.variable import Variable
from svmp.parts.cache import loaded
from svmp.parts.context import (
    Context,
    Declare,
    Job,
    Own,
    SharedQ,
    Unit,
    Visited,
    declared,
)
from svmp.parts.description import PartDims
from svmp.parts.held_out import HeldOutSummary, ValuesOf, held_out_variables
from svmp.parts.part import Part
from svmp.parts.schedule import Asked, Visit
from svmp.parts.solution import Solution
from svmp.parts.sources import Source
from svmp.parts.tree import added_up, single_nodes, whole_size

BLOCK = 1 << 22
"""Bytes of a block of lines of a total, to which one part after the other adds."""


def describe_parts(
    declare: Declare, source: Source, numbers: Sequence[int]
) -> list[PartDims | None]:
    """Describe parts before anything else is known about them; None for parts without rows."""
    found: list[PartDims | None] = []
    for number in numbers:
        model = declared(declare, source, number)
        found.append(None if model is None else PartDims.of(source.name(number), model))
    return found


def start_parts(
    context: Context,
    shared: SharedQ,
    job: Job,
    seed: int,
    sizes: Mapping[int, Mapping[str, int]],
) -> dict[Unit, Own]:
    """Return a start of the own variables of parts, given their numbers of elements."""
    return {
        unit: part.start(shared, [(whole_number(seed, n), sizes[n]) for n in unit])
        for unit, part in loaded(context, job)
    }


def whole_number(*numbers: int) -> int:
    """Return a seed for several numbers together."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def seed_from_part(
    context: Context, shared: SharedQ, job: Job, seed: int, init: Mapping[str, Any]
) -> dict[str, Array]:
    """Return a start of the shared variables of one part that has seen some of its rows."""
    return {
        name: natural
        for _, part in loaded(context, job)
        for name, natural in part.seeded(seed, init).items()
    }


def visit_parts(
    context: Context,
    shared: SharedQ,
    job: Job,
    visit: Visit,
    before: SharedQ | None = None,
    count: bool = False,
) -> Visited:
    """Update the own variables of parts, and add up their sums for the shared variables.

    Parameters
    ----------
    context, shared, job
        How to load parts, q of the shared variables, and the parts.
    visit
        What to update and to return.
    before
        q of the shared variables at the beginning of the sweep, for late visits.
    count
        Whether to count the children of the shared variables that are asked for.
    """
    totals = [empty(asked, shared) for asked in visit.asked]
    found = Visited(totals, no_children(visit, shared) if count else {}, {}, 0, {})
    for unit, part in loaded(context, job):
        q, read = part.update(shared, part.own_q(shared, job, unit), visit, before)
        for asked, total in zip(visit.asked, totals, strict=True):
            part.add_sums(q, asked, total)
        if visit.measures:
            found.terms[unit] = part.terms(q)
        found = noted(found, part, unit, q, read, job.own is not None and visit.changes_own)
    return found


def visit_resident(
    context: Context,
    shared: SharedQ,
    jobs: Sequence[Job],
    visit: Visit,
    before: SharedQ | None = None,
    count: bool = False,
    *,
    solution: Solution | None = None,
) -> Visited:
    """Visit parts that are all in memory, to the same bits as `visit_parts` job by job.

    Totals can be larger than the caches of the processor, and every part adds to all of them. So
    the lines of totals are taken in blocks: all parts add to one block before the next, and where a
    solution is given, it takes the block at once; that total is then empty. One part with all rows
    needs no sums for a solution.
    """
    totals = [empty(asked, shared) for asked in visit.asked]
    found = Visited(totals, no_children(visit, shared) if count else {}, {}, 0, {})
    units: list[Unit] = []
    groups: list[list[tuple[Part, Beliefs]]] = []
    for job in jobs:
        groups.append([])
        for unit, part in loaded(context, job):
            q, read = part.update(shared, part.own_q(shared, job, unit), visit, before)
            groups[-1].append((part, q))
            units.append(unit)
            found = noted(found, part, unit, q, read, job.own is not None and visit.changes_own)
    for number, asked in enumerate(visit.asked if groups else ()):
        if solution is not None and solution.number == number and is_single(jobs):
            part, q = groups[0][0]
            target = part.solve(q, asked, solution.prior, visit.measures)
            if target is not None:
                solution.target[asked.names[0]] = target
                totals[number] = totals[number][:0]
                continue
        adders = [[part.line_adder(q, asked) for part, q in group] for group in groups]
        if all(add is not None for group in adders for add in group):
            blocks = sums_by_lines(adders, *totals[number].shape)  # type: ignore[arg-type]
            if solution is not None and solution.number == number:
                totals[number] = totals[number][:0]
                for lines, sums in blocks:
                    solution.take(lines, sums)
            for lines, sums in blocks:
                totals[number][lines] = sums
            continue
        totals[number] = added_up(
            (summed(group, asked, shared) for group in groups), single_nodes(len(groups)), plus
        )
    if visit.measures:
        every = (each for group in groups for each in group)
        for unit, (part, q) in zip(units, every, strict=True):
            found.terms[unit] = part.terms(q)
    return found


def is_single(jobs: Sequence[Job]) -> bool:
    """Whether all parts of a visit are one, or were put together into one."""
    return [len(job.units) for job in jobs] == [1]


def visit_single(
    context: Context,
    shared: SharedQ,
    job: Job,
    solution: Solution,
    visit: Visit,
    before: SharedQ | None,
    count: bool,
) -> Visited:
    """Visit all parts as one; the solution comes back beside the other results."""
    target = {name: np.empty_like(natural) for name, natural in solution.natural.items()}
    mine = replace(solution, target=target)
    found = visit_resident(context, shared, [job], visit, before, count, solution=mine)
    if len(found.totals[mine.number]):
        return found
    return found._replace(target=mine.target, gains=mine.gains)


def summed(group: Sequence[tuple[Part, Beliefs]], asked: Asked, shared: SharedQ) -> Array:
    """Return the sums of the parts of a group."""
    total = empty(asked, shared)
    for part, q in group:
        part.add_sums(q, asked, total)
    return total


def plus(one: Array, other: Array) -> Array:
    """Add an array to another, in place."""
    one += other
    return one


def plus_visited(one: Visited, other: Visited) -> Visited:
    """Add the result of a visit to another, in place."""
    for mine, sums in zip(one.totals, other.totals, strict=True):
        mine += sums
    for name, children in other.children.items():
        one.children[name][:] += children
    own, terms, accesses = one.own | other.own, one.terms | other.terms, one.accesses
    return one._replace(own=own, terms=terms, accesses=accesses + other.accesses)


def sums_by_lines(
    adders: Sequence[Sequence[LineAdder]],
    lines: int,
    numbers: int,
    nodes: Sequence[range] | None = None,
) -> Iterator[tuple[slice, Array]]:
    """Yield the sums of groups of parts, some lines at a time; the array is used again.

    With `nodes` the sums are those of these nodes of the tree.
    """
    nodes = single_nodes(len(adders)) if nodes is None else nodes
    size = max(1, BLOCK // (8 * numbers))
    levels = whole_size(nodes[-1].stop).bit_length()  # so many totals wait to be added
    spare = [np.empty((min(size, lines), numbers)) for _ in range(levels)]
    for first in range(0, lines, size):
        some = slice(first, min(first + size, lines))
        free = [block[: some.stop - first] for block in spare]

        def summed_lines(
            group: Sequence[LineAdder], free: list[Array] = free, some: slice = some
        ) -> Array:
            mine = free.pop()
            mine[:] = 0
            for add in group:
                add(mine, some, some.start)
            return mine

        def plus_lines(one: Array, other: Array, free: list[Array] = free) -> Array:
            free.append(other)
            return plus(one, other)

        yield some, added_up(map(summed_lines, adders), nodes, plus_lines)


def empty(asked: Asked, shared: SharedQ) -> Array:
    """Return sums of no rows."""
    sizes = {
        name: len(shared.natural[name]) if asked.elements is None else len(asked.elements)
        for name in asked.names
    }
    return asked.solver.empty(sizes)


def no_children(visit: Visit, shared: SharedQ) -> dict[str, Ints]:
    """Return counts of 0 for all elements that are asked for."""
    names = dict.fromkeys(name for asked in visit.asked for name in asked.names)
    return {name: np.zeros(len(shared.natural[name]), dtype=np.int64) for name in names}


def noted(found: Visited, part: Part, unit: Unit, q: Beliefs, read: int, kept: bool) -> Visited:
    """Add what was found in one part, but for its sums."""
    for name, total in found.children.items():
        places, counts = part.places[name], part.network.child_counts[name]
        total[slice(None) if places is None else places] += counts
    if kept:
        found.own[unit] = part.own_of(q)
    return found._replace(accesses=found.accesses + read)


def bound_parts(context: Context, shared: SharedQ, job: Job) -> dict[Unit, dict[str, float]]:
    """Return the terms of each part in the bound."""
    return {
        unit: part.terms(part.beliefs(shared, part.own_q(shared, job, unit)))
        for unit, part in loaded(context, job)
    }


def summarise_held_out(
    context: Context, shared: SharedQ, job: Job, values_of: ValuesOf
) -> list[HeldOutSummary]:
    """Describe the held-out values of parts, before these are loaded for the fit."""
    found = []
    for (number,) in job.units:
        declaration = context.declared(number)
        if declaration is not None:
            model, rows = declaration
            held = held_out_variables(values_of, rows, model, context.source.name(number))
            network = Network(model, elsewhere=context.sharing.shared)
            found.append(HeldOutSummary.of(network, held))
    return found


def score_parts(context: Context, shared: SharedQ, job: Job) -> dict[Unit, float]:
    """Return what the held-out rows of each part would add to the bound."""
    return {
        unit: part.held_out_total(shared, part.own_q(shared, job, unit))
        for unit, part in loaded(context, job)
    }


def finish_parts(context: Context, shared: SharedQ, job: Job) -> dict[Unit, Own]:
    """Set own elements without observed descendants to their prior."""
    return {
        unit: part.finish(shared, part.own_q(shared, job, unit))
        for unit, part in loaded(context, job)
    }


def implicit_of_parts(context: Context, shared: SharedQ, job: Job, name: str) -> dict[Unit, Array]:
    """Return the natural parameters of an own variable that is not stored."""
    return {
        unit: part.implicit(shared, part.own_q(shared, job, unit), name)
        for unit, part in loaded(context, job)
    }


def chains_of_parts(
    context: Context, shared: SharedQ, job: Job, name: str
) -> dict[Unit, tuple[Variable, Beliefs]]:
    """Return an own chain of each part, and q of its rows alone."""
    return {
        unit: part.chain(shared, part.own_q(shared, job, unit), name)
        for unit, part in loaded(context, job)
    }
