"""How the loops are compiled, and how threads share keys of different lengths.

Loops are cached on disk, and their sums may be added up in any order.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.core import types
from numba.extending import intrinsic

from svmp.kernels.machine.uninterrupted import defer_interrupts

defer_interrupts()
njit: Any = numba.njit
SETTINGS: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz"},
}
CHUNK = 16
"""Keys that a thread takes at a time: they differ in length, and who is done takes more."""

jit = njit(**SETTINGS, forceinline=True)
"""For what loops call. It becomes part of each loop: a function of its own would be taken from
where it was compiled first, and so differ in its last bits between the process that compiles a
loop and those that find it on disk."""
bare = njit(**SETTINGS, forceinline=True, _nrt=False)
"""For what allocates nothing besides: it counts no references, of which a call may hold a dozen."""
shared = njit(**SETTINGS, nogil=True)
"""For a loop that `threads.share` runs on every thread: compiled once, where Numba's parallel
regions compile all that they call four times."""


def _fetch_add(context: Any, counter: Any, amount: Any) -> Any:
    """Add to the first number of an array and return what it was, in one step for all threads."""

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = target.make_array(signature.args[0])(target, builder, values[0])
        return builder.atomic_rmw("add", array.data, values[1], "monotonic")

    return types.int64(counter, types.int64), build


fetch_add: Any = intrinsic(_fetch_add)


@bare
def claim(counter: Any, amount: int) -> int:
    """Return the first of the next few keys that no thread has taken yet.

    Every thread goes on until there are no more, so that one with short keys takes more of them.
    """
    return fetch_add(counter, amount)
