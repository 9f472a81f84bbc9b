"""Faults on purpose in Dask workers: a process that ends or hangs in a phase of a task.

A fault happens once for each file that is put into a folder under the name of the phase: the
worker that removes the file has the fault.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

from distributed import WorkerPlugin

PHASES = ("load", "own", "sums", "bound", "return")


class Faults(WorkerPlugin):
    """Makes every worker of a cluster, present or future, look for faults in a folder."""

    name = "faults"

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def setup(self, worker: Any) -> None:
        from svmp.parts import cache, tasks
        from svmp.parts.part import Part

        folder = Path(self.folder)
        for owner, attribute, phase, late in (
            (cache, "_load", "load", False),
            (Part, "update", "own", False),
            (Part, "add_sums", "sums", True),
            (Part, "terms", "bound", False),
            (tasks, "visit_parts", "return", True),
        ):
            setattr(owner, attribute, faulty(getattr(owner, attribute), folder, phase, late))


def faulty(
    function: Callable[..., Any], folder: Path, phase: str, late: bool
) -> Callable[..., Any]:
    """Return a function that has a fault before it begins, or before it returns."""

    def replaced(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options) if late else None
        if claimed(folder / phase):
            with (folder / "killed").open("a") as file:
                print(phase, file=file)
            os.kill(os.getpid(), signal.SIGKILL)
        if claimed(folder / f"hang-{phase}"):
            while not (folder / "go-on").exists():
                Event().wait(0.05)
        return result if late else function(*arguments, **options)

    replaced.__module__, replaced.__qualname__ = function.__module__, function.__qualname__
    replaced.__name__ = function.__name__
    return replaced


def claimed(path: Path) -> bool:
    """Remove a file; return whether it was there."""
    with suppress(FileNotFoundError):
        path.unlink()
        return True
    return False
