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
from svmp.study.workers import LOOPS, Worker, needs, ready, workers

T = TypeVar("T")
Plan = Generator[Spec, Result, T]


class Watcher(Protocol):
    """Who is told how far it is; costs are guesses of seconds."""

    def expect(self, cost: float) -> None:
        """More is to be done."""

    def compile(self) -> None:
        """Loops are being compiled."""

    def begin(self, label: str) -> None:
        """A run begins."""

    def reach(self, cost: float) -> None:
        """So much is done of all runs that are going on."""

    def end(self, cost: float) -> None:
        """A run has ended."""


@dataclass
class Job:
    """A plan, its place among the plans, the run that it waits for, and how far that is."""

    place: int
    plan: Plan[Any]
    spec: Spec
    done: float = 0.0


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
        self._idle: list[Worker] = []
        self._busy: dict[Any, tuple[Worker, Job | str]] = {}
        self._wanted: set[str] = set()
        self._warm: set[str] = set()
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
            self._serve(queue, done)
        return [done[place] for place in range(len(plans))]

    def foresee(self, *specs: Spec) -> None:
        """Name runs that will be wanted, so that their loops are compiled beside other runs."""
        self._wanted.update(n for s in specs if self.find(s) is None for n in needs(s))

    def _serve(self, queue: list[Job], done: dict[int, Any]) -> None:
        """Keep the workers busy until every plan has ended; the longest runs go first."""
        if not self._idle and not self._busy:
            team = workers(self.threads, self.data, self.settings.factors, self.settings.seed)
            self._idle = list(self._open.enter_context(team))
        while queue or any(isinstance(asked, Job) for _, asked in self._busy.values()):
            self.foresee(*(job.spec for job in queue))
            queue.sort(key=lambda job: (-self.cost(job.spec), job.place))
            while self._idle and (asked := self._next(queue)) is not None:
                worker = self._idle.pop()
                worker.send(asked.spec if isinstance(asked, Job) else asked)
                self._busy[worker.pipe] = worker, asked
            for pipe in ready(self._busy):
                worker, asked = self._busy[pipe]
                result = worker.receive()
                if isinstance(result, float) and isinstance(asked, Job):
                    asked.done = result
                    self._tell()
                    continue
                del self._busy[pipe]
                self._idle.append(worker)
                if isinstance(asked, str):
                    self._warm.add(asked)
                elif isinstance(result, Result):
                    self.keep(result)
                    self.watcher.end(self.cost(asked.spec))
                    self._tell()
                    self._advance(asked.place, asked.plan, result, queue, done)

    def _tell(self) -> None:
        """Tell how much is done of the runs that are going on."""
        going = [job for _, job in self._busy.values() if isinstance(job, Job)]
        self.watcher.reach(sum(job.done * self.cost(job.spec) for job in going))

    def _next(self, queue: list[Job]) -> Job | str | None:
        """Return what to do next: compile, each loop in one worker, or run what is compiled."""
        compiling = {asked for _, asked in self._busy.values() if isinstance(asked, str)}
        for name in LOOPS:
            if name in self._wanted - self._warm - compiling:
                self.watcher.compile()
                return name
        for job in queue:
            if self._warm.issuperset(needs(job.spec)):
                queue.remove(job)
                self.watcher.begin(job.spec.label)
                return job
        return None

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
