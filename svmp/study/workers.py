"""Worker processes with one thread each; their number changes no result."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Generic, TypeVar

from svmp.errors import StudyError, SvmpError
from svmp.interrupts import ignored
from svmp.study.data import Data
from svmp.study.runs import Result, Spec

Pipe = connection.Connection
J = TypeVar("J")
WARM_UP = 0.06
"""Scale of the ratings on which loops are compiled: 60,000, enough for the default to begin with a
sample, as it does on all of them."""
LOOPS: dict[str, tuple[Spec, ...]] = {
    "full": (Spec("full", accesses=1.0),),
    "drawn": (Spec("children", 1, accesses=1.0), Spec("batch", 10, accesses=1.0)),
    "default": (Spec("default", policy="unit", accesses=2e6),),
}
"""Groups of loops that are compiled together, with the runs that compile them."""


def needs(spec: Spec) -> tuple[str, ...]:
    """Return the groups of loops that a run needs.

    >>> needs(Spec("batch", 100)), needs(Spec("default", policy="grow"))
    (('drawn',), ('full', 'drawn'))
    """
    if spec.method == "full":
        return ("full",)
    if spec.method == "default":
        return ("full", "drawn") if spec.policy == "grow" else ("default",)
    return ("drawn",)


class PoolWorker:
    """One process of the pool."""

    def __init__(self, process: BaseProcess, pipe: Pipe) -> None:
        self.process, self.pipe = process, pipe

    def receive(self) -> Result | float | None:
        """Return a result, or the share that is done, or None after compiling; raise its errors."""
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            raise StudyError(
                "a worker process ended unexpectedly, perhaps because memory ran out; finished "
                "runs are kept: run the same command again, with --threads 1 if memory is short"
            ) from None
        if isinstance(answer, BaseException):
            raise answer
        return answer


class WorkerPool(Generic[J]):
    """Processes that make runs. They are started at the first run.

    Each group of loops is compiled in one process, before runs that need it are started.

    Attributes
    ----------
    compiled
        Groups of loops that are compiled.
    idle
        Workers without a task.
    """

    def __init__(self, size: int, data: Data, factors: int, seed: int) -> None:
        self.size, self.model = size, (data, factors, seed)
        self.compiled: set[str] = set()
        self.idle: list[PoolWorker] = []
        self._busy: dict[Pipe, tuple[PoolWorker, J | None, str]] = {}
        self._required: set[str] = set()
        self._open = ExitStack()

    def start(self) -> None:
        """Start the processes, unless that was done before."""
        if not self.idle and not self._busy:
            self.idle = list(self._open.enter_context(workers(self.size, *self.model)))

    def close(self) -> None:
        """End the processes."""
        self._open.close()

    @property
    def running(self) -> list[J]:
        """Jobs that are being run."""
        return [job for _, job, _ in self._busy.values() if job is not None]

    def require(self, specs: Iterable[Spec]) -> None:
        """Note which loops these runs will need."""
        self._required.update(name for spec in specs for name in needs(spec))

    def next_to_compile(self) -> str | None:
        """Return a group of loops that is required, and not compiled or being compiled."""
        compiling = {loops for _, _, loops in self._busy.values()}
        missing = self._required - self.compiled - compiling
        return next((name for name in LOOPS if name in missing), None)

    def compile(self, loops: str) -> None:
        """Let an idle worker compile a group of loops."""
        self._send(loops, None, loops)

    def run(self, job: J, spec: Spec) -> None:
        """Let an idle worker make the run of a job."""
        self._send(spec, job, "")

    def _send(self, task: Spec | str, job: J | None, loops: str) -> None:
        worker = self.idle.pop()
        worker.pipe.send(task)
        self._busy[worker.pipe] = worker, job, loops

    def messages(self) -> Iterator[tuple[J, Result | float]]:
        """Wait a moment; yield jobs with their results, or with the share of the run that is done.

        A worker whose task has ended is idle again.
        """
        for pipe in connection.wait(list(self._busy), timeout=0.2):
            assert isinstance(pipe, Pipe)
            worker, job, loops = self._busy[pipe]
            message = worker.receive()
            if not isinstance(message, float):
                del self._busy[pipe]
                self.idle.append(worker)
            if job is None:
                self.compiled.add(loops)
            elif message is not None:
                yield job, message


@contextmanager
def workers(count: int, data: Data, factors: int, seed: int) -> Iterator[list[PoolWorker]]:
    """Start processes that have the data, and end them whatever happens."""
    spawn = get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="svmp-study-") as folder:
        data.save(Path(folder))
        started: list[PoolWorker] = []
        try:
            for _ in range(count):
                here, there = spawn.Pipe()
                process = spawn.Process(
                    target=work, args=(there, folder, factors, seed), daemon=True
                )
                with one_thread(), ignored():
                    process.start()
                there.close()
                started.append(PoolWorker(process, here))
            yield started
        finally:
            for worker in started:
                worker.pipe.close()
                worker.process.terminate()
            for worker in started:
                worker.process.join()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let processes that start now use one thread for linear algebra."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def work(pipe: Pipe, folder: str, factors: int, seed: int) -> None:
    """Make the runs that arrive, or only compile loops, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    from svmp.study.data import load_arrays
    from svmp.study.netflix import beginning, matrix_factorization
    from svmp.study.runs import execute

    ratings = load_arrays(Path(folder))
    model, start = matrix_factorization(ratings, factors), beginning(ratings, factors, seed)
    loaded: set[str] = set()
    with suppress(EOFError, OSError):
        while True:
            task = pipe.recv()
            is_run = isinstance(task, Spec)
            try:
                for name in needs(task) if is_run else (task,):
                    if name not in loaded:
                        load_loops(name)
                        loaded.add(name)
                pipe.send(execute(model, start, task, pipe.send) if is_run else None)
            except (SvmpError, MemoryError) as error:
                pipe.send(error if isinstance(error, SvmpError) else StudyError(str(error)))


def load_loops(name: str) -> None:
    """Load a group of loops from the cache, or compile them, on a small data set."""
    from svmp.datasets import netflix_shaped
    from svmp.study.netflix import beginning, matrix_factorization
    from svmp.study.runs import execute

    ratings = netflix_shaped(WARM_UP)
    model, start = matrix_factorization(ratings, 2), beginning(ratings, 2, 0)
    for spec in LOOPS[name]:
        execute(model, start, replace(spec, rho1=1 / 1024))
