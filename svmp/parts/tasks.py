"""What is computed where the parts are: pure functions of a context, of q and of some parts.

The same functions run here and on other machines. A task covers a group of parts: it adds their
sums in the order of the parts, and returns one total.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from svmp.families.family import Array
from svmp.network.grid import Ints
from svmp.parts.cache import loaded
from svmp.parts.context import (
    Context,
    Declare,
    Job,
    Own,
    SharedQ,
    Visited,
    declared,
)
from svmp.parts.schedule import Visit
from svmp.parts.sharing import PartDims
from svmp.parts.sources import Source


def describe_parts(
    declare: Declare, source: Source, numbers: Sequence[int]
) -> list[PartDims | None]:
    """Describe parts before anything else is known about them; None for parts without rows."""
    found: list[PartDims | None] = []
    for number in numbers:
        model = declared(declare, source, number)
        found.append(None if model is None else PartDims.of(source.name(number), model))
    return found


def start_parts(context: Context, shared: SharedQ, job: Job, seed: int) -> dict[int, Own]:
    """Return a start of the own variables of parts."""
    return {
        number: part.start(shared, whole_number(seed, number))
        for number, part in loaded(context, job)
    }


def whole_number(*numbers: int) -> int:
    """Return a seed for several numbers together."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def seed_from_part(context: Context, shared: SharedQ, job: Job, seed: int) -> dict[str, Array]:
    """Return a start of the shared variables of one part that has seen some of its rows."""
    return {
        name: natural
        for _, part in loaded(context, job)
        for name, natural in part.seeded(shared, seed).items()
    }


def visit_parts(
    context: Context,
    shared: SharedQ,
    job: Job,
    visit: Visit,
    before: SharedQ | None = None,
    count: bool = False,
) -> Visited:
    """Update the own variables of parts, and add up their sums for the shared variables."""
    sizes = {name: len(natural) for name, natural in shared.natural.items()}
    totals = [
        asked.solver.empty(
            {n: sizes[n] if asked.elements is None else len(asked.elements) for n in asked.names}
        )
        for asked in visit.asked
    ]
    names = {name for asked in visit.asked for name in asked.names} if count else set()
    children: dict[str, Ints] = {n: np.zeros(sizes[n], dtype=np.int64) for n in sorted(names)}
    own: dict[int, Own] = {}
    accesses = 0
    for number, part in loaded(context, job):
        mine = part.own_q(shared, job, number)
        own[number], read = part.visit(shared, mine, visit, totals, before)
        accesses += read
        for name, total in children.items():
            places, counts = part.places[name], part.network.child_counts[name]
            total[slice(None) if places is None else places] += counts
    return Visited(totals, children, own if job.own is not None else {}, accesses)


def bound_parts(context: Context, shared: SharedQ, job: Job) -> dict[int, dict[str, float]]:
    """Return the terms of each part in the bound."""
    return {
        number: part.bound(shared, part.own_q(shared, job, number))
        for number, part in loaded(context, job)
    }


def finish_parts(context: Context, shared: SharedQ, job: Job) -> dict[int, Own]:
    """Set own elements without observed descendants to their prior."""
    return {
        number: part.finish(shared, part.own_q(shared, job, number))
        for number, part in loaded(context, job)
    }


def implicit_of_parts(context: Context, shared: SharedQ, job: Job, name: str) -> dict[int, Array]:
    """Return the natural parameters of an own variable that is not stored."""
    return {
        number: part.implicit(shared, part.own_q(shared, job, number), name)
        for number, part in loaded(context, job)
    }
