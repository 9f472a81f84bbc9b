"""Threads of the compiled loops: their number, and how they share work.

Results have the same bits for any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from numbers import Integral
from typing import Any

import numpy as np
from numba.core import event

from svmp.errors import ModelError
from svmp.kernels.machine.compilations import Announce
from svmp.network.validation import shown

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Number of cores that this process may use; never more threads are run."""
VARIABLE = "SVMP_THREADS"
"""Environment variable with the number of threads, used if `fit` is not given one."""
SMALL = 20_000
"""With fewer memory accesses, starting other threads costs more than they save."""
STREAM = 10
"""Numbers that are read sequentially in the time of one random access."""

_in_use: ContextVar[int | None] = ContextVar("threads", default=None)


def number_of_threads(wanted: Any = None) -> int:
    """Return the number of threads: as given, from the environment, or the number of cores.

    >>> number_of_threads(1)
    1
    >>> number_of_threads(0)
    Traceback (most recent call last):
    svmp.errors.ModelError: threads must be a whole number of at least 1, not 0
    """
    name: str = "threads"
    if wanted is None:
        if not (text := os.environ.get(VARIABLE, "").strip()):
            return CORES
        name, wanted = VARIABLE, int(text) if text.isdecimal() else text
    if isinstance(wanted, bool) or not isinstance(wanted, Integral) or int(wanted) < 1:
        raise ModelError(f"{name} must be a whole number of at least 1, not {shown(wanted)}")
    return min(int(wanted), CORES)


def threads_in_use() -> int:
    """Return the number of threads for loops in this context; other contexts may differ.

    >>> with use_threads(1, tell=False):
    ...     threads_in_use()
    1
    """
    return _in_use.get() or number_of_threads()


@contextmanager
def use_threads(wanted: Any, tell: bool) -> Iterator[None]:
    """Run loops on a number of threads; with `tell`, say which must be compiled."""
    before = _in_use.set(number_of_threads(wanted))
    try:
        with event.install_listener("numba:compile", Announce(tell)):
            yield
    finally:
        _in_use.reset(before)


class threads_for:
    """Context manager: run loops with few memory accesses on the calling thread alone."""

    def __init__(self, accesses: int) -> None:
        self.wanted = 1 if accesses < SMALL else threads_in_use()

    def __enter__(self) -> None:
        self.before = _in_use.set(self.wanted)

    def __exit__(self, *why: object) -> None:
        _in_use.reset(self.before)


def share(loop: Callable[..., None], *arguments: Any) -> None:
    """Run a loop on every thread; its first argument is the counter that they claim keys from."""
    taken = np.zeros(1, dtype=np.int64)
    if threads_in_use() == 1:
        loop(taken, *arguments)
        return
    others = [_pool().submit(loop, taken, *arguments) for _ in range(threads_in_use() - 1)]
    try:
        loop(taken, *arguments)
    finally:
        for other in others:
            if not other.cancel():  # a call that has not started is not waited for
                other.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(CORES)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
