"""One BLAS thread during a fit, so that its bits do not depend on the number of threads.

A BLAS library adds up a product of matrices in another order on two threads than on one, so that
the last bits differ, whereas a fit has the same bits on any number of `threads`. BLAS also starts a
thread for each core, however busy the machine is: a Cholesky factor of 1,001 unknowns then took 1.0
s on two busy cores, and .03 s on one thread.

The limit holds for the whole process. Fits in several threads share it: the first one sets it, and
the last one removes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_running: list[Any] = []
"""One limit for each fit that is running, of which the first is in effect."""


@cache
def _libraries() -> Any:
    """Return the BLAS libraries of this process, which are searched for once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread.

    >>> with one_blas_thread():
    ...     [library.num_threads for library in _libraries().lib_controllers][:1]
    [1]
    """
    with _lock:
        limit = _running[0] if _running else _libraries().limit(limits=1, user_api="blas")
        _running.append(limit)
    try:
        yield
    finally:
        with _lock:
            _running.pop()
            if not _running:
                limit.restore_original_limits()
