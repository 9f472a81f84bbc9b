"""Tasks on the workers of a Dask cluster, for the parts of a fit.

A round submits one task for each group of parts. All that they need is in tasks of its own that the
scheduler can compute again: the context of the fit, q, what else is common to the round, and the
rows of a group if they are in memory here. Workers add up the totals of groups, in the order of
`tree.py`, those on the same worker first, and solve for shared variables (`shards.py`).

The q of own variables stays where it was computed (`own_on_workers.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from distributed import Client, Future

from svmp.errors import ModelError
from svmp.network.validation import shown
from svmp.parts import remote, tasks, versions
from svmp.parts.affinity import Group
from svmp.parts.cluster import PATIENCE, Cluster, Submit, Submitted
from svmp.parts.context import Context, Declare, Job, Own, OwnElsewhere, SharedQ, Unit, Visited
from svmp.parts.description import PartDims
from svmp.parts.own_on_workers import OwnOnWorkers, PastVisit, on_workers
from svmp.parts.remote import Round, Sent
from svmp.parts.schedule import Visit
from svmp.parts.shards import Shard, join_shards, nodes_by_home, shards_of
from svmp.parts.solution import Solution
from svmp.parts.sources import DaskSource, InMemory, Source
from svmp.parts.transfer import size_of
from svmp.parts.waiting import LOST, within
from svmp.parts.workspace import Executor

Result = TypeVar("Result")


@dataclass(eq=False)
class Workers(Cluster, Executor):
    """Runs tasks on the workers of a Dask client."""

    _contexts: dict[str, Future[Any]] = field(default_factory=dict)
    _rows: dict[Group, Future[Any]] = field(default_factory=dict)
    _q: tuple[SharedQ, Future[Any]] | None = None
    _prior: tuple[Own, Future[Any]] | None = None
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

    @property
    def places(self) -> int:
        """Number of workers at the beginning of the last round."""
        return len(self._checked)

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
        """Visit parts; add up their totals on the workers, and solve there, in shards of lines."""
        if not jobs:
            return super().visit(context, shared, jobs, *arguments)
        visit: Visit = arguments[0]
        common = Round(tasks.visit_parts, arguments, versions.versions())
        if solution is not None and tasks.is_single(jobs):
            given = replace(solution, target={})
            common = replace(common, task=tasks.visit_single, arguments=(given, *arguments))
        sent = [job._replace(then=self._next(job, jobs, context)) for job in jobs]
        last = PastVisit(shared.copy(), common, {job.units: job for job in sent})
        before = on_workers(own)
        left = OwnOnWorkers.after(self, context, before, last)
        self._left = [some for some in self._left if some.futures] + [left]
        stored = before is not None or any((jobs[0].own or {}).values())
        keeps = stored and visit.changes_own
        groups = [self._group_of(job.units) for job in jobs]
        places = len({self._homes.of.get(group) for group in groups})
        solved = None if solution is None else solution.number
        size = sum(tasks.empty(asked, shared).nbytes for asked in visit.asked)
        shards = shards_of(visit.asked, size, places, solved)

        def prepare(held: list[Future[Any]]) -> Submit[Shard]:
            there = {} if before is None else before.submitted()
            held.append(self._hold_round(common))
            q = self._hold_q(last.shared)
            prior = None if solution is None else self._hold_prior(solution.prior)
            visited = [
                self._submit_job("visit", context, q, held[0], job, there.get(job.units))
                for job in sent
            ]
            held += visited
            for job, future in zip(sent if keeps else (), visited, strict=False):
                left.add(job.units, future)

            nodes = nodes_by_home([self._homes.of.get(group) for group in groups])

            def submit(shard: Shard) -> Submitted:
                pieces = [
                    self._submit_to(
                        groups[node.start],
                        "add",
                        remote.add_lines,
                        Sent(shard),
                        *visited[node.start : node.stop],
                    )
                    for node in nodes
                ]
                held.extend(pieces)
                at = groups[nodes[shard.number * len(nodes) // shard.among].start]
                job = Sent((shard, nodes, visit, solved))
                result = self._submit_to(
                    at, "solve", remote.solve_lines, q, held[0], prior, job, *pieces
                )
                return Submitted(result, tuple(visited))

            return submit

        def forget() -> None:
            self._forget(before)
            left.release()

        total = join_shards(list(self._retried(shards, prepare, forget)))
        if solution is not None and total.target is not None:
            solution.target |= total.target
            if total.gains is not None:
                solution.gains = total.gains
        return total._replace(left=left if keeps else None)

    def fetch_own(self, left: OwnOnWorkers) -> Iterator[dict[Unit, Own]]:
        """Yield the q of own variables that a visit has left, job by job."""

        def prepare(held: list[Future[Any]]) -> Submit[tuple[Unit, ...]]:
            there = left.submitted()
            return lambda units: Submitted(there[units], kept=True)

        return self._retried(left.units, prepare, partial(self._forget, left))

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

    def submit_fetched(self, units: tuple[Unit, ...], own: dict[Unit, Own]) -> Future[Any]:
        """Submit the task that has the q of own variables as it is here."""
        self.transfer.bytes_sent += size_of(own)
        return self._submit_to(self._group_of(units), "own", remote.opened, Sent(own))

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

    def _hold_prior(self, prior: Own) -> Future[Any]:
        """Return the task that holds the prior of shared variables, the same in many rounds."""
        known = self._prior
        if (
            known is None
            or known[0].keys() != prior.keys()
            or not all(np.array_equal(array, prior[name]) for name, array in known[0].items())
        ):
            if known is not None:
                known[1].release()
            copied = {name: np.array(array) for name, array in prior.items()}
            self.transfer.bytes_sent += size_of(copied)
            known = self._prior = copied, self._submit("prior", remote.opened, Sent(copied))
        return known[1]

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
        held += [one[1] for one in (self._q, self._prior) if one is not None]
        self._contexts.clear()
        self._rows.clear()
        self._q = self._prior = None
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
        if self.client.status == "running":
            forget = partial(self.client.run, remote.forget_all, tokens, on_error="ignore")
            with suppress(*LOST):
                within(PATIENCE, forget)


def in_tasks(source: Source) -> bool:
    """Whether the rows of a source are sent to workers in tasks, instead of read from files."""
    return isinstance(source, InMemory | DaskSource)
