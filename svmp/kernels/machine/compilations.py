"""What is being compiled, and how long it took last time.

Numba reports the beginning and the end of each compilation. On a terminal every loop is named when
it begins; elsewhere a single notice is printed. Durations are kept for the next time, beside the
cache (durations.py). Loops that another one calls are compiled with it, and not named.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from numba.core import event

from svmp.kernels.machine.durations import add_durations, read_durations

NOTICE = "svmp: compiling loops for this machine, which happens once; later runs start at once"
SHORT = 0.5
"""Shorter compilations, in seconds, are not kept."""

_told = False
_begun: dict[int, float] = {}
"""When the compilation that runs now began, by the identity of its loop; compilations that it
starts are not here, and neither are further reports of it to other listeners."""


class Announce(event.Listener):
    """Tells what is compiled, with `tell`, and keeps how long it takes."""

    def __init__(self, tell: bool) -> None:
        self.tell = tell

    def on_start(self, event: Any) -> None:
        """Name a loop; after a notice, if it is the first."""
        global _told
        if _begun:
            return
        loop = event.data["dispatcher"]
        _begun[id(loop)] = time.perf_counter()
        if self.tell and not _told:
            _told = True
            print(NOTICE, file=sys.stderr)
        if self.tell and sys.stderr.isatty():
            print(f"svmp: {line_of(loop)}", file=sys.stderr)

    def on_end(self, event: Any) -> None:
        """Keep how long a loop took."""
        loop = event.data["dispatcher"]
        began = _begun.pop(id(loop), None)
        folder = folder_of(loop)
        if began is not None and folder is not None:
            seconds = time.perf_counter() - began
            if seconds >= SHORT:
                add_durations(folder, {name_of(loop): seconds})


def line_of(loop: Any) -> str:
    """Return what is compiled, and how long that took last time."""
    name, folder = name_of(loop), folder_of(loop)
    last = {} if folder is None else read_durations(folder)
    return f"compiling {name}" + (f" ({last[name]:,.1f} s last time)" if name in last else "")


def name_of(loop: Any) -> str:
    """Return the name of a loop, without the package and the folder of loops."""
    function = loop.py_func
    module = function.__module__.removeprefix("svmp.").removeprefix("kernels.")
    return f"{module}.{function.__name__}"


def folder_of(loop: Any) -> Path | None:
    """Return the folder of the compiled forms of a loop; None if they are not kept."""
    path = getattr(loop._cache, "cache_path", None)
    return None if path is None else Path(path)
