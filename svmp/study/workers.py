"""Runs in processes of their own, one thread each; how many there are changes no result."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from svmp.errors import StudyError, SvmpError
from svmp.interrupts import ignored
from svmp.study.data import Data
from svmp.study.runs import Result, Spec

Pipe = connection.Connection
WARM_UP = 0.0005
"""Scale of the draw on which the loops are compiled, before any worker needs them."""
LOOPS: dict[str, tuple[Spec, ...]] = {
    "full": (Spec("full"),),
    "drawn": (Spec("children", 1), Spec("batch", 10)),
    "default": (Spec("default", policy="unit"),),
}
"""What is compiled as a whole, and the runs on which that happens."""


def needs(spec: Spec) -> tuple[str, ...]:
    """Return which loops a run needs.

    >>> needs(Spec("batch", 100)), needs(Spec("default", policy="grow"))
    (('drawn',), ('full', 'drawn'))
    """
    if spec.method == "full":
        return ("full",)
    if spec.method == "default":
        return ("full", "drawn") if spec.policy == "grow" else ("default",)
    return ("drawn",)


class Worker:
    """A process that runs what it is sent, and sends back what came of it."""

    def __init__(self, process: BaseProcess, pipe: Pipe) -> None:
        self.process, self.pipe = process, pipe

    def send(self, asked: Spec | str) -> None:
        """Let it run something, or compile some loops."""
        self.pipe.send(asked)

    def receive(self) -> Result | float | None:
        """Return what came of it, or how far it is; None if it compiled; raise what it raised."""
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
                with one_thread(), ignored():
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
    """Run what comes until nothing does, with loops that were loaded before; or only load them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    from svmp.study.data import load_arrays
    from svmp.study.netflix import beginning, matrix_factorization
    from svmp.study.runs import execute

    ratings = load_arrays(Path(place))
    model, start = matrix_factorization(ratings, factors), beginning(ratings, factors, seed)
    loaded: set[str] = set()
    with suppress(EOFError, OSError):
        while True:
            asked = pipe.recv()
            run = isinstance(asked, Spec)
            try:
                for name in needs(asked) if run else (asked,):
                    if name not in loaded:
                        load_loops(name)
                        loaded.add(name)
                pipe.send(execute(model, start, asked, pipe.send) if run else None)
            except (SvmpError, MemoryError) as error:
                pipe.send(error if isinstance(error, SvmpError) else StudyError(str(error)))


def load_loops(name: str) -> None:
    """Load loops from the cache, or compile them, on hardly any data."""
    from svmp.datasets import netflix_shaped
    from svmp.study.netflix import beginning, matrix_factorization
    from svmp.study.runs import execute

    ratings = netflix_shaped(WARM_UP)
    model, start = matrix_factorization(ratings, 2), beginning(ratings, 2, 0)
    for spec in LOOPS[name]:
        execute(model, start, replace(spec, accesses=1.0, rho1=1 / 1024))


def ready(busy: dict[Any, Any]) -> list[Any]:
    """Return the pipes among these that have an answer, after waiting for one."""
    return connection.wait(list(busy), timeout=0.2)
