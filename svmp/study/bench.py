"""Where runs are made: plans go on side by side, and what was made before is not made again.

A plan is a generator that yields the runs it wants, one after the other, is sent what came of
each, and returns what it found out. So a search is written as if it were alone.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from svmp.study.data import Data
from svmp.study.runs import Result, Spec
from svmp.study.settings import Settings
from svmp.study.store import Store
from svmp.study.workers import Worker, ready, workers

T = TypeVar("T")
Plan = Generator[Spec, Result, T]


class Watcher(Protocol):
    """Who is told how far it is."""

    def expect(self, cost: float) -> None:
        """More is to be done."""

    def begin(self, label: str) -> None:
        """A run begins."""

    def end(self, label: str, cost: float) -> None:
        """A run has ended, or was found made."""


@dataclass
class Job:
    """A plan, the run that it waits for, and its place among the plans."""

    place: int
    plan: Plan[Any]
    spec: Spec


def alone(spec: Spec) -> Plan[Result]:
    """A plan of one run."""
    return (yield spec)


class Bench:
    """Makes the runs of one study."""

    def __init__(
        self, store: Store, settings: Settings, data: Data, watcher: Watcher, threads: int
    ) -> None:
        self.store, self.settings, self.data = store, settings, data
        self.watcher, self.threads = watcher, threads
        self.made = self.found = 0
        self._known: dict[Spec, Result] = {}
        self._team: list[Worker] = []
        self._open = ExitStack()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *raised: object) -> None:
        self._open.close()

    def budget(self, which: int) -> float:
        """Return the accesses of a kind of run: Algorithm 1, 2, the answer, full VB alone."""
        most = self.settings.sweeps[which] * self.data.sweep(self.settings.factors)
        limit = self.settings.max_accesses
        return most if limit is None else min(most, limit)

    def spec(self, method: Any, which: int, **options: Any) -> Spec:
        """Describe a run under the settings of the study."""
        common = {"kappa": self.settings.kappa, "seed": self.settings.seed}
        return Spec(method, accesses=self.budget(which), **{**common, **options})

    def results(self, specs: Iterable[Spec]) -> list[Result]:
        """Make runs that do not depend on each other."""
        return self.carry_out([alone(spec) for spec in specs])

    def carry_out(self, plans: Sequence[Plan[T]]) -> list[T]:
        """Carry out plans side by side, and return what they return."""
        done: dict[int, T] = {}
        queue: list[Job] = []
        for place, plan in enumerate(plans):
            self._advance(place, plan, None, queue, done)
        if queue:
            self._serve(self._workers(), queue, done)
        return [done[place] for place in range(len(plans))]

    def _workers(self) -> list[Worker]:
        """Return the workers, who are called when they are needed."""
        if not self._team:
            factors, seed = self.settings.factors, self.settings.seed
            team = workers(self.threads, self.data, factors, seed)
            self._team = self._open.enter_context(team)
            self.watcher.begin("compiling the loops, which happens once")
            first, *others = self._team
            for some in ([first], others):  # the others find in the cache what the first compiled
                for worker in some:
                    worker.pipe.send(None)
                for worker in some:
                    worker.receive()
        return self._team

    def _serve(self, team: list[Worker], queue: list[Job], done: dict[int, Any]) -> None:
        """Keep the workers busy until every plan has ended; the longest runs go first."""
        idle = list(team)
        busy: dict[Any, tuple[Worker, Job]] = {}
        while queue or busy:
            queue.sort(key=lambda job: (-self.cost(job.spec), job.place))
            while queue and idle:
                worker, job = idle.pop(), queue.pop(0)
                worker.send(job.spec)
                self.watcher.begin(job.spec.label)
                busy[worker.pipe] = worker, job
            for pipe in ready(busy):
                worker, job = busy.pop(pipe)
                result = worker.receive()
                self.keep(result)
                self.watcher.end(job.spec.label, self.cost(job.spec))
                idle.append(worker)
                self._advance(job.place, job.plan, result, queue, done)

    def _advance(
        self,
        place: int,
        plan: Plan[T],
        result: Result | None,
        queue: list[Job],
        done: dict[int, T],
    ) -> None:
        """Tell a plan what came of its run, until it wants one that was never made."""
        try:
            spec = next(plan) if result is None else plan.send(result)
            while (known := self.find(spec)) is not None:
                spec = plan.send(known)
        except StopIteration as end:
            done[place] = end.value
        else:
            self.watcher.expect(self.cost(spec))
            queue.append(Job(place, plan, spec))

    def cost(self, spec: Spec) -> float:
        """Guess how long a run takes."""
        ratings = self.data.ratings
        return spec.cost(self.settings.factors * (ratings.users + ratings.items))

    def keep(self, result: Result) -> None:
        """Write a run down."""
        self.store.keep(self._key(result.spec), result)
        self._known[result.spec] = result
        self.made += 1

    def find(self, spec: Spec) -> Result | None:
        """Return a run that was made before, now or by an earlier study in the folder."""
        if spec not in self._known:
            result = self.store.find(self._key(spec), spec)
            if result is None:
                return None
            self._known[spec] = result
            self.found += 1
        return self._known[spec]

    def _key(self, spec: Spec) -> str:
        return spec.key(self.data.digest, self.settings.factors)
