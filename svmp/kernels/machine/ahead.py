"""Compiling a loop in another process, while this one compiles others.

Numba compiles one function at a time in a process. A first fit needs one large loop and several
small ones, which take about as long together: on two cores it begins in half of the time. The other
process writes the loop to the cache on disk (cache.py), from which this one loads it. If that fails
in any way, this process compiles the loop itself; the bits are the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE = 300
"""Longest time to wait for a loop, in seconds."""

_running: dict[str, subprocess.Popen[bytes]] = {}


def start_python(
    code: str, *arguments: str, environment: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[bytes]:
    """Start a Python process that imports what this one would.

    It has no part in this one's terminal: Ctrl-C is for the process that the user has started.
    """
    package = str(Path(__file__).parents[3])
    paths = [package, *(path for path in sys.path if path and path != package)]
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **own, **(environment or {})},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        **options,
    )


def compile_ahead(path: str | None, code: str, *arguments: str) -> None:
    """Begin to compile the loop of a file of the cache, unless it is there or has begun.

    Parameters
    ----------
    path
        The file; None if nothing can be cached.
    code, arguments
        Python code that compiles the loop, and its arguments.
    """
    if path is None or path in _running or os.path.exists(path) or not sys.executable:
        return
    with suppress(OSError):
        _running[path] = start_python(
            code, *arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


def wait_for(path: str) -> None:
    """Wait for the process that compiles the loop of a file, if there is one."""
    process = _running.pop(path, None)
    if process is None:
        return
    try:
        process.wait(PATIENCE)
    except BaseException as error:
        process.kill()
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_running.clear)  # a child cannot wait for its siblings
