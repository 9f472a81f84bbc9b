"""Return the memory of released parts to the system.

Variables refer to their densities and these to them, so their arrays are freed by the garbage
collector only, which runs by the number of objects and not by their size. And glibc keeps freed
arrays of a few megabytes. A fit of four sweeps to 10 parts of a million ratings took 1.20 GB, with
memory growing to the end, before this and `Network.release`, and 0.77 GB with both.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache
from itertools import count
from typing import Any

COLLECT, TRIM = 6, 3
"""Parts between garbage collections, which took 0.15 s each, and between returns of memory, after
which the next arrays are slower to write."""
_calls = count()


def return_unused() -> None:
    """Return unused memory; called before each part that is read in place of another."""
    calls = next(_calls)
    if calls % COLLECT == 0:
        gc.collect()
    trim = _malloc_trim()
    if trim is not None and calls % TRIM == 0:
        trim(0)


@cache
def _malloc_trim() -> Any:
    """Return glibc's `malloc_trim`; None where there is none."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL("libc.so.6").malloc_trim
    except (OSError, AttributeError):  # another C library
        return None
