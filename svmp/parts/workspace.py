"""The parts of a fit as the coordinator sees them: what they count, and how they are asked.

Sums are added in a fixed order: within a group of parts where the group is, then group after group
here. So bits do not depend on where or when a group is computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.parts import tasks
from svmp.parts.context import Context, Declare, Job, Own, SharedQ, Unit, Visited
from svmp.parts.description import PartDims
from svmp.parts.schedule import Visit
from svmp.parts.solution import Solution
from svmp.parts.sources import Source

Result = TypeVar("Result")


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
    ) -> Iterator[Result]:
        """Yield `task(context, shared, job, *arguments)` of each job, in their order."""

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
    ) -> Visited:
        """Visit parts, and add up the totals of the jobs in their order.

        An executor may pass sums to `solution` as soon as it has them. The total that `solution` is
        computed from is then empty.
        """
        total: Visited | None = None
        for found in self.run(tasks.visit_parts, context, shared, jobs, *arguments):
            total = found if total is None else added(total, found)
        assert total is not None
        return total

    @property
    def note(self) -> str:
        """How far the tasks are, for the progress line; "" if there is nothing to say."""
        return ""

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
    ) -> Iterator[Result]:
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
    ) -> Visited:
        if sum(len(job.units) for job in jobs) <= context.resident:
            return tasks.visit_resident(context, shared, jobs, *arguments, solution=solution)
        return super().visit(context, shared, jobs, *arguments)


def added(total: Visited, more: Visited) -> Visited:
    """Add the result of another job to a total, in place."""
    for mine, sums in zip(total.totals, more.totals, strict=True):
        mine += sums
    for name, children in more.children.items():
        total.children[name][:] += children
    return total._replace(own=total.own | more.own, accesses=total.accesses + more.accesses)


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
    """

    context: Context
    executor: Executor
    sizes: Ints
    shapes: dict[int, dict[str, tuple[int, ...]]]
    stored: tuple[str, ...]
    groups: Ints
    merged: frozenset[Unit] = frozenset()
    follow: bool = True

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

    def slices(self, name: str) -> dict[int, slice]:
        """Return by part where its elements are among those of all parts."""
        found, begin = {}, 0
        for number, shapes in self.shapes.items():
            end = begin + int(np.prod(shapes[name], dtype=np.int64))
            found[number] = slice(begin, end)
            begin = end
        return found

    def shared_q(self, q: Beliefs) -> SharedQ:
        """Return q of the shared variables."""
        names = self.context.sharing.shared
        return SharedQ({n: q.natural[n] for n in names}, {n: q.moments[n] for n in names})

    def jobs(self, q: Beliefs | None, parts: Ints) -> list[Job]:
        """Return the visits of some parts, a job for each group, with q of their own variables."""
        some = [int(p) for p in parts if int(p) in self.shapes]
        where = {name: self.slices(name) for name in self.stored} if q is not None else {}
        jobs: list[Job] = []
        for group in dict.fromkeys(int(self.groups[p]) for p in some):
            numbers = tuple(p for p in some if self.groups[p] == group)
            units = (numbers,) if numbers in self.merged else tuple((p,) for p in numbers)
            own = None
            if q is not None and self.context.keeps:
                own = {
                    unit: {
                        name: q.natural[name][at[unit[0]].start : at[unit[-1]].stop]
                        for name, at in where.items()
                    }
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

    def all_jobs(self, q: Beliefs) -> list[Job]:
        """Return a visit of all parts."""
        return self.jobs(q, np.arange(len(self.sizes)))

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
        jobs = self.jobs(q, parts)
        shared = self.shared_q(q)
        found = self.executor.visit(
            self.context, shared, jobs, visit, before, count, solution=solution
        )
        self.keep(q, found.own)
        return found

    def keep(self, q: Beliefs, own: Mapping[Unit, Own]) -> None:
        """Write the q of own variables to the q of all parts."""
        for name in self.stored:
            where = self.slices(name)
            for unit, arrays in own.items():
                if not np.shares_memory(q.natural[name], arrays[name]):
                    some = slice(where[unit[0]].start, where[unit[-1]].stop)
                    q.natural[name][some] = arrays[name]
        q.version += 1

    def bound(self, q: Beliefs) -> dict[str, float]:
        """Return the terms of own and observed variables in the bound, added in part order."""
        terms: dict[str, float] = {}
        for found in self.run(tasks.bound_parts, q, self.all_jobs(q)):
            for part in found.values():
                for name, term in part.items():
                    terms[name] = terms.get(name, 0.0) + term
        return terms

    def finish(self, q: Beliefs) -> None:
        """Set own elements without observed descendants to the prior given their parents' q."""
        if self.stored and self.follow:
            for found in self.run(tasks.finish_parts, q, self.all_jobs(q)):
                self.keep(q, found)

    def implicit(self, q: Beliefs, name: str) -> Array:
        """Return the natural parameters of an own variable that is not stored, of all parts."""
        found = self.run(tasks.implicit_of_parts, q, self.all_jobs(q), name)
        return np.concatenate([array for group in found for array in group.values()])
