"""When to stop: converged, out of budget, or interrupted."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network


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
    where steps are small, so that a run does not seem at rest because its steps are.

    Attributes
    ----------
    clock
        Sum of the steps since the stretch began.
    count, total
        Iterations since then, and the sum of their natural parameters.
    last
        Averages of the stretch before; at first, the start.
    """

    clock: float = 0.0
    count: int = 0
    total: dict[str, Array] = field(default_factory=dict)
    last: dict[str, Array] | None = None

    def add(self, q: Beliefs, step: float, names: Iterable[str]) -> None:
        """Take in one iteration."""
        self.clock, self.count = self.clock + step, self.count + 1
        for name in names:
            if name in self.total:
                self.total[name] += q.natural[name]
            else:
                self.total[name] = q.natural[name].copy()

    @property
    def full(self) -> bool:
        """Whether the stretch is long enough to compare."""
        return self.clock >= 1 - 1e-9

    def close(self, network: Network) -> float:
        """End the stretch; return its distance from the last one."""
        average = {name: total / self.count for name, total in self.total.items()}
        assert self.last is not None
        moved = distance(network, average, self.last)
        self.clock, self.count, self.total, self.last = 0.0, 0, {}, average
        return moved


def distance(network: Network, natural: dict[str, Array], other: dict[str, Array]) -> float:
    """Symmetrised KL between two q, in nats an element.

    KL(q || q') + KL(q' || q) = (lambda - lambda') . (m - m'), summed over all factors.
    """
    total, count = 0.0, 0
    for name, a in natural.items():
        family, b = network.hidden[name].family, other[name]
        total += float(np.sum((a - b) * (family.moments(a) - family.moments(b))))
        count += len(a)
    return max(total, 0.0) / max(count, 1)


class Interrupt:
    """Whether the user pressed Ctrl-C."""

    pressed = False


@contextmanager
def catch_interrupt() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a flag, so that no update is cut in half; a second one raises."""
    flag = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if flag.pressed:
            raise KeyboardInterrupt
        flag.pressed = True

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, before)
