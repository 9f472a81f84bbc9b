"""Run recipes in processes, some at a time, the longest first."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from svmp.kernels.machine.ahead import start_python

CODE = """
import sys
from svmp.warm.recipes import RECIPES
try:
    RECIPES[sys.argv[1]]()
except ModuleNotFoundError as error:
    print(f"needs {error.name}", file=sys.stderr)
    sys.exit(3)
"""
MISSING = 3
"""Exit code of a recipe whose extra is not installed."""


class Outcome(NamedTuple):
    """A recipe that has ended.

    Attributes
    ----------
    name, seconds
        The recipe, and how long it took.
    skipped, error
        Why it was not run, or the last line of its error; "" if there is none.
    """

    name: str
    seconds: float
    skipped: str = ""
    error: str = ""


@dataclass(eq=False)
class Processes:
    """The processes that run now, which end with this one."""

    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    stopped: bool = False

    def run(self, name: str) -> Outcome:
        """Run a recipe in a process of its own, on one thread."""
        began = time.perf_counter()
        if self.stopped:
            return Outcome(name, 0.0, "interrupted")
        process = start_python(
            CODE,
            name,
            environment={"SVMP_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.running.append(process)
        _, errors = process.communicate()
        said = errors.decode(errors="replace").strip().splitlines()
        last, seconds = said[-1] if said else "", time.perf_counter() - began
        if process.returncode == MISSING:
            return Outcome(name, seconds, last)
        return Outcome(name, seconds, "", last or "it ended early" if process.returncode else "")

    def stop(self) -> None:
        """End all processes."""
        self.stopped = True
        for process in self.running:
            process.kill()


def run_recipes(
    names: Iterable[str],
    jobs: int,
    before: dict[str, float],
    begins: Callable[[str], None],
    ends: Callable[[Outcome], None],
) -> list[Outcome]:
    """Run recipes, `jobs` at a time; those that took longest before are started first.

    `begins` and `ends` are called from the threads that wait for the processes.
    """
    order = sorted(names, key=lambda name: -before.get(name, float("inf")))
    processes = Processes()

    def one(name: str) -> Outcome:
        if not processes.stopped:
            begins(name)
        outcome = processes.run(name)
        if not processes.stopped:
            ends(outcome)
        return outcome

    with ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(one, order))
        except BaseException:
            processes.stop()
            raise
