"""The runs of the lab: which wait, which are running, and what a page hears of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from svmp.lab.plan import Plan
from svmp.lab.process import End, Worker

MOST_RUNNING = 2
MOST_KEPT = 12
PACE = 0.1
"""Seconds between two updates of a page, at least."""
HEARTBEAT = 15.0
"""Seconds between two updates of a page, at most."""


class TooMany(Exception):
    """There are as many runs as are kept."""


@dataclass(eq=False)
class Run:
    """A run, and all that a page shows of it.

    Attributes
    ----------
    colour
        Number of its colour in the chart: the first that no other run has.
    worker
        Its process, once it has begun.
    end
        How it ended, if it has.
    rows
        Iteration, accesses, seconds and bound, for each exact bound so far.
    version
        Grows with every change but that of the rows.
    """

    id: str
    plan: Plan
    colour: int
    worker: Worker | None = None
    end: End | None = None
    rows: list[list[float]] = field(default_factory=list)
    version: int = 1

    @property
    def state(self) -> str:
        """Where it stands, in a word."""
        if self.end is not None:
            return self.end.state
        if self.worker is None:
            return "waiting"
        return "stopping" if self.worker.stopping else "running"

    @property
    def sentence(self) -> str:
        """What there is to say about its end."""
        if self.end is None:
            return ""
        more = "; looking for a safe first step ..." if self.end.probing else ""
        return self.end.sentence + more

    def about(self) -> dict[str, Any]:
        """Return everything but the rows."""
        return {
            "id": self.id,
            "label": self.plan.label,
            "data": self.plan.data,
            "settings": dict(self.plan.values),
            "colour": self.colour,
            "state": self.state,
            "sentence": self.sentence,
            "probing": bool(self.end and self.end.probing),
            "bound": self.end.bound if self.end else None,
        }


class Runs:
    """All runs that are kept. They live in one event loop, and need no locks."""

    def __init__(self, make_worker: Callable[[], Worker] = Worker) -> None:
        self.make_worker = make_worker
        self.kept: dict[str, Run] = {}
        self._count = 0
        self._closed = False
        self._working: dict[asyncio.Task[None], Run] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._spare: Worker | None = None
        self._news = asyncio.Event()

    def keep_a_spare(self) -> None:
        """Start a process for the next run already, which then need not wait for it."""
        self._spare = self.make_worker()
        self._spare.start()

    def add(self, plan: Plan) -> Run:
        """Take in a run, which starts when fewer than two others are running."""
        if len(self.kept) >= MOST_KEPT:
            raise TooMany(f"{MOST_KEPT} runs are kept at most: remove one first")
        self._count += 1
        colour = min(set(range(MOST_KEPT)) - {run.colour for run in self.kept.values()})
        run = Run(str(self._count), plan, colour)
        self.kept[run.id] = run
        self._changed(run)
        self._start()
        return run

    def stop(self, run: Run) -> None:
        """Let a run end where it is."""
        if run in self._working.values() and run.worker is not None:
            self._end(run.worker)
        elif run.end is None:
            run.end = End("interrupted", "stopped before it began")
        self._changed(run)

    def remove(self, run: Run) -> None:
        """Forget a run, which is stopped first."""
        self.stop(run)
        del self.kept[run.id]

    async def close(self) -> None:
        """Stop everything, and wait until no process is left."""
        self._closed = True
        for run in [*self.kept.values(), *self._working.values()]:
            self.stop(run)
        if self._spare is not None:
            self._end(self._spare)
        self._wake()
        while left := {*self._working, *self._stopping}:
            await asyncio.wait(left)

    def _end(self, worker: Worker) -> None:
        if not worker.stopping:
            task = worker.stop()
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    def _start(self) -> None:
        """Start runs that wait, as many as may run."""
        for run in self.kept.values():
            if len(self._working) < MOST_RUNNING and run.state == "waiting":
                run.worker = self._spare or self.make_worker()
                if self._spare is not None:
                    self.keep_a_spare()
                task = asyncio.create_task(self._work(run, run.worker))
                self._working[task] = run
                task.add_done_callback(self._worked)
                self._changed(run)

    async def _work(self, run: Run, worker: Worker) -> None:
        def hear(news: list[float] | End) -> None:
            if isinstance(news, End):
                run.end = news
                self._changed(run)
            else:
                run.rows.append(news)
                self._wake()

        run.end = await worker.run(run.plan.order, hear)

    def _worked(self, task: asyncio.Task[None]) -> None:
        run = self._working.pop(task)
        self._changed(run)
        if not self._closed:
            self._start()

    async def follow(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what has changed since the last time; at first, everything there is."""
        seen: dict[str, tuple[int, int]] = {}
        while not self._closed:
            news = self._news
            yield self._changes(seen)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), HEARTBEAT)
            await asyncio.sleep(PACE)

    def _changes(self, seen: dict[str, tuple[int, int]]) -> dict[str, Any]:
        """Return which runs are kept, and of those that changed what is new; note it as seen."""
        changed = []
        for run in self.kept.values():
            before, now = seen.get(run.id, (0, 0)), (run.version, len(run.rows))
            if now != before:
                changed.append(run.about() | {"from": before[1], "rows": run.rows[before[1] :]})
                seen[run.id] = now
        return {"kept": list(self.kept), "changed": changed}

    def _changed(self, run: Run) -> None:
        run.version += 1
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
