"""Compiling loops in another process, while this one compiles others.

Numba compiles one function at a time in a process. A first fit needs one large loop and several
small ones, which take about as long together: on two cores it begins in half of the time. The other
process writes its loops to the cache on disk (cache.py), from which this one loads them. If that
fails in any way, this process compiles the loops itself; the bits are the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE = 300
"""Longest time to wait for a loop, in seconds."""
OFTEN = 0.02
"""Time between looks for a file, in seconds."""

_running: dict[str, subprocess.Popen[bytes]] = {}


def start_python(
    code: str, *arguments: str, environment: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[bytes]:
    """Start a Python process that imports what this one would.

    It has no part in this one's terminal: Ctrl-C is for the process that the user has started.
    """
    package = str(Path(__file__).parents[3])
    entries: list[Any] = sys.path
    texts = (path for path in entries if isinstance(path, str))  # imports ignore others too
    paths = [package, *(path for path in texts if path and path != package)]
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **own, **(environment or {})},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        **options,
    )


def compile_ahead(paths: Sequence[str | None], code: str, *arguments: str) -> None:
    """Begin to compile the loops of files of the cache, unless they are there or have begun.

    Parameters
    ----------
    paths
        The files, each of which is complete as soon as it exists; None if nothing can be cached.
    code, arguments
        Python code that compiles the loops, and its arguments.
    """
    known = (path is None or path in _running or os.path.exists(path) for path in paths)
    frozen = getattr(sys, "frozen", False)  # then the executable is the application
    if all(known) or not sys.executable or frozen:
        return
    with suppress(OSError, ValueError):
        process = start_python(
            code, *arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for path in paths:
            if path is not None:
                _running.setdefault(path, process)


def wait_for(path: str) -> None:
    """Wait until the loop of a file is compiled, if a process compiles it.

    For the last file of a process, wait until the process ends.
    """
    process = _running.pop(path, None)
    if process is None:
        return
    others = process in _running.values()
    latest = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < latest:
            if process.poll() is not None or (others and os.path.exists(path)):
                return
            with suppress(subprocess.TimeoutExpired):
                process.wait(OFTEN)
    except BaseException:
        _end(process)
        raise
    _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_running.clear)  # a child cannot wait for its siblings
