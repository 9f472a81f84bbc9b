"""Waiting for a Dask cluster with a deadline, and recognising what it has lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import wait as wait_for_threads
from contextlib import contextmanager
from threading import Thread
from typing import TypeVar

from distributed import CancelledError, KilledWorker
from distributed.comm.core import CommClosedError

Result = TypeVar("Result")
LOOK = 1.0
"""Seconds between two looks at the workers while tasks are waited for."""
LOST = (TimeoutError, CancelledError, KilledWorker, CommClosedError, OSError)
"""How Dask says that a worker, a task or a connection was lost."""


class LostRound(Exception):
    """A round that must be run again."""


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
    outcome = started(call)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if wait_for_threads([outcome], timeout=min(left, LOOK)).done:
            return outcome.result()
        if look is not None:
            look()
    raise TimeoutError(f"the Dask cluster did not answer within {seconds:g} seconds")


def all_within(seconds: float, calls: Iterable[Callable[[], Result]]) -> list[Result | None]:
    """Return the results of calls to the cluster that are made at once; None for those too late."""
    outcomes = [started(call) for call in calls]
    wait_for_threads(outcomes, timeout=seconds)
    return [outcome.result() if outcome.done() else None for outcome in outcomes]


def started(call: Callable[[], Result]) -> ThreadFuture[Result]:
    """Start a call in a thread of its own, which is left behind if it does not end."""
    outcome: ThreadFuture[Result] = ThreadFuture()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=run, daemon=True, name="svmp-call").start()
    return outcome
