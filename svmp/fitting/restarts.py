"""Several starts of one fit, of which the hopeless are stopped early and the best is kept.

The bound of a network with mixtures or factors has many maxima, and the seed decides which of them
a fit finds. The starts run side by side and meet after 8, 16, 32, ... sweeps. There a start is
stopped if it is in the worse half of those that still run, and would stay behind even if it gained,
from then on, MARGIN times what the last doubling of its sweeps has gained:

    bound(2 s) + MARGIN (bound(2 s) - bound(s)) < best bound so far.

Gains that shrink by a sixth or more with each doubling add up to at most five times the last one,
so that such a start cannot win any more. One that rests on a plateau before it rises can be lost;
the better half, which always goes on, is the guard against that. (Of 420 sets of four starts of
mixtures and factors none lost its best start, at 61% of the sweeps; with a margin of 2, one did, at
53%.)

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
from svmp.inference.execute import Outcome, execute
from svmp.inference.program.default import uses_loops
from svmp.inference.running.problem import OneTable, Problem
from svmp.inference.running.progress import line_of_progress
from svmp.inference.running.run import Observer, Run
from svmp.inference.running.seeds import Seed, whole_seed
from svmp.inference.running.stopping import Interrupt, Status, catch_interrupt
from svmp.kernels.machine.threads import number_of_threads
from svmp.network.network import Network
from svmp.network.validation import shown
from svmp.posterior.record.restart_record import Restart, Restarts

FIRST = 8
"""Sweeps after which all starts meet for the first time; then after twice as many, and so on."""
MARGIN = 5.0
"""A start is stopped if this many times its last gain does not bring it to the best bound."""
MOST = 1000
"""Most starts of one fit."""


def check_restarts(restarts: Any, options: dict[str, Any]) -> int:
    """Check the number of starts, and that no option is given that needs a single one."""
    sound = isinstance(restarts, Integral) and not isinstance(restarts, bool)
    if not sound or not 1 <= int(restarts) <= MOST:
        raise ModelError(
            f"restarts must be a whole number from 1 to {MOST:,}, not {shown(restarts)}"
        )
    count = int(restarts)
    reasons = {
        "checkpoint": "a checkpoint holds one run; fit with the best seed of fit.restarts",
        "resume": "a checkpoint holds one run",
        "watch": "it follows one run; see fit.restarts at the end",
    }
    for name, reason in reasons.items():
        if count > 1 and options.get(name) is not None:
            raise ModelError(f"{name}= cannot be used with restarts={count}: {reason}")
    return count


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
            return "stopped" if start in self.stopped else None

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

    @property
    def in_words(self) -> str:
        """How far the starts are, for the line of progress."""
        best = max(self.ended.values(), default=-np.inf)
        done = f"{len(self.ended)} of {self.count} starts ended, {len(self.stopped)} stopped early"
        return f"{done}   best bound {best:,.2f}" if np.isfinite(best) else done

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
        worst = sorted(
            self._arrived, key=lambda s: (np.nan_to_num(self._arrived[s][0], nan=np.inf), -s)
        )
        for start in worst[: len(worst) // 2]:
            bound, gain = self._arrived[start]
            if bound + MARGIN * gain < best:  # never if one is unknown
                self.stopped.add(start)
        self._arrived.clear()
        self._round += 1
        self._condition.notify_all()


def best_start(
    problem: Problem, count: int, seed: Seed, options: dict[str, Any]
) -> tuple[Outcome, Restarts]:
    """Fit a problem from several seeds; the options are those of `execute`."""
    if not isinstance(problem, OneTable):
        raise ModelError(
            f"restarts={count} is for rows in one table; fit the parts with several seeds instead"
        )
    if seed is None:
        raise ModelError(f"seed=None cannot be used with restarts={count}; give a whole number")
    if not problem.network.hidden.keys() - set(options["init"] or {}):
        raise ModelError(
            f"init= of every variable cannot be used with restarts={count}: all starts would be "
            "the same; leave it out, or some variables of it"
        )
    network = problem.network
    threads, loops = number_of_threads(options["threads"]), options["kernels"]
    loops = uses_loops(network) if loops is None else loops
    # Plain code holds the interpreter's lock: its starts would only wait for each other.
    together = min(threads, count) if loops else 1
    own = {**options, "threads": max(1, threads // together), "progress": False}

    def run(seed: int, observers: tuple[Observer, ...]) -> Outcome:
        # A network caches what its last run has drawn, so that each start has one of its own.
        mine = Network(network.model, network.learned, continued=network.continued)
        return execute(OneTable(mine), seed=seed, observers=observers, **own)

    wanted = options["progress"]
    return best_of(run, seeds_of(whole_seed(seed), count), together, wanted)


def best_of(
    start_from: Callable[[int, tuple[Observer, ...]], Outcome],
    seeds: Sequence[int],
    together: int,
    progress: bool | None = False,
) -> tuple[Outcome, Restarts]:
    """Run a fit from several seeds; return the one with the best bound, and how all ended.

    Parameters
    ----------
    start_from
        Runs the fit with a seed and with more observers.
    seeds
        The seeds.
    together
        How many starts run at the same time.
    progress
        Whether to show a line of progress; None for on a terminal or in a notebook.
    """
    found: dict[int, Outcome] = {}
    errors: dict[int, BaseException] = {}
    with catch_interrupt() as interrupt, line_of_progress(progress) as show:
        race = Race(len(seeds), threading.Semaphore(together), interrupt)

        def run(start: int) -> None:
            bound = -np.inf
            with race.permits:
                try:
                    outcome = start_from(seeds[start], (race.observer(start),))
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
                    show(race.in_words)
                    if interrupt.pressed:
                        race.wake()
        except KeyboardInterrupt:
            interrupt.pressed = True
            race.wake()
            raise
    if errors:
        raise errors[min(errors)]
    best = max(found, key=lambda s: (s not in race.stopped, race.ended[s], -s))
    return found[best], Restarts(
        Restart(
            seeds[start],
            outcome.run.state.measured.bound,
            outcome.status,
            outcome.run.sweeps,
            start == best,
        )
        for start, outcome in sorted(found.items())
    )
