"""Run experiments side by side in worker processes; runs that were made before are reused.

An experiment is a generator. It yields the spec of each run that it needs, is sent the result, and
returns what it found. So a search over many runs is written as if it were the only one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from svmp.study.data import Data
from svmp.study.runs import Result, Spec
from svmp.study.settings import Settings
from svmp.study.store import Store
from svmp.study.workers import WorkerPool, needs

T = TypeVar("T")
Experiment = Generator[Spec, Result, T]


class ProgressListener(Protocol):
    """Receives the progress of a study; costs are estimates in seconds."""

    def expect(self, cost: float) -> None:
        """A run was added."""

    def compile(self) -> None:
        """Loops are being compiled."""

    def begin(self, label: str) -> None:
        """A run begins."""

    def reach(self, cost: float) -> None:
        """So much of all unfinished runs is done."""

    def end(self, cost: float) -> None:
        """A run has ended."""


@dataclass
class Job:
    """A run that an experiment waits for.

    Attributes
    ----------
    index
        Position of the experiment among those that are run together.
    done
        Share of the run that is done.
    """

    index: int
    experiment: Experiment[Any]
    spec: Spec
    done: float = 0.0


class KnownRuns:
    """Runs that were made before, by this study or by an earlier one in the same folder.

    Attributes
    ----------
    made, found
        Number of runs that were made now, and that were read from the folder.
    """

    def __init__(self, store: Store, digest: str, factors: int) -> None:
        self.store, self.digest, self.factors = store, digest, factors
        self.made = self.found = 0
        self._results: dict[Spec, Result] = {}

    def keep(self, result: Result) -> None:
        """Write a run to the folder."""
        self.store.keep(self._key(result.spec), result)
        self._results[result.spec] = result
        self.made += 1

    def find(self, spec: Spec) -> Result | None:
        """Return the result of a run if there is one."""
        if spec not in self._results:
            result = self.store.find(self._key(spec), spec)
            if result is None:
                return None
            self._results[spec] = result
            self.found += 1
        return self._results[spec]

    def _key(self, spec: Spec) -> str:
        return spec.key(self.digest, self.factors)


class Runner:
    """Makes the runs of one study."""

    def __init__(
        self, store: Store, settings: Settings, data: Data, listener: ProgressListener, threads: int
    ) -> None:
        self.store, self.settings, self.data, self.listener = store, settings, data, listener
        self.runs = KnownRuns(store, data.digest, settings.factors)
        self.pool: WorkerPool[Job] = WorkerPool(threads, data, settings.factors, settings.seed)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *raised: object) -> None:
        self.pool.close()

    def budget(self, which: int) -> float:
        """Return the accesses of a kind of run: Algorithm 1, 2, the answer, full VB alone."""
        accesses = self.settings.sweeps[which] * self.data.sweep(self.settings.factors)
        limit = self.settings.max_accesses
        return accesses if limit is None else min(accesses, limit)

    def spec(self, method: Any, which: int, **options: Any) -> Spec:
        """Describe a run under the settings of the study."""
        common = {"kappa": self.settings.kappa, "seed": self.settings.seed}
        return Spec(method, accesses=self.budget(which), **{**common, **options})

    def find(self, spec: Spec) -> Result | None:
        """Return the result of a run that was made before, if there is one."""
        return self.runs.find(spec)

    def results(self, specs: Iterable[Spec]) -> list[Result]:
        """Make runs that do not depend on each other."""

        def single(spec: Spec) -> Experiment[Result]:
            return (yield spec)

        return self.run_all([single(spec) for spec in specs])

    def run_all(self, experiments: Sequence[Experiment[T]]) -> list[T]:
        """Run experiments side by side, and return what they return."""
        found: dict[int, T] = {}
        queue: list[Job] = []
        for index, experiment in enumerate(experiments):
            self._advance(index, experiment, None, queue, found)
        if queue:
            self._serve(queue, found)
        return [found[index] for index in range(len(experiments))]

    def prepare(self, *specs: Spec) -> None:
        """Name runs that will be needed, so that their loops are compiled beside other runs."""
        self.pool.require(spec for spec in specs if self.find(spec) is None)

    def _serve(self, queue: list[Job], found: dict[int, Any]) -> None:
        """Keep the workers busy until every experiment has ended; the longest runs go first."""
        self.pool.start()
        while queue or self.pool.running:
            self.pool.require(job.spec for job in queue)
            queue.sort(key=lambda job: (-self.cost(job.spec), job.index))
            while self.pool.idle and self._assign(queue):
                pass
            for job, message in self.pool.messages():
                if isinstance(message, Result):
                    self.runs.keep(message)
                    self.listener.end(self.cost(job.spec))
                    self._report()
                    self._advance(job.index, job.experiment, message, queue, found)
                else:
                    job.done = message
                    self._report()

    def _assign(self, queue: list[Job]) -> bool:
        """Give a worker loops to compile, or a run whose loops are compiled, if there is one."""
        loops = self.pool.next_to_compile()
        if loops is not None:
            self.listener.compile()
            self.pool.compile(loops)
            return True
        for job in queue:
            if self.pool.compiled.issuperset(needs(job.spec)):
                queue.remove(job)
                self.listener.begin(job.spec.label)
                self.pool.run(job, job.spec)
                return True
        return False

    def _report(self) -> None:
        """Report how much of the unfinished runs is done."""
        self.listener.reach(sum(job.done * self.cost(job.spec) for job in self.pool.running))

    def _advance(
        self,
        index: int,
        experiment: Experiment[T],
        result: Result | None,
        queue: list[Job],
        found: dict[int, T],
    ) -> None:
        """Send an experiment its result, until it needs a run that was never made."""
        try:
            spec = next(experiment) if result is None else experiment.send(result)
            while (known := self.find(spec)) is not None:
                spec = experiment.send(known)
        except StopIteration as end:
            found[index] = end.value
        else:
            self.listener.expect(self.cost(spec))
            queue.append(Job(index, experiment, spec))

    def cost(self, spec: Spec) -> float:
        """Estimate how long a run takes."""
        ratings = self.data.ratings
        return spec.cost(self.settings.factors * (ratings.users + ratings.items))
