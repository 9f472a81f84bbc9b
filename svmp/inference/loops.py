"""Whether a fit uses compiled loops outside its updaters.

Updaters have plain versions of their own (updaters/offers.py). Passes over all elements and draws
of rows belong to no updater: they ask here, so that `kernels=False` compiles nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_loops: ContextVar[bool] = ContextVar("svmp_loops", default=True)


@contextmanager
def use_loops(wanted: bool) -> Iterator[None]:
    """Run a fit with compiled loops, or without."""
    before = _loops.set(wanted)
    try:
        yield
    finally:
        _loops.reset(before)


def loops_in_use() -> bool:
    """Return whether the fit that runs uses compiled loops."""
    return _loops.get()
