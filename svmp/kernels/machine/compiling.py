"""How loops are compiled, and how threads share keys of different lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.extending import intrinsic

from svmp.kernels.machine.cache import LoopCache
from svmp.kernels.machine.inlined import Inlined
from svmp.kernels.machine.uninterrupted import defer_interrupts

defer_interrupts()
CHUNK = 16
"""Keys that a thread claims at a time: few, because keys differ in length."""


def compiler(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function with some options of Numba, and caches it."""

    def decorate(function: Callable[..., Any]) -> Any:
        loop = njit(**options)(function)
        if function.__closure__ is None:  # the key knows nothing of what a closure holds
            loop._cache = LoopCache(function)
        return loop

    return decorate


def inliner(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for functions that are compiled into the loops that call them."""
    alone = compiler(**options)

    def decorate(function: Callable[..., Any]) -> Any:
        return Inlined(function, {}, {"nopython": True, **options}, alone)

    return decorate


njit: Any = numba.njit
SETTINGS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
"""Sums may be added up in any order."""

jit = inliner(**SETTINGS, forceinline=True)
"""For functions that loops call. They are inlined into each loop: a function of its own would be
linked from wherever it was compiled first, and its last bits would differ between the process that
compiles a loop and those that load it from disk."""
bare = inliner(**SETTINGS, forceinline=True, _nrt=False)
"""For functions that allocate nothing either: without reference counts, of which a call may update
a dozen."""
shared = compiler(**SETTINGS, nogil=True)
"""For loops called from Python, such as those that `threads.share` runs on every thread. They are
compiled once, whereas Numba's parallel regions compile everything that they call four times."""


def _fetch_add(context: Any, counter: Any, amount: Any) -> Any:
    """Add to the first number of an array atomically; return its value before."""

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = target.make_array(signature.args[0])(target, builder, values[0])
        return builder.atomic_rmw("add", array.data, values[1], "monotonic")

    return types.int64(counter, types.int64), build


fetch_add: Any = intrinsic(_fetch_add)


@bare
def claim(counter: Any, amount: int) -> int:
    """Return the first of the next `amount` keys, which no other thread gets.

    Every thread claims keys until none is left, so a thread with short keys processes more. Each
    loop spells this out: a loop over claimed keys that took the work as a function could not be
    cached, because the type of that argument holds its address.
    """
    return fetch_add(counter, amount)
