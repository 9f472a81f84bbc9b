"""When to stop: converged, out of budget, or interrupted."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import numpy as np

from svmp.errors import ModelError
from svmp.network.beliefs import Beliefs


@dataclass
class Budget:
    """What a run may spend; None means without limit."""

    max_sweeps: float | None = None
    max_accesses: float | None = None
    max_seconds: float | None = None
    began: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        for name in ("max_sweeps", "max_accesses", "max_seconds"):
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                raise ModelError(f"{name} must be positive, not {limit}")

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return time.perf_counter() - self.began

    def spent(self, sweeps: float, accesses: int) -> bool:
        """Whether any limit is reached."""
        used = (sweeps, accesses, self.seconds)
        limits = (self.max_sweeps, self.max_accesses, self.max_seconds)
        return any(limit is not None and u >= limit for u, limit in zip(used, limits, strict=True))


def distance(q: Beliefs, natural: dict[str, np.ndarray], moments: dict[str, np.ndarray]) -> float:
    """Symmetrised KL between q and an earlier q, in nats an element.

    KL(q || q') + KL(q' || q) = (lambda - lambda') . (m - m'), summed over all factors.
    """
    total, count = 0.0, 0
    for name, now in q.natural.items():
        total += float(np.sum((now - natural[name]) * (q.moments[name] - moments[name])))
        count += len(now)
    return total / max(count, 1)


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
