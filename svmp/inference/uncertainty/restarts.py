"""Several starts of one fit, of which the hopeless are stopped early and the best is kept.

The bound of a network with mixtures or factors has many maxima, and the seed decides which of them
a fit finds. The starts run side by side and meet after 4, 8, 16, ... sweeps. There a start is
stopped if it would stay behind even if it gained, from then on, MARGIN times what the last doubling
of its sweeps has gained:

    bound(2 s) + MARGIN (bound(2 s) - bound(s)) < best bound so far.

Gains that shrink by a third or more with each doubling add up to at most twice the last one, so
that such a start cannot win any more. (A start that rests on a plateau before it rises is lost.)

What a start computes does not depend on the others, but for when it is stopped, and that is decided
when all have arrived. So the result has the same bits for any number of threads, and the best start
those of `svmp.fit(model, seed=...)` with the seed in its row of the table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from svmp.errors import ModelError
from svmp.inference.execute import Outcome
from svmp.inference.run import Observer, Run
from svmp.inference.run_record import Status
from svmp.inference.stopping import Interrupt, catch_interrupt
from svmp.network.validation import shown

FIRST = 4
"""Sweeps after which all starts meet for the first time; then after twice as many, and so on."""
MARGIN = 2.0
"""A start is stopped if this many times its last gain does not bring it to the best bound."""
MOST = 1000
"""Most starts of one fit."""


@dataclass(frozen=True)
class Restart:
    """How one start ended.

    Attributes
    ----------
    seed
        Its seed; `svmp.fit(model, seed=seed)` is the same run, if it was not stopped.
    bound, sweeps
        Its last bound, and the sweeps that it took.
    status
        As of a fit, or "stopped" if it was given up because it could not become the best.
    best
        Whether it is the one that is returned.
    """

    seed: int
    bound: float
    status: str
    sweeps: float
    best: bool = False


class Restarts(tuple[Restart, ...]):
    """The starts of a fit, in order; printed as a table."""

    def __repr__(self) -> str:
        heads = ("start", "seed", "bound", "status", "sweeps", "")
        lines = [
            (
                str(number),
                str(start.seed),
                f"{start.bound:,.6g}",
                start.status,
                f"{start.sweeps:,.3g}",
                "best" if start.best else "",
            )
            for number, start in enumerate(self)
        ]
        widths = [max(len(line[i]) for line in (heads, *lines)) for i in range(len(heads))]
        text = (
            "  ".join(
                cell.ljust(width) if i in (3, 5) else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in (heads, *lines)
        )
        return "\n".join(text)


def check_restarts(restarts: Any, options: dict[str, Any]) -> int:
    """Check the number of starts, and that no option is given that needs a single one."""
    if isinstance(restarts, bool) or not isinstance(restarts, Integral) or not 1 <= restarts <= MOST:
        raise ModelError(
            f"restarts must be a whole number from 1 to {MOST:,}, not {shown(restarts)}"
        )
    reasons = {
        "checkpoint": "a checkpoint holds one run; fit with the best seed of fit.restarts",
        "resume": "a checkpoint holds one run",
        "watch": "it follows one run; see fit.restarts at the end",
    }
    for name, reason in reasons.items():
        if restarts > 1 and options.get(name) is not None:
            raise ModelError(f"{name}= cannot be used with restarts={restarts}: {reason}")
    return int(restarts)


def seeds_of(seed: int, count: int) -> list[int]:
    """Return the seeds of all starts; the first is the given one.

    >>> seeds_of(7, 2)[0]
    7
    """
    others = np.random.SeedSequence(seed, spawn_key=(1,)).generate_state(count - 1, np.uint32)
    return [seed, *map(int, others)]


@dataclass
class Race:
    """Where the starts meet, and are stopped.

    Attributes
    ----------
    count
        Number of starts.
    permits
        How many run at the same time.
    interrupt
        Whether the user pressed Ctrl-C.
    ended
        By start, its bound at the end.
    stopped
        Those that were stopped.
    """

    count: int
    permits: threading.Semaphore
    interrupt: Interrupt
    ended: dict[int, float] = field(default_factory=dict)
    stopped: set[int] = field(default_factory=set)
    _arrived: dict[int, tuple[float, float]] = field(default_factory=dict)
    _round: int = 0
    _condition: threading.Condition = field(default_factory=threading.Condition)

    def observer(self, start: int) -> Observer:
        """Return the observer of one start, which waits for the others where they meet."""
        meets, last, read = float(FIRST), -np.inf, 0

        def observe(run: Run) -> Status | None:
            nonlocal meets, last, read
            if self.interrupt.pressed:
                return "interrupted"
            if run.sweeps < meets:
                return None
            measured = run.state.measured
            fresh = measured.accesses > read
            bound = measured.bound if fresh else np.nan
            gain, last = bound - last, bound if fresh else last
            meets, read = 2 * meets, measured.accesses
            self.meet(start, bound, gain)
            return "budget" if start in self.stopped else None

        return observe

    def meet(self, start: int, bound: float, gain: float) -> None:
        """Wait until every start that still runs has arrived, or has ended."""
        self.permits.release()
        with self._condition:
            here, self._arrived[start] = self._round, (bound, gain)
            self._decide()
            self._condition.wait_for(lambda: self._round > here or self.interrupt.pressed)
        self.permits.acquire()

    def leave(self, start: int, bound: float) -> None:
        """Note that a start has ended."""
        with self._condition:
            self.ended[start] = bound
            self._decide()

    def wake(self) -> None:
        """Let those that wait see that the user pressed Ctrl-C."""
        with self._condition:
            self._condition.notify_all()

    def _decide(self) -> None:
        """When all have arrived, stop the hopeless, and let the others go on."""
        if not self._arrived or len(self._arrived) + len(self.ended) < self.count:
            return
        known = [*(b for b, _ in self._arrived.values()), *self.ended.values()]
        best = max((b for b in known if np.isfinite(b)), default=-np.inf)
        self.stopped |= {s for s, (b, gain) in self._arrived.items() if b + MARGIN * gain < best}
        self._arrived.clear()
        self._round += 1
        self._condition.notify_all()


def best_of(
    execute: Callable[[int, tuple[Observer, ...]], Outcome],
    seeds: Sequence[int],
    threads: int,
) -> tuple[Outcome, Restarts]:
    """Run a fit from several seeds; return the one with the best bound, and how all ended.

    Parameters
    ----------
    execute
        Runs the fit with a seed and with more observers.
    seeds
        The seeds.
    threads
        How many starts run at the same time.
    """
    found: dict[int, Outcome] = {}
    errors: dict[int, BaseException] = {}
    with catch_interrupt(tell=True) as interrupt:
        race = Race(len(seeds), threading.Semaphore(threads), interrupt)

        def run(start: int) -> None:
            bound = -np.inf
            with race.permits:
                try:
                    outcome = execute(seeds[start], (race.observer(start),))
                    found[start], bound = outcome, outcome.run.state.measured.bound
                    if outcome.status == "diverged":
                        bound = -np.inf
                except BaseException as error:
                    errors[start] = error
                finally:
                    race.leave(start, bound)

        workers = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(seeds))]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                while worker.is_alive():
                    worker.join(0.05)
                    if interrupt.pressed:
                        race.wake()
        except KeyboardInterrupt:
            interrupt.pressed = True
            race.wake()
            raise
    if errors:
        raise errors[min(errors)]
    best = max(found, key=lambda start: (race.ended[start], -start))
    return found[best], Restarts(
        Restart(
            seeds[start],
            outcome.run.state.measured.bound,
            "stopped" if start in race.stopped else outcome.status,
            outcome.run.sweeps,
            start == best,
        )
        for start, outcome in sorted(found.items())
    )
