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
from svmp.study.data import Data
from svmp.study.runs import Result, Spec

Pipe = connection.Connection
WARM_UP = 0.0005
"""Scale of the draw on which the loops are compiled, before any worker needs them."""


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
    """Run what comes until nothing does; None is answered when all loops are compiled."""
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
                if asked is None:
                    compile_loops()
                pipe.send(None if asked is None else execute(model, start, asked))
            except (SvmpError, MemoryError) as error:
                pipe.send(error if isinstance(error, SvmpError) else StudyError(str(error)))


def compile_loops() -> None:
    """Call every loop that a study needs once, on hardly any data."""
    from svmp.study.netflix import beginning, matrix_factorization, netflix_shaped
    from svmp.study.runs import execute

    ratings = netflix_shaped(WARM_UP)
    model, start = matrix_factorization(ratings, 2), beginning(ratings, 2, 0)
    for spec in (
        Spec("full"),
        Spec("children", 1, "a"),
        Spec("children", 1, "b"),
        Spec("batch", 10, "a"),
        Spec("batch", 10, "b"),
        Spec("default", policy="unit"),
        Spec("default", policy="grow"),
    ):
        execute(model, start, replace(spec, accesses=1.0, rho1=1 / 1024))


def ready(busy: dict[Any, Any]) -> list[Any]:
    """Return the pipes among these that have an answer, after waiting for one."""
    return connection.wait(list(busy), timeout=0.2)
