"""Tasks on the workers of a Dask cluster: submitted, waited for with a deadline, and run again.

A round submits one task for each group of parts. All that they need is in tasks of its own that the
scheduler can compute again: the context of the fit, q with what else is common to the round, and
the rows of a group if they are in memory here. Nothing is scattered, and no state is kept on a
worker but a cache of the parts that it has loaded. Results are returned in the order of the groups,
so lost workers, new workers and tasks that are run again change no bit.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import wait as wait_for_threads
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Thread
from typing import Any, TypeVar

import dask
from distributed import CancelledError, Client, Future, KilledWorker, wait
from distributed.comm.core import CommClosedError

from svmp.errors import ModelError, SvmpError
from svmp.network.validation import shown
from svmp.parts import remote, versions
from svmp.parts.affinity import Group, Homes
from svmp.parts.context import Context, Declare, Job, SharedQ, Unit
from svmp.parts.description import PartDims
from svmp.parts.remote import Round, Sent
from svmp.parts.sources import DaskSource, InMemory, Source
from svmp.parts.transfer import Transfer, size_of
from svmp.parts.workspace import Executor

Result = TypeVar("Result")
DEADLINE = 600.0
"""Seconds without any task finished after which a round is run again, by default."""
MOST_RETRIES = 5
"""How often a round is run again."""
LOOK = 1.0
"""Seconds between two looks at the workers while tasks are waited for."""
PATIENCE = 10.0
"""Seconds to wait for workers to forget the parts of a fit that has ended, or for a probe."""
LOST = (TimeoutError, CancelledError, KilledWorker, CommClosedError, OSError)
"""How Dask says that a worker, a task or a connection was lost."""
LARGE = {"distributed.admin.large-graph-warning-threshold": "1TB"}
"""q and own variables are sent inside tasks on purpose, as scattered values could be lost."""


class LostRound(Exception):
    """A round that must be run again."""


@dataclass(eq=False)
class Workers(Executor):
    """Runs tasks on the workers of a Dask client.

    Attributes
    ----------
    client
        A `distributed.Client`.
    deadline
        Seconds without any task finished after which a round is run again, on other workers than
        those that it waited for.
    retries
        How often a round is run again before the fit fails.
    """

    client: Client
    deadline: float = DEADLINE
    retries: int = MOST_RETRIES
    transfer: Transfer = field(default_factory=Transfer)
    _homes: Homes = field(default_factory=Homes)
    _groups: dict[int, Group] = field(default_factory=dict)
    _contexts: dict[str, Future[Any]] = field(default_factory=dict)
    _rows: dict[Group, Future[Any]] = field(default_factory=dict)
    _checked: set[str] = field(default_factory=set)
    _tokens: set[str] = field(default_factory=set)
    _direct: bool | None = None

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

        def submit(group: Group, common: Future[Any]) -> Future[Any]:
            rows = self._rows_of(source, group)
            return self._submit_to(
                group, "describe", remote.describe_group, common, rows, Sent(group)
            )

        found = self._retried(common, list(groups), submit)
        return [part for group in found for part in group]

    def run(
        self,
        task: Callable[..., Result],
        context: Context,
        shared: SharedQ,
        jobs: Sequence[Job],
        *arguments: Any,
    ) -> Iterator[Result]:
        """Yield `task(context, shared, job, *arguments)` of each job, in their order."""
        name = task.__name__.partition("_")[0]
        common = Round(task, shared, arguments, versions.versions())
        self._tokens.add(context.token)

        def submit(job: Job, common: Future[Any]) -> Future[Any]:
            group = self._groups[job.units[0][0]]
            rows = self._rows_of(context.source, group)
            sent = Sent(job._replace(then=self._next(job, jobs, context)))
            self.transfer.bytes_sent += size_of(job.own)
            return self._submit_to(
                group, name, remote.run_job, self._context(context), common, rows, sent
            )

        return self._retried(common, list(jobs), submit)

    def _retried(
        self, common: Any, jobs: list[Any], submit: Callable[[Any, Future[Any]], Future[Any]]
    ) -> Iterator[Any]:
        """Yield the results of all jobs in order; run those again that were lost."""
        done, tries = 0, 0
        while done < len(jobs):
            try:
                for result in self._once(common, jobs[done:], submit):
                    done, tries = done + 1, 0
                    yield result
            except LostRound as lost:
                tries += 1
                if tries > self.retries:
                    raise SvmpError(
                        f"a round failed {tries} times on the Dask workers, the last time because "
                        f"{lost}; nothing was lost that a checkpoint has: mend the cluster, and go "
                        "on with resume="
                    ) from lost.__cause__
                self.transfer.retries += 1
                self._release_held()

    def _once(
        self, common: Any, jobs: list[Any], submit: Callable[[Any, Future[Any]], Future[Any]]
    ) -> Iterator[Any]:
        """Submit the tasks of a round, and yield their results in order."""
        futures: list[Future[Any]] = []
        try:
            with losses():
                self._check_workers()
                if self._direct is None:
                    self._check_direct()
                self.transfer.begin(len(jobs))
                self.transfer.bytes_sent += size_of(common)
                futures.append(self._submit("q", remote.hold, common))
                for job in jobs:
                    futures.append(submit(job, futures[0]))
            for number, future in enumerate(futures[1:], 1):
                with losses():
                    self._wait_for(future, futures[number:])
                    result, error = self._outcome(future)
                if error is not None:
                    raise error
                self.transfer.bytes_received += size_of(result)
                future.release()
                yield result
        finally:
            self._drop(futures)

    def _submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit a task that may run anywhere, under a key of its own."""
        return self._submit_to(None, name, function, *arguments)

    def _submit_to(
        self, group: Group | None, name: str, function: Callable[..., Any], *arguments: Any
    ) -> Future[Any]:
        """Submit a task, to run where the parts of a group are if that is possible."""
        home = None if group is None else self._homes.of.get(group)
        able = self._homes.able(self._checked)
        options: dict[str, Any] = {}
        if self._homes.suspects:  # a worker that hangs would take tasks, and not run them
            options = {"workers": able if home is None else [home]}
        elif home is not None:
            options = {"workers": [home], "allow_other_workers": True}
        with dask.config.set(LARGE):
            key = f"svmp-{name}-{uuid.uuid4().hex}"
            return self.client.submit(function, *arguments, key=key, pure=False, **options)

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

    def _wait_for(self, future: Future[Any], pending: list[Future[Any]]) -> None:
        """Wait for a task; raise if no task at all finishes before the deadline."""
        while not future.done():
            waiting = [each for each in pending if not each.done()]
            self.transfer.waiting = len(waiting)
            self._wait_for_any(waiting)
        self.transfer.waiting = sum(not each.done() for each in pending)

    def _wait_for_any(self, waiting: list[Future[Any]]) -> None:
        """Wait until one of some tasks has finished."""
        end = time.monotonic() + self.deadline
        while (left := end - time.monotonic()) > 0:
            try:
                wait(waiting, timeout=min(left, LOOK), return_when="FIRST_COMPLETED")
                return
            except TimeoutError:
                self._look()
        self._suspect(waiting)
        raise TimeoutError(f"no task finished within {self.deadline:g} seconds")

    def _look(self) -> None:
        """Raise if all workers of the beginning of a round are gone.

        Tasks that lost the last worker go on waiting for its address, even if others join later.
        """
        if not self._checked & self._workers():
            raise LostRound("all workers were lost")

    def _workers(self) -> set[str]:
        """Return the addresses of all workers that are there."""
        return set(within(self.deadline, self.client.scheduler_info)["workers"])

    def _outcome(self, future: Future[Any]) -> tuple[Any, BaseException | None]:
        """Return the result of a finished task, or the exception that it raised."""
        if future.status == "error":
            error = future.exception(timeout=self.deadline)
            if isinstance(error, KilledWorker):
                raise error
            return None, error
        gather = partial(self.client.gather, future, direct=self._direct)
        return within(self.deadline, gather, self._look), None

    def _check_direct(self) -> None:
        """Find out whether results can come from workers directly, and not by the scheduler."""
        probe = self._submit("probe", remote.hold, Sent(0))
        try:
            self._wait_for_any([probe])
            within(PATIENCE, partial(self.client.gather, probe, direct=True))
            self._direct = True
        except LOST:
            self._direct = False
        finally:
            self._drop([probe])

    def _suspect(self, waiting: list[Future[Any]]) -> None:
        """Note the workers on which tasks hang."""
        keys = {future.key for future in waiting}
        running = within(self.deadline, self.client.processing)
        self._homes.suspects |= {name for name, some in running.items() if keys & set(some)}

    def _check_workers(self) -> None:
        """Check the versions of workers that are new, and give each group its worker."""
        workers = self._workers()
        if not workers:
            self.client.wait_for_workers(1, timeout=self.deadline)
            workers = self._workers()
        if new := sorted(workers - self._checked):
            self._check_versions(new)
        self._checked = workers
        self._homes.assign(dict.fromkeys(self._groups.values()), workers)

    def _check_versions(self, workers: list[str]) -> None:
        """Raise if a worker has other versions than this process."""
        ours = versions.versions()
        found = within(
            self.deadline,
            partial(self.client.run, remote.versions_here, workers=workers, on_error="return"),
        )
        for worker, theirs in found.items():
            if isinstance(theirs, ImportError | AttributeError):
                raise SvmpError(f"the worker {worker} cannot import svmp {ours['svmp']}: {theirs}")
            if isinstance(theirs, dict) and (apart := versions.differences(theirs, ours)):
                raise SvmpError(remote.refusal(worker, apart))

    def _release_held(self) -> None:
        """Release what was submitted for the whole fit; it is submitted again under new keys."""
        held = [*self._contexts.values(), *self._rows.values()]
        self._contexts.clear()
        self._rows.clear()
        self._drop(held)

    def _drop(self, futures: list[Future[Any]]) -> None:
        """Release tasks, and cancel those that are not finished."""
        unfinished = [future for future in futures if future.status == "pending"]
        if unfinished:
            with suppress(*LOST):
                within(self.deadline, partial(self.client.cancel, unfinished, force=True))
        for future in futures:
            future.release()

    def close(self) -> None:
        """Release everything that is on the cluster."""
        tokens = sorted(self._tokens)
        self._release_held()
        with suppress(*LOST):
            within(PATIENCE, partial(self.client.run, remote.forget_all, tokens, on_error="ignore"))


def in_tasks(source: Source) -> bool:
    """Whether the rows of a source are sent to workers in tasks, instead of read from files."""
    return isinstance(source, InMemory | DaskSource)


@contextmanager
def losses() -> Iterator[None]:
    """Raise `LostRound` for anything by which Dask says that something was lost."""
    try:
        yield
    except LOST as error:
        raise LostRound(str(error) or type(error).__name__) from error


def within(
    seconds: float, call: Callable[[], Result], look: Callable[[], None] | None = None
) -> Result:
    """Return the result of a call to the cluster, or raise TimeoutError.

    Parameters
    ----------
    seconds
        How long to wait.
    call
        The call; it runs in a thread of its own, which is left behind if it does not end.
    look
        Called now and then while the call runs; an exception that it raises ends the waiting.
    """
    outcome: ThreadFuture[Result] = ThreadFuture()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=run, daemon=True, name="svmp-call").start()
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if wait_for_threads([outcome], timeout=min(left, LOOK)).done:
            return outcome.result()
        if look is not None:
            look()
    raise TimeoutError(f"the Dask cluster did not answer within {seconds:g} seconds")
