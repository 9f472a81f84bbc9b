"""The runs of the lab: a queue, the runs that are running, and updates for the page."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from svmp.lab.process import RunEnd, RunProcess
from svmp.lab.request import RunRequest

MOST_RUNNING = 2
MOST_KEPT = 12
PACE = 0.1
"""Least number of seconds between two updates of a page."""
HEARTBEAT = 15.0
"""Largest number of seconds between two updates of a page."""


class RunLimitReached(Exception):
    """The run limit is reached."""


@dataclass(eq=False)
class LabRun:
    """A run, with everything that a page shows of it.

    Attributes
    ----------
    colour
        Number of its colour in the chart: the smallest that no other run has.
    process
        Its process; None while the run waits.
    end
        How it ended; None before that.
    rows
        Iteration, accesses, seconds and bound, for each exact bound so far.
    version
        Number of changes, not counting new rows.
    """

    id: str
    request: RunRequest
    colour: int
    process: RunProcess | None = None
    end: RunEnd | None = None
    rows: list[list[float]] = field(default_factory=list)
    version: int = 1

    @property
    def state(self) -> str:
        """State of the run: waiting, running, stopping, or how it ended."""
        if self.end is not None:
            return self.end.state
        if self.process is None:
            return "waiting"
        return "stopping" if self.process.stopping else "running"

    @property
    def sentence(self) -> str:
        """Explanation of how it ended."""
        if self.end is None:
            return ""
        more = "; looking for a safe first step ..." if self.end.probing else ""
        return self.end.sentence + more

    def about(self) -> dict[str, Any]:
        """Return everything but the rows."""
        return {
            "id": self.id,
            "label": self.request.label,
            "data": self.request.data,
            "settings": dict(self.request.values),
            "colour": self.colour,
            "state": self.state,
            "sentence": self.sentence,
            "probing": bool(self.end and self.end.probing),
            "bound": self.end.bound if self.end else None,
        }


class Runs:
    """All runs that are kept. They live in one event loop and need no locks."""

    def __init__(self, make_process: Callable[[], RunProcess] = RunProcess) -> None:
        self.make_process = make_process
        self.kept: dict[str, LabRun] = {}
        self._count = 0
        self._closed = False
        self._working: dict[asyncio.Task[None], LabRun] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._spare: RunProcess | None = None
        self._news = asyncio.Event()

    def keep_a_spare(self) -> None:
        """Start a process for the next run, which then does not have to wait for it."""
        self._spare = self.make_process()
        self._spare.start()

    def add(self, request: RunRequest) -> LabRun:
        """Add a run, which starts when fewer than two others are running."""
        if len(self.kept) >= MOST_KEPT:
            raise RunLimitReached(f"at most {MOST_KEPT} runs are kept: remove one first")
        self._count += 1
        colour = min(set(range(MOST_KEPT)) - {run.colour for run in self.kept.values()})
        run = LabRun(str(self._count), request, colour)
        self.kept[run.id] = run
        self._changed(run)
        self._start()
        return run

    def stop(self, run: LabRun) -> None:
        """Stop a run."""
        if run in self._working.values() and run.process is not None:
            self._end(run.process)
        elif run.end is None:
            run.end = RunEnd("interrupted", "stopped before it began")
        self._changed(run)

    def remove(self, run: LabRun) -> None:
        """Stop a run and forget it."""
        self.stop(run)
        del self.kept[run.id]

    async def close(self) -> None:
        """Stop all runs, and wait until no process is left."""
        self._closed = True
        for run in [*self.kept.values(), *self._working.values()]:
            self.stop(run)
        if self._spare is not None:
            self._end(self._spare)
        self._wake()
        while left := {*self._working, *self._stopping}:
            await asyncio.wait(left)

    def _end(self, process: RunProcess) -> None:
        if not process.stopping:
            task = process.stop()
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    def _start(self) -> None:
        """Start waiting runs, up to the number that may run at a time."""
        for run in self.kept.values():
            if len(self._working) < MOST_RUNNING and run.state == "waiting":
                run.process = self._spare or self.make_process()
                if self._spare is not None:
                    self.keep_a_spare()
                task = asyncio.create_task(self._work(run, run.process))
                self._working[task] = run
                task.add_done_callback(self._worked)
                self._changed(run)

    async def _work(self, run: LabRun, process: RunProcess) -> None:
        def receive(message: list[float] | RunEnd) -> None:
            if isinstance(message, RunEnd):
                run.end = message
                self._changed(run)
            else:
                run.rows.append(message)
                self._wake()

        run.end = await process.run(run.request.to_json(), receive)

    def _worked(self, task: asyncio.Task[None]) -> None:
        run = self._working.pop(task)
        self._changed(run)
        if not self._closed:
            self._start()

    async def follow(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what has changed since the last update; the first update has everything."""
        seen: dict[str, tuple[int, int]] = {}
        while not self._closed:
            news = self._news
            yield self._changes(seen)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), HEARTBEAT)
            await asyncio.sleep(PACE)

    def _changes(self, seen: dict[str, tuple[int, int]]) -> dict[str, Any]:
        """Return the ids of all runs and what is new of those that changed, and mark it as seen."""
        changed = []
        for run in self.kept.values():
            before, now = seen.get(run.id, (0, 0)), (run.version, len(run.rows))
            if now != before:
                changed.append(run.about() | {"from": before[1], "rows": run.rows[before[1] :]})
                seen[run.id] = now
        return {"kept": list(self.kept), "changed": changed}

    def _changed(self, run: LabRun) -> None:
        run.version += 1
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
