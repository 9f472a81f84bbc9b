"""Runs in processes of their own, one thread each; how many there are changes no result."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from svmp.errors import StudyError, SvmpError
from svmp.study.data import Data
from svmp.study.runs import Result, Spec

Pipe = connection.Connection
WARM_UP = 0.0005
"""Scale of the draw on which the loops are compiled, before any worker needs them."""
LOOPS = (
    Spec("full"),
    Spec("children", 1, "a"),
    Spec("batch", 10, "a"),
    Spec("default", policy="unit"),
    Spec("batch", 10, "b"),
    Spec("children", 1, "b"),
    Spec("default", policy="grow"),
)
"""Runs that need every loop of a study; every other one shares most of its loops with the next."""


class Worker:
    """A process that runs what it is sent, and sends back what came of it."""

    def __init__(self, process: BaseProcess, pipe: Pipe) -> None:
        self.process, self.pipe = process, pipe

    def send(self, spec: Spec) -> None:
        """Let it run something."""
        self.pipe.send(spec)

    def receive(self) -> Result:
        """Return what came of it; raise what it raised."""
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            raise StudyError(
                "a worker process ended on its own, perhaps for want of memory; what is done is "
                "kept: run the same again, with --threads 1 if memory is short"
            ) from None
        if isinstance(answer, BaseException):
            raise answer
        return answer


@contextmanager
def workers(count: int, data: Data, factors: int, seed: int) -> Iterator[list[Worker]]:
    """Start processes that have the data, and end them whatever happens."""
    spawn = get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="svmp-study-") as place:
        data.save(Path(place))
        found: list[Worker] = []
        try:
            for _ in range(count):
                here, there = spawn.Pipe()
                process = spawn.Process(
                    target=work, args=(there, place, factors, seed), daemon=True
                )
                with one_thread():
                    process.start()
                there.close()
                found.append(Worker(process, here))
            yield found
        finally:
            for worker in found:
                worker.pipe.close()
                worker.process.terminate()
            for worker in found:
                worker.process.join()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let processes that start now leave the other cores to each other."""
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


def work(pipe: Pipe, place: str, factors: int, seed: int) -> None:
    """Run what comes until nothing does; for several runs, only compile what they need."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    from svmp.study.data import load_arrays
    from svmp.study.netflix import beginning, matrix_factorization
    from svmp.study.runs import execute

    ratings = load_arrays(Path(place))
    model, start = matrix_factorization(ratings, factors), beginning(ratings, factors, seed)
    with suppress(EOFError, OSError):
        while True:
            asked = pipe.recv()
            try:
                if isinstance(asked, Spec):
                    pipe.send(execute(model, start, asked))
                else:
                    compile_loops(asked)
                    pipe.send(None)
            except (SvmpError, MemoryError) as error:
                pipe.send(error if isinstance(error, SvmpError) else StudyError(str(error)))


def compile_loops(specs: Sequence[Spec]) -> None:
    """Let the loops of some runs be compiled, on hardly any data."""
    from svmp.study.netflix import beginning, matrix_factorization, netflix_shaped
    from svmp.study.runs import execute

    ratings = netflix_shaped(WARM_UP)
    model, start = matrix_factorization(ratings, 2), beginning(ratings, 2, 0)
    for spec in specs:
        execute(model, start, replace(spec, accesses=1.0, rho1=1 / 1024))


def compile_first(team: Sequence[Worker]) -> None:
    """Share the compiling out; then each worker finds in the cache what the others compiled."""
    for shares in ([LOOPS[i :: len(team)] for i in range(len(team))], [LOOPS] * len(team)):
        for worker, share in zip(team, shares, strict=True):
            worker.pipe.send(share)
        for worker in team:
            worker.receive()


def ready(busy: dict[Any, Any]) -> list[Any]:
    """Return the pipes among these that have an answer, after waiting for one."""
    return connection.wait(list(busy), timeout=0.2)
