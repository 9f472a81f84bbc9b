"""Tasks on the workers of a Dask cluster, for the parts of a fit.

A round submits one task for each group of parts. All that they need is in tasks of its own that the
scheduler can compute again: the context of the fit, q, what else is common to the round, and the
rows of a group if they are in memory here. Workers add up the totals of groups, in the order of
`tree.py`, those on the same worker first; at most two totals come back.

The q of own variables stays where it was computed, as the result of a task. After a few visits it
is fetched and sent again, so that what must be computed again for a lost worker stays little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from distributed import Client, Future

from svmp.errors import ModelError
from svmp.network.validation import shown
from svmp.parts import remote, tasks, versions
from svmp.parts.affinity import Group
from svmp.parts.cluster import PATIENCE, Cluster, Submit, Submitted
from svmp.parts.context import Context, Declare, Job, Own, OwnElsewhere, SharedQ, Unit, Visited
from svmp.parts.description import PartDims
from svmp.parts.remote import Round, Sent
from svmp.parts.solution import Solution
from svmp.parts.sources import DaskSource, InMemory, Source
from svmp.parts.transfer import size_of
from svmp.parts.tree import added_up, halves
from svmp.parts.waiting import LOST, within
from svmp.parts.workspace import Executor

Result = TypeVar("Result")


class PastVisit(NamedTuple):
    """A visit, as it can be submitted again.

    Attributes
    ----------
    shared, common
        q of the shared variables at the time, and what else was common to its tasks.
    jobs
        Its jobs, by their parts.
    """

    shared: SharedQ
    common: Round
    jobs: dict[tuple[Unit, ...], Job]


@dataclass(eq=False)
class Workers(Cluster, Executor):
    """Runs tasks on the workers of a Dask client."""

    _contexts: dict[str, Future[Any]] = field(default_factory=dict)
    _rows: dict[Group, Future[Any]] = field(default_factory=dict)
    _q: tuple[SharedQ, Future[Any]] | None = None
    _tokens: set[str] = field(default_factory=set)
    _left: list[OwnOnWorkers] = field(default_factory=list)

    @classmethod
    def of(cls, client: Any) -> Workers:
        """Return the workers of a client, checked."""
        if isinstance(client, Workers):
            return client
        if not isinstance(client, Client):
            raise ModelError(f"client must be a dask.distributed.Client, not {shown(client)}")
        if client.asynchronous:
            raise ModelError("client must not be asynchronous: make it with Client(address)")
        return cls(client)

    @property
    def note(self) -> str:
        """What the current round waits for, and what was moved so far."""
        return str(self.transfer)

    def describe(
        self, declare: Declare, source: Source, groups: Sequence[Group]
    ) -> list[PartDims | None]:
        """Return the descriptions of all parts, in their order."""
        self._groups = {number: group for group in groups for number in group}
        read = remote.NO_ROWS if in_tasks(source) else source
        common = Sent((declare, read, versions.versions()))

        def prepare(held: list[Future[Any]]) -> Submit[Group]:
            held.append(self._submit("describe", remote.hold, common))

            def submit(group: Group) -> Submitted:
                rows = self._rows_of(source, group)
                return Submitted(
                    self._submit_to(
                        group, "describe", remote.describe_group, held[0], rows, Sent(group)
                    )
                )

            return submit

        found = self._retried(list(groups), prepare, self._release_held)
        return [part for group in found for part in group]

    def run(
        self,
        task: Callable[..., Result],
        context: Context,
        shared: SharedQ,
        jobs: Sequence[Job],
        *arguments: Any,
        own: OwnElsewhere | None = None,
    ) -> Iterator[Result]:
        """Yield `task(context, shared, job, *arguments)` of each job, in their order."""
        name = task.__name__.partition("_")[0]
        common = Round(task, arguments, versions.versions())
        left = on_workers(own)

        def prepare(held: list[Future[Any]]) -> Submit[Job]:
            there = {} if left is None else left.submitted()
            held.append(self._hold_round(common))
            q = self._hold_q(shared)

            def submit(job: Job) -> Submitted:
                sent, mine = job._replace(then=self._next(job, jobs, context)), there.get(job.units)
                return Submitted(self._submit_job(name, context, q, held[0], sent, mine))

            return submit

        return self._retried(list(jobs), prepare, partial(self._forget, left))

    def visit(
        self,
        context: Context,
        shared: SharedQ,
        jobs: Sequence[Job],
        *arguments: Any,
        solution: Solution | None = None,
        own: OwnElsewhere | None = None,
    ) -> Visited:
        """Visit parts; add up their totals on the workers, and the last two here."""
        if not jobs:
            return super().visit(context, shared, jobs, *arguments)
        common = Round(tasks.visit_parts, arguments, versions.versions())
        if solution is not None and tasks.is_single(jobs):
            common = replace(common, task=tasks.visit_single, arguments=(solution, *arguments))
        sent = [job._replace(then=self._next(job, jobs, context)) for job in jobs]
        last = PastVisit(shared.copy(), common, {job.units: job for job in sent})
        before = on_workers(own)
        left = OwnOnWorkers(self, context, (*(before.visits if before else ()), last))
        self._left = [some for some in self._left if some.futures] + [left]
        stored = before is not None or any((jobs[0].own or {}).values())
        keeps = stored and arguments[0].changes_own

        def prepare(held: list[Future[Any]]) -> Submit[range]:
            there = {} if before is None else before.submitted()
            held.append(self._hold_round(common))
            q = self._hold_q(last.shared)

            def submit(node: range) -> Submitted:
                visited = {}
                for number in node:
                    job = sent[number]
                    mine = there.get(job.units)
                    visited[number] = self._submit_job("visit", context, q, held[0], job, mine)
                    if keeps:
                        left.add(job.units, visited[number])
                return Submitted(self._add_up(node, homes, sent, visited), (*visited.values(),))

            return submit

        def forget() -> None:
            self._forget(before)
            left.release()

        homes = [
            self._homes.of.get(self._group_of(job.units), number) for number, job in enumerate(sent)
        ]
        whole = range(len(sent))
        nodes = [whole] if len(set(homes)) == 1 else list(halves(whole))
        total = added_up(self._retried(nodes, prepare, forget), nodes, tasks.plus_visited)
        if solution is not None and total.target is not None:
            solution.target |= total.target
        return total._replace(left=left if keeps else None)

    def _add_up(
        self,
        node: range,
        homes: Sequence[str | int],
        jobs: Sequence[Job],
        visited: Mapping[int, Future[Any]],
    ) -> Future[Any]:
        """Submit the tasks that add up the groups of a node: on a worker, then among workers."""
        if len({homes[number] for number in node}) == 1:
            every = [visited[number] for number in node]
        else:
            every = [self._add_up(half, homes, jobs, visited) for half in halves(node)]
        group = self._group_of(jobs[node.start].units)
        return self._submit_to(group, "add", remote.add_visited, *every)

    def fetch_own(self, left: OwnOnWorkers) -> Iterator[dict[Unit, Own]]:
        """Yield the q of own variables that a visit has left, job by job."""

        def prepare(held: list[Future[Any]]) -> Submit[tuple[Unit, ...]]:
            there = left.submitted()
            return lambda units: Submitted(there[units], kept=True)

        return self._retried(list(left.visits[-1].jobs), prepare, partial(self._forget, left))

    def submit_again(
        self,
        context: Context,
        visit: PastVisit,
        own: dict[tuple[Unit, ...], Future[Any]],
    ) -> dict[tuple[Unit, ...], Future[Any]]:
        """Submit an earlier visit again; return the tasks that have the q of own variables."""
        common, q = self._hold_round(visit.common), self._hold_q(visit.shared)
        return {
            units: self.submit_own(
                units, self._submit_job("visit", context, q, common, job, own.get(units))
            )
            for units, job in visit.jobs.items()
        }

    def _submit_job(
        self,
        name: str,
        context: Context,
        q: Future[Any],
        common: Future[Any],
        job: Job,
        own: Future[Any] | None,
    ) -> Future[Any]:
        """Submit the task of a job; its own variables are in the job, or the result of a task."""
        self._tokens.add(context.token)
        group = self._group_of(job.units)
        rows = self._rows_of(context.source, group)
        self.transfer.bytes_sent += size_of(job.own)
        return self._submit_to(
            group, name, remote.run_job, self._context(context), q, common, rows, Sent(job), own
        )

    def _group_of(self, units: tuple[Unit, ...]) -> Group:
        return self._groups[units[0][0]]

    def submit_own(self, units: tuple[Unit, ...], visited: Future[Any]) -> Future[Any]:
        """Submit the task that has the q of own variables after a visit."""
        return self._submit_to(self._group_of(units), "own", remote.own_of, visited)

    def _hold_round(self, common: Round) -> Future[Any]:
        """Submit the task that holds what is common to a round."""
        self.transfer.bytes_sent += size_of(common)
        return self._submit("round", remote.hold, common)

    def _hold_q(self, shared: SharedQ) -> Future[Any]:
        """Return the task that holds q of the shared variables, which several rounds may read.

        It has a copy: what is lost may be computed again when q is another one here.
        """
        if self._q is None or not self._q[0].equals(shared):
            if self._q is not None:
                self._q[1].release()
            copied = shared.copy()
            self.transfer.bytes_sent += size_of(copied)
            self._q = copied, self._submit("q", remote.hold, copied)
        return self._q[1]

    def _context(self, context: Context) -> Future[Any]:
        """Return the task that holds a context."""
        if context.token not in self._contexts:
            source = context.source
            sent = replace(context, source=remote.NO_ROWS) if in_tasks(source) else context
            self._contexts[context.token] = self._submit("context", remote.hold, sent)
        return self._contexts[context.token]

    def _rows_of(self, source: Source, group: Group) -> Future[Any] | None:
        """Return the task that holds the rows of a group; None if workers read them from files."""
        if not in_tasks(source):
            return None
        if group not in self._rows:
            if isinstance(source, DaskSource):
                rows = self.client.compute([source.partitions[number] for number in group])
            else:
                rows = [Sent(source.load(number)) for number in group]
            names = {number: source.name(number) for number in group}
            sizes = {number: source.rows(number) for number in group}
            about = Sent((group, names, sizes))
            self._rows[group] = self._submit_to(group, "rows", remote.collect, about, *rows)
        return self._rows[group]

    def _next(self, job: Job, jobs: Sequence[Job], context: Context) -> Unit | None:
        """Return the part that the worker of a job needs next, to be read ahead from a file."""
        if in_tasks(context.source):
            return None
        home = self._homes.of
        groups = [self._groups[other.units[0][0]] for other in jobs]
        mine = self._groups[job.units[0][0]]
        at = groups.index(mine)
        for other, group in zip(
            (*jobs[at + 1 :], *jobs[:at]), (*groups[at + 1 :], *groups[:at]), strict=True
        ):
            if home.get(group) == home.get(mine):
                return other.units[0]
        return job.units[0]

    def _release_held(self) -> None:
        """Release what was submitted for the whole fit; it is submitted again under new keys."""
        held = [*self._contexts.values(), *self._rows.values()]
        if self._q is not None:
            held.append(self._q[1])
        self._contexts.clear()
        self._rows.clear()
        self._q = None
        self.drop(held)

    def _forget(self, left: OwnOnWorkers | None) -> None:
        """Release what was submitted for more than one round."""
        self._release_held()
        if left is not None:
            left.release()

    def close(self) -> None:
        """Release everything that is on the cluster."""
        tokens = sorted(self._tokens)
        self._release_held()
        for left in self._left:
            left.release()
        with suppress(*LOST):
            within(PATIENCE, partial(self.client.run, remote.forget_all, tokens, on_error="ignore"))


@dataclass(eq=False)
class OwnOnWorkers(OwnElsewhere):
    """q of own variables as results of tasks, each after some visits in a row.

    Attributes
    ----------
    visits
        The visits since the q of own variables was last sent.
    futures
        By job, the task that has its q.
    """

    workers: Workers
    context: Context
    visits: tuple[PastVisit, ...]
    futures: dict[tuple[Unit, ...], Future[Any]] = field(default_factory=dict)

    @property
    def depth(self) -> int:  # type: ignore[override]
        return len(self.visits)

    def add(self, units: tuple[Unit, ...], visited: Future[Any]) -> None:
        """Keep the q that a task has computed in the last visit."""
        self.futures[units] = self.workers.submit_own(units, visited)

    def submitted(self) -> dict[tuple[Unit, ...], Future[Any]]:
        """Return the tasks that have the q of each job; if one was lost, visits are run again."""
        if len(self.futures) < len(self.visits[-1].jobs):
            self.release()
            found: dict[tuple[Unit, ...], Future[Any]] = {}
            for visit in self.visits:
                found = self.workers.submit_again(self.context, visit, found)
            self.futures |= found
        return self.futures

    def fetch(self) -> Iterator[dict[Unit, Own]]:
        return self.workers.fetch_own(self)

    def release(self) -> None:
        futures = list(self.futures.values())
        self.futures.clear()
        self.workers.drop(futures)


def on_workers(own: OwnElsewhere | None) -> OwnOnWorkers | None:
    """Return q of own variables that is on workers."""
    assert own is None or isinstance(own, OwnOnWorkers)
    return own


def in_tasks(source: Source) -> bool:
    """Whether the rows of a source are sent to workers in tasks, instead of read from files."""
    return isinstance(source, InMemory | DaskSource)
