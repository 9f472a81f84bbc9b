"""When to stop: converged, out of budget, or interrupted."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from svmp.families.family import Array
from svmp.kernels.machine.elements import moved_kl
from svmp.network.beliefs import Beliefs
from svmp.network.variable import Variable

SAMPLES = 32
"""Iterates of a stretch that its average is made of, at most: those between are hardly others."""


@dataclass
class Budget:
    """What a run may spend; None means without limit."""

    max_sweeps: float | None = None
    max_accesses: float | None = None
    max_seconds: float | None = None
    began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return time.perf_counter() - self.began

    def used(self, sweeps: float, accesses: int) -> float:
        """Return the share of the tightest limit that is used up; 1 when it is reached."""
        used = (sweeps, accesses, self.seconds)
        limits = (self.max_sweeps, self.max_accesses, self.max_seconds)
        shares = [u / limit for u, limit in zip(used, limits, strict=True) if limit is not None]
        return max(shares, default=0.0)


@dataclass
class Window:
    """Averages of q over stretches of the run, and how far apart two of them are.

    A stretch ends when its steps add up to 1: that is a sweep of full VB, and many iterations
    where steps are small, so that a run does not seem at rest because its steps are. Of those many
    some are averaged, at even distances.

    Attributes
    ----------
    clock
        Sum of the steps since the stretch began.
    count, total
        Iterates taken in since then, and the sum of their natural parameters.
    last, last_moments
        Averages of the stretch before, as natural parameters and as moments; at first, the start.
    """

    clock: float = 0.0
    count: int = 0
    total: dict[str, Array] = field(default_factory=dict)
    last: dict[str, Array] = field(default_factory=dict)
    last_moments: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def at(cls, q: Beliefs, names: list[str]) -> Window:
        """Begin at q, with the variables of these names."""
        natural, moments = ({n: a[n].copy() for n in names} for a in (q.natural, q.moments))
        return cls(last=natural, last_moments=moments)

    def pass_by(self, q: Beliefs, step: float, hidden: Mapping[str, Variable]) -> float | None:
        """Take in an iteration; return how far a stretch that ends with it is from the last one.

        That is the symmetrised KL between their averages, in nats an element:
        KL(q || q') + KL(q' || q) = (lambda - lambda') . (m - m'), summed over all factors.
        """
        before, self.clock = self.clock, self.clock + step + 1e-12
        if int(self.clock * SAMPLES) == int(before * SAMPLES):
            return None
        self.count += 1
        ends = self.clock >= 1
        if ends and self.count == 1:
            return self._end(q.natural, q.moments)
        for name in self.last:
            if self.count == 1:
                self.total[name] = q.natural[name].copy()
            else:
                self.total[name] += q.natural[name]
        if not ends:
            return None
        average = {name: total / self.count for name, total in self.total.items()}
        return self._end(average, {n: hidden[n].family.moments(a) for n, a in average.items()})

    def _end(self, natural: Mapping[str, Array], moments: Mapping[str, Array]) -> float:
        moved = math.fsum(  # the same in any order of the variables
            moved_kl(natural[name], moments[name], last, self.last_moments[name])
            for name, last in self.last.items()
        )
        self.clock, self.count = 0.0, 0
        self.total.clear()
        return max(moved, 0.0) / max(sum(map(len, self.last.values())), 1)


@dataclass
class Interrupt:
    """Whether the user pressed Ctrl-C.

    Attributes
    ----------
    outer
        That of the code around, which is told of it too.
    tell
        Whether to say on stderr that it was heard.
    pressed
        Whether it was pressed, here or in a part that catches it on its own.
    waiting
        Whether it was pressed here, and no such part has come since: the next ends at once.
    """

    outer: Interrupt | None = None
    tell: bool = False
    pressed: bool = False
    waiting: bool = False

    def press(self) -> None:
        """Note it here and outside."""
        first, self.pressed = not self.pressed, True
        if self.tell and first:
            os.write(2, NOTICE)
        if self.outer is not None:
            self.outer.press()


NOTICE = b"svmp: interrupted: ending with what was learned; Ctrl-C again ends it sooner\n"
_innermost: Interrupt | None = None


@contextmanager
def catch_interrupt(tell: bool = False) -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a flag, so that no update is cut in half; a second one raises.

    Where Ctrl-C is ignored, it stays so. Of several of these inside each other, the innermost ends
    first, and those outside know of it.
    """
    global _innermost
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield Interrupt()
        return
    outer = _innermost
    flag = _innermost = Interrupt(outer, tell)
    if outer is not None and outer.waiting:
        flag.pressed, outer.waiting = True, False

    def handle(number: int, frame: FrameType | None) -> None:
        if flag.pressed:
            raise KeyboardInterrupt
        flag.waiting = True
        flag.press()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, before)
        _innermost = outer
