"""The parts of a fit as the coordinator sees them: what they count, and how they are asked.

Sums are added in a fixed order: part after part within a group, and groups in pairs (`tree.py`). So
bits do not depend on where or when a group is computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.variable import Variable
from svmp.parts import tasks
from svmp.parts.context import (
    Context,
    Declare,
    Job,
    Own,
    OwnElsewhere,
    SharedQ,
    Unit,
    Visited,
)
from svmp.parts.description import PartDims
from svmp.parts.schedule import Visit
from svmp.parts.solution import Solution
from svmp.parts.sources import Source
from svmp.parts.tree import added_up, single_nodes

Result = TypeVar("Result")
MOST_LEFT = 8
"""Visits in a row that leave the q of own variables elsewhere. What is lost is computed again, from
the first of them on."""


class Executor(ABC):
    """Runs tasks where the parts are."""

    @abstractmethod
    def run(
        self,
        task: Callable[..., Result],
        context: Context,
        shared: SharedQ,
        jobs: Sequence[Job],
        *arguments: Any,
        own: OwnElsewhere | None = None,
    ) -> Iterator[Result]:
        """Yield `task(context, shared, job, *arguments)` of each job, in their order.

        `own` is the q of own variables that an earlier visit has left elsewhere.
        """

    @abstractmethod
    def describe(
        self, declare: Declare, source: Source, groups: Sequence[tuple[int, ...]]
    ) -> list[PartDims | None]:
        """Return the descriptions of all parts, in their order."""

    def visit(
        self,
        context: Context,
        shared: SharedQ,
        jobs: Sequence[Job],
        *arguments: Any,
        solution: Solution | None = None,
        own: OwnElsewhere | None = None,
    ) -> Visited:
        """Visit parts, and add up the totals of the jobs in the order of `tree.py`.

        An executor may pass sums to `solution` as soon as it has them; the total that `solution` is
        computed from is then empty. It may leave the new q of own variables where it is.
        """
        if not jobs:
            return tasks.visit_resident(context, shared, jobs, *arguments)
        results = self.run(tasks.visit_parts, context, shared, jobs, *arguments, own=own)
        return added_up(results, single_nodes(len(jobs)), tasks.plus_visited)

    @property
    def note(self) -> str:
        """How far the tasks are, for the progress line; "" if there is nothing to say."""
        return ""

    @property
    def places(self) -> int:
        """Number of processes that run tasks at the same time, as far as it is known."""
        return 1

    def close(self) -> None:  # noqa: B027
        """Release what tasks left behind; here `Parts.close` releases the parts."""


class Local(Executor):
    """Runs tasks in this process, one after the other."""

    def run(
        self,
        task: Callable[..., Result],
        context: Context,
        shared: SharedQ,
        jobs: Sequence[Job],
        *arguments: Any,
        own: OwnElsewhere | None = None,
    ) -> Iterator[Result]:
        assert own is None
        for job in jobs:
            yield task(context, shared, job, *arguments)

    def describe(
        self, declare: Declare, source: Source, groups: Sequence[tuple[int, ...]]
    ) -> list[PartDims | None]:
        return [part for group in groups for part in tasks.describe_parts(declare, source, group)]

    def visit(
        self,
        context: Context,
        shared: SharedQ,
        jobs: Sequence[Job],
        *arguments: Any,
        solution: Solution | None = None,
        own: OwnElsewhere | None = None,
    ) -> Visited:
        if sum(len(job.units) for job in jobs) <= context.resident:
            return tasks.visit_resident(context, shared, jobs, *arguments, solution=solution)
        return super().visit(context, shared, jobs, *arguments)


@dataclass(eq=False)
class OwnPlace:
    """Where the newest q of the own variables is.

    Attributes
    ----------
    q
        The q whose own variables are elsewhere.
    there
        Where they are; None if they are here.
    """

    q: Beliefs | None = None
    there: OwnElsewhere | None = None

    def set(self, q: Beliefs, there: OwnElsewhere | None) -> None:
        """Note where the q of own variables is now."""
        before, self.q, self.there = self.there, q, there
        if before is not None:
            before.release()

    def of(self, q: Beliefs) -> OwnElsewhere | None:
        """Return where the own variables of some q are; None if they are here."""
        return self.there if q is self.q else None


@dataclass(eq=False)
class KnownTerms:
    """Terms of own and observed variables in the bound, as the last visit of a sweep found them.

    Attributes
    ----------
    q, version
        The q of which they are, and its version.
    terms
        The terms by variable.
    """

    q: Beliefs | None = None
    version: int = -1
    terms: dict[str, float] = field(default_factory=dict)

    def set(self, q: Beliefs, terms: dict[str, float]) -> None:
        """Note the terms of the present q."""
        self.q, self.version, self.terms = q, q.version, terms

    def of(self, q: Beliefs) -> dict[str, float] | None:
        """Return the terms of some q; None if they are not known."""
        return dict(self.terms) if q is self.q and q.version == self.version else None


@dataclass(frozen=True, eq=False)
class Workspace:
    """The parts of a fit, and the executor that processes them.

    Attributes
    ----------
    context, executor
        How to load parts, and where.
    sizes
        Number of observed rows of each part.
    shapes
        By part that has rows, the shape of the plate of each own variable.
    stored
        The own variables whose q is kept.
    groups
        Group of each part: its sums are added up before those of different groups are.
    merged
        Groups whose parts are put together into one where all of them are visited.
    follow
        Whether some own variable has hidden parents: its elements without observed descendants are
        then set to their prior at the end.
    leaves
        Whether the q of own variables may stay where it was computed: no copies of q are kept here.
    place, known
        Where the q of own variables is, and the terms of the bound that the last visit has found.
    axes
        By own variable whose elements follow each other along another axis than the first, that
        axis.
    """

    context: Context
    executor: Executor
    sizes: Ints
    shapes: dict[int, dict[str, tuple[int, ...]]]
    stored: tuple[str, ...]
    groups: Ints
    merged: frozenset[Unit] = frozenset()
    follow: bool = True
    leaves: bool = False
    place: OwnPlace = field(default_factory=OwnPlace)
    known: KnownTerms = field(default_factory=KnownTerms)
    axes: Mapping[str, int] = field(default_factory=dict)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the parts that have rows."""
        return list(self.shapes)

    def ends_sweep(self, iteration: int) -> bool:
        """Return whether a sweep ends with an iteration, if each visits one part."""
        return iteration % len(self.shapes) == 0

    @property
    def any_name(self) -> str:
        """A variable in whose name rows are counted."""
        sharing = self.context.sharing
        return (*sharing.own, *sharing.shared)[0]

    def element_counts(self) -> dict[int, dict[str, int]]:
        """Return by part the number of elements of each own variable."""
        return {
            number: {n: int(np.prod(shape, dtype=np.int64)) for n, shape in shapes.items()}
            for number, shapes in self.shapes.items()
        }

    def places(self, name: str) -> Callable[[Unit], slice | Ints]:
        """Return a function from parts to where their elements are among those of all parts.

        Parts that are put together follow each other along the first axis.
        """
        shapes = {number: every[name] for number, every in self.shapes.items()}
        if name in self.axes:
            axis, (first, *_) = self.axes[name], shapes.values()
            lengths = [shape[axis] for shape in shapes.values()]
            whole = (*first[:axis], sum(lengths), *first[axis + 1 :])
            grid = np.arange(np.prod(whole)).reshape(whole)
            cuts = np.split(grid, np.cumsum(lengths)[:-1], axis)
            found = {n: some.ravel() for n, some in zip(shapes, cuts, strict=True)}
            return lambda unit: found[unit[0]]
        ends = np.cumsum([np.prod(shape, dtype=np.int64) for shape in shapes.values()]).tolist()
        begin = dict(zip(shapes, [0, *ends[:-1]], strict=True))
        end = dict(zip(shapes, ends, strict=True))
        return lambda unit: slice(begin[unit[0]], end[unit[-1]])

    def shared_q(self, q: Beliefs) -> SharedQ:
        """Return q of the shared variables."""
        names = self.context.sharing.shared
        return SharedQ({n: q.natural[n] for n in names}, {n: q.moments[n] for n in names})

    def jobs(self, q: Beliefs | None, parts: Ints) -> list[Job]:
        """Return the visits of some parts, a job for each group, with q of their own variables."""
        some = [int(p) for p in parts if int(p) in self.shapes]
        where = {name: self.places(name) for name in self.stored} if q is not None else {}
        jobs: list[Job] = []
        for group in dict.fromkeys(int(self.groups[p]) for p in some):
            numbers = tuple(p for p in some if self.groups[p] == group)
            units = (numbers,) if numbers in self.merged else tuple((p,) for p in numbers)
            own = None
            if q is not None and self.context.keeps:
                own = {
                    unit: {name: q.natural[name][at(unit)] for name, at in where.items()}
                    for unit in units
                }
            jobs.append(Job(units, None, own))
        after = [job.units[0] for job in (*jobs[1:], *jobs[:1])]
        return [job._replace(then=then) for job, then in zip(jobs, after, strict=True)]

    def run(
        self, task: Callable[..., Result], q: Beliefs, jobs: Sequence[Job], *arguments: Any
    ) -> Iterator[Result]:
        """Run a task on some parts, a result for each job."""
        return self.executor.run(task, self.context, self.shared_q(q), jobs, *arguments)

    def run_all(self, task: Callable[..., Result], q: Beliefs) -> Iterator[Result]:
        """Run a task on all parts, where the q of their own variables is."""
        own, everything = self.place.of(q), np.arange(len(self.sizes))
        jobs = self.jobs(q if own is None else None, everything)
        return self.executor.run(task, self.context, self.shared_q(q), jobs, own=own)

    def visit(
        self,
        q: Beliefs,
        parts: Ints,
        visit: Visit,
        before: SharedQ | None = None,
        count: bool = False,
        solution: Solution | None = None,
    ) -> Visited:
        """Visit parts; return the totals of what they were asked for, and keep their new q."""
        whole = len(np.unique(parts)) == len(self.sizes)
        own = self.place.of(q)
        if own is not None and not whole:
            self.collect(q)
            own = None
        elif own is not None and own.depth >= MOST_LEFT and visit.changes_own:
            self._fetch(q, own)
            own.begin_from(self.jobs(q, parts))
        jobs = self.jobs(q if own is None else None, parts)
        found = self.executor.visit(
            self.context, self.shared_q(q), jobs, visit, before, count, solution=solution, own=own
        )
        if found.left is not None:
            self.place.set(q, found.left)
            q.version += 1
            if not (whole and self.leaves):
                self.collect(q)
        elif visit.changes_own:
            self.keep(q, found.own)
        return found

    def collect(self, q: Beliefs) -> None:
        """Bring the q of own variables here, if it is elsewhere."""
        own = self.place.of(q)
        if own is not None:
            self._fetch(q, own)
            self.place.set(q, None)  # what was lost later could not be computed from the new q

    def _fetch(self, q: Beliefs, own: OwnElsewhere) -> None:
        """Write the q of own variables that is elsewhere to the q of all parts."""
        for found in own.fetch():
            self.keep(q, found)

    def keep(self, q: Beliefs, own: Mapping[Unit, Own]) -> None:
        """Write the q of own variables to the q of all parts."""
        for name in self.stored:
            at = self.places(name)
            for unit, arrays in own.items():
                if not np.shares_memory(q.natural[name], arrays[name]):
                    q.natural[name][at(unit)] = arrays[name]
        q.version += 1

    def bound(self, q: Beliefs) -> dict[str, float]:
        """Return the terms of own and observed variables in the bound, added in part order.

        Parts are visited for it, unless the last visit of the sweep has found these terms.
        """
        known = self.known.of(q)
        if known is not None:
            return known
        return terms_of_all(p for f in self.run_all(tasks.bound_parts, q) for p in f.values())

    def held_out_totals(self, q: Beliefs) -> Iterator[float]:
        """Yield what held-out rows would add to the bound, in part order."""
        for found in self.run_all(tasks.score_parts, q):
            yield from found.values()

    def finish(self, q: Beliefs) -> None:
        """Set own elements without observed descendants to the prior given their parents' q."""
        self.collect(q)
        if self.stored and self.follow:
            for found in self.run_all(tasks.finish_parts, q):
                self.keep(q, found)

    def chain_parts(self, q: Beliefs, name: str) -> list[tuple[Variable, Beliefs]]:
        """Return an own chain and its q in each part."""
        self.collect(q)
        jobs = self.jobs(q, np.arange(len(self.sizes)))
        found = self.run(tasks.chains_of_parts, q, jobs, name)
        return [chain for chains in found for chain in chains.values()]

    def implicit(self, q: Beliefs, name: str) -> Array:
        """Return the natural parameters of an own variable that is not stored, of all parts."""
        self.collect(q)
        jobs = self.jobs(q, np.arange(len(self.sizes)))
        every = {
            unit: array
            for found in self.run(tasks.implicit_of_parts, q, jobs, name)
            for unit, array in found.items()
        }
        natural, at = np.concatenate(list(every.values())), self.places(name)
        if name in self.axes:
            natural[np.concatenate([np.asarray(at(unit)) for unit in every])] = natural.copy()
        return natural


def terms_of_all(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the terms of all parts together, added in their order."""
    terms: dict[str, float] = {}
    for part in parts:
        for name, term in part.items():
            terms[name] = terms.get(name, 0.0) + term
    return terms
