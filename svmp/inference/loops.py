"""Whether a fit uses compiled loops outside its updaters.

Updaters have plain versions of their own (updaters/offers.py). Passes over all elements and draws
of rows belong to no updater: they ask here, so that `kernels=False` compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

_loops: ContextVar[bool] = ContextVar("svmp_loops", default=True)
_compiling: ContextVar[bool] = ContextVar("svmp_compiling", default=True)
P = ParamSpec("P")
R = TypeVar("R")


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


def refusing_loops(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that it compiles nothing if it is called with kernels=False.

    Without that argument a small network is fitted by plain code too, except for the factors of
    joint blocks, whose loops are compiled for networks of any size.
    """

    @wraps(function)
    def called(*args: P.args, **options: P.kwargs) -> R:
        given: dict[str, Any] = dict(options)
        before = _compiling.set(given.get("kernels") is not False)
        try:
            return function(*args, **options)
        finally:
            _compiling.reset(before)

    return called


def may_compile() -> bool:
    """Return whether loops may be compiled: not in a call with kernels=False."""
    return _compiling.get()
