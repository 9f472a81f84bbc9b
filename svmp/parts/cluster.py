"""A Dask cluster: tasks are submitted, waited for with a deadline, and run again if they are lost.

Nothing is scattered: whatever a task needs is the result of another one, which the scheduler can
compute again. Results are returned in the order in which they were asked for, so lost workers, new
workers and tasks that are run again change no bit.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import dask
from distributed import Client, Future, KilledWorker, wait

from svmp.errors import ClusterError, SvmpError
from svmp.parts import remote, versions
from svmp.parts.affinity import Group, Homes
from svmp.parts.remote import Sent
from svmp.parts.transfer import Transfer, size_of
from svmp.parts.waiting import LOOK, LOST, LostRound, all_within, losses, within

Item = TypeVar("Item")
DEADLINE = 600.0
"""Seconds without any task finished after which a round is run again, by default."""
MOST_RETRIES = 5
"""How often a round is run again."""
MOST_HANGS = 1
"""How often a round is run again if every worker has missed the deadline."""
WITHOUT_WORKERS = 60.0
"""Seconds without any worker, or without the scheduler, after which a fit fails, by default."""
POLL = 0.1
"""Seconds between two questions to a scheduler that does not answer, or has no workers."""
PATIENCE = 10.0
"""Seconds to wait for workers to forget the parts of a fit that has ended, or for a probe."""
LARGE = {"distributed.admin.large-graph-warning-threshold": "1TB"}
"""q and own variables are sent inside tasks on purpose, as scattered values could be lost."""


class Submitted(NamedTuple):
    """What was submitted for one result of a round.

    Attributes
    ----------
    result
        The task whose result is fetched.
    tasks
        The tasks that take the time, one for each group of parts; none if that is `result` itself.
        Several results may need the same, and none of them releases these.
    kept
        Whether `result` is not released with the round.
    """

    result: Future[Any]
    tasks: tuple[Future[Any], ...] = ()
    kept: bool = False

    @property
    def groups(self) -> tuple[Future[Any], ...]:
        """The tasks that take the time."""
        return self.tasks or (self.result,)

    @property
    def released(self) -> list[Future[Any]]:
        """What is not needed after the round."""
        return [] if self.kept else [self.result]


Submit = Callable[[Item], Submitted]
"""Submits the tasks of one result."""


@dataclass(eq=False)
class Cluster:
    """The workers of a Dask client.

    Attributes
    ----------
    client
        A `distributed.Client`.
    deadline
        Seconds without any task finished after which a round is run again, on other workers than
        those that it waited for.
    retries
        How often a round is run again before the fit fails.
    without_workers
        Seconds without any worker, or without an answer of the scheduler, after which the fit
        fails.
    """

    client: Client
    deadline: float = DEADLINE
    retries: int = MOST_RETRIES
    without_workers: float = WITHOUT_WORKERS
    transfer: Transfer = field(default_factory=Transfer)
    _homes: Homes = field(default_factory=Homes)
    _groups: dict[int, Group] = field(default_factory=dict)
    _checked: set[str] = field(default_factory=set)
    _direct: bool | None = None

    def _retried(
        self,
        items: Sequence[Item],
        prepare: Callable[[list[Future[Any]]], Submit[Item]],
        forget: Callable[[], None],
    ) -> Iterator[Any]:
        """Yield the results of all items in order; run those again that were lost.

        Parameters
        ----------
        items
            What there are results for.
        prepare
            Begins a round: returns a function that submits the tasks of an item. It adds what it
            submits for all of them to the list that it is given.
        forget
            Forgets what was submitted for more than one round, before a round is run again.
        """
        done, tries, hangs = 0, 0, 0
        while done < len(items):
            try:
                for result in self._once(items[done:], prepare):
                    done, tries, hangs = done + 1, 0, 0
                    yield result
            except LostRound as lost:
                tries += 1
                hangs += self._checked <= self._homes.suspects
                if hangs > MOST_HANGS:
                    raise ClusterError(
                        f"no task has finished within {self.deadline:g} seconds on any Dask "
                        f"worker, {hangs} times in a row; if they are not hanging, give more "
                        "groups=, smaller parts or a longer deadline="
                    ) from lost.__cause__
                if tries > self.retries:
                    raise ClusterError(
                        f"a round failed {tries} times on the Dask workers, the last time because "
                        f"{lost}"
                    ) from lost.__cause__
                self.transfer.retries += 1
                forget()

    def _once(
        self, items: Sequence[Item], prepare: Callable[[list[Future[Any]]], Submit[Item]]
    ) -> Iterator[Any]:
        """Submit the tasks of a round, and yield their results in order."""
        held: list[Future[Any]] = []
        every: list[Submitted] = []
        try:
            with losses():
                self._check_workers()
                if self._direct is None:
                    self._check_direct()
                submit = prepare(held)
                for item in items:
                    every.append(submit(item))
                self.transfer.begin(len({task for each in every for task in each.groups}))
            for number, each in enumerate(every):
                with losses():
                    self._wait_for(each.result, every[number:])
                    result, error = self._outcome(each.result)
                if error is not None:
                    raise error
                self.transfer.bytes_received += size_of(result)
                for future in each.released:
                    future.release()
                yield result
        finally:
            self.drop([*held, *(future for each in every for future in each.released)])

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

    def _wait_for(self, future: Future[Any], pending: list[Submitted]) -> None:
        """Wait for a task; raise if no task at all finishes before the deadline."""
        groups = dict.fromkeys(each for submitted in pending for each in submitted.groups)
        while not future.done():
            waiting = [each for each in groups if not each.done()]
            self.transfer.waiting = len(waiting)
            self._wait_for_any([future, *(each for each in waiting if each is not future)])
        self.transfer.waiting = sum(not each.done() for each in groups)

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
        """Raise if tasks may be waiting for a worker that is gone."""
        self._check_lost(self._workers())

    def _check_lost(self, workers: set[str]) -> None:
        """Raise if tasks of the workers that were checked last may wait for one that is gone.

        A task that finds no worker at all goes on waiting for the address that it was submitted
        to, even if others join and could run it; so does a task that may not run elsewhere.
        """
        lost = self._checked - workers
        if self._homes.suspects:
            if gone := lost.intersection(self._homes.able(self._checked)):
                raise LostRound(f"{min(gone)} was lost, and the other workers hang")
        elif lost and lost == self._checked:
            raise LostRound("all workers were lost")

    def _workers(self) -> set[str]:
        """Return the addresses of all workers that are there.

        A scheduler that is gone for too long ends the fit, as no workers do: Dask would wait for
        its answers, or return old ones.
        """
        end = time.monotonic() + self.without_workers
        while (left := end - time.monotonic()) > 0 and self.client.status != "closed":
            with suppress(*LOST):
                # of all workers, in all versions of Dask
                found = within(left, self.client.nthreads)
                if self.client.status == "running":
                    return set(found)
            time.sleep(min(POLL, left))
        raise ClusterError(
            f"the Dask scheduler has not answered for {self.without_workers:g} seconds"
            if self.client.status != "closed"
            else "the Dask scheduler is gone, and the client has given it up"
        )

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
            self.drop([probe])

    def _suspect(self, waiting: list[Future[Any]]) -> None:
        """Note the workers on which tasks hang."""
        keys = {future.key for future in waiting}
        running = within(self.without_workers, self.client.processing)
        self._homes.suspects |= {name for name, some in running.items() if keys & set(some)}

    def _check_workers(self) -> None:
        """Check the versions of workers that are new, and give each group its worker."""
        workers = self._any_workers()
        if new := sorted(workers - self._checked):
            self._check_versions(new)
        try:
            self._check_lost(workers)
        finally:
            self._checked = workers
            self._homes.assign(dict.fromkeys(self._groups.values()), workers)

    def _any_workers(self) -> set[str]:
        """Return the addresses of all workers; wait for the first, which may be lost again."""
        end = time.monotonic() + self.without_workers
        while not (workers := self._workers()):
            if time.monotonic() > end:
                raise ClusterError(
                    f"the Dask cluster has had no workers for {self.without_workers:g} seconds"
                )
            time.sleep(POLL)
        return workers

    def _check_versions(self, workers: list[str]) -> None:
        """Raise if a worker has other versions than this process.

        Workers that do not answer get no tasks as long as there are others.
        """
        ours, most = versions.versions(), min(self.deadline, self.without_workers)
        for worker, theirs in self._versions_on(workers, most).items():
            if isinstance(theirs, ImportError | AttributeError):
                raise SvmpError(f"the worker {worker} cannot import svmp {ours['svmp']}: {theirs}")
            if isinstance(theirs, dict) and (apart := versions.differences(theirs, ours)):
                raise SvmpError(remote.refusal(worker, apart))

    def _versions_on(self, workers: list[str], seconds: float) -> dict[str, Any]:
        """Return the versions of each worker that answers in time; note those that do not."""
        ask = partial(self.client.run, remote.versions_here, on_error="return")
        with suppress(TimeoutError):
            return within(seconds, partial(ask, workers=workers))
        # Dask returns no answers while one is missing: each worker is asked by a call of its own
        calls = [partial(ask, workers=[worker]) for worker in workers]
        found: dict[str, Any] = {}
        for answer in all_within(min(seconds, PATIENCE), calls):
            found |= answer or {}
        self._homes.suspects |= set(workers) - set(found)
        return found

    def drop(self, futures: list[Future[Any]]) -> None:
        """Release tasks; the scheduler forgets those that are not finished.

        They are not cancelled: a scheduler fails if it is to cancel a task that others depend on
        which were released before.
        """
        for future in futures:
            future.release()
