"""The q of own variables on Dask workers: results of tasks that can be run again.

It stays where it was computed. After a few visits it is fetched, so that what must be computed
again for a lost worker stays little: from what was fetched last, through the visits since then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from distributed import Future

from svmp.parts.context import Context, Job, Own, OwnElsewhere, SharedQ, Unit
from svmp.parts.remote import Round


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


class OwnTasks(Protocol):
    """The tasks of `Workers` for the q of own variables (workers.py)."""

    def submit_own(self, units: tuple[Unit, ...], visited: Future[Any]) -> Future[Any]:
        """Submit the task that has the q after a visit."""

    def submit_fetched(self, units: tuple[Unit, ...], own: dict[Unit, Own]) -> Future[Any]:
        """Submit the task that has the q as it is here."""

    def submit_again(
        self, context: Context, visit: PastVisit, own: dict[tuple[Unit, ...], Future[Any]]
    ) -> dict[tuple[Unit, ...], Future[Any]]:
        """Submit an earlier visit again."""

    def fetch_own(self, left: OwnOnWorkers) -> Iterator[dict[Unit, Own]]:
        """Yield the q that a visit has left, job by job."""

    def drop(self, futures: list[Future[Any]]) -> None:
        """Release tasks."""


@dataclass(eq=False)
class OwnOnWorkers(OwnElsewhere):
    """q of own variables as results of tasks, each after some visits in a row.

    Attributes
    ----------
    visits
        The visits since this q was last sent or fetched. The jobs of the first of them have the q
        that was sent.
    fetched
        By job, the q that was last fetched, before these visits; none if it was sent.
    futures
        By job, the task that has its q.
    """

    workers: OwnTasks
    context: Context
    visits: tuple[PastVisit, ...]
    fetched: dict[tuple[Unit, ...], dict[Unit, Own]] = field(default_factory=dict)
    futures: dict[tuple[Unit, ...], Future[Any]] = field(default_factory=dict)

    @classmethod
    def after(
        cls, workers: OwnTasks, context: Context, before: OwnOnWorkers | None, visit: PastVisit
    ) -> OwnOnWorkers:
        """Return what a visit leaves, to which the tasks are added when they are submitted."""
        if before is None:
            return cls(workers, context, (visit,))
        return cls(workers, context, (*before.visits, visit), before.fetched)

    @property
    def depth(self) -> int:  # type: ignore[override]
        return len(self.visits)

    @property
    def units(self) -> list[tuple[Unit, ...]]:
        """The parts of each job."""
        return list(self.fetched or self.visits[-1].jobs)

    def add(self, units: tuple[Unit, ...], visited: Future[Any]) -> None:
        """Keep the q that a task has computed in the last visit."""
        self.futures[units] = self.workers.submit_own(units, visited)

    def submitted(self) -> dict[tuple[Unit, ...], Future[Any]]:
        """Return the tasks that have the q of each job; if one was lost, visits are run again."""
        if len(self.futures) < len(self.units):
            self.release()
            found = {
                units: self.workers.submit_fetched(units, own)
                for units, own in self.fetched.items()
            }
            for visit in self.visits:
                found = self.workers.submit_again(self.context, visit, found)
            self.futures |= found
        return self.futures

    def begin_from(self, jobs: Sequence[Job]) -> None:
        self.fetched = {job.units: job.own or {} for job in jobs}
        self.visits = ()

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
