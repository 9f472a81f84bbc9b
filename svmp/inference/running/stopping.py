"""When a run must stop: a limit is reached, or the user pressed Ctrl-C.

On the command line SIGTERM does the same (svmp/interrupts.py).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Literal

from svmp.interrupts import caught, note

Status = Literal["converged", "budget", "diverged", "interrupted", "stopped"]
"""How a run ended; "stopped" is that of a start that could not become the best of several."""


@dataclass
class Budget:
    """The limits of a run; None means no limit."""

    max_sweeps: float | None = None
    max_accesses: float | None = None
    max_seconds: float | None = None
    began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return time.perf_counter() - self.began

    def used(self, sweeps: float, accesses: int) -> float:
        """Return the used share of the tightest limit; 1 when it is reached."""
        used = (sweeps, accesses, self.seconds)
        limits = (self.max_sweeps, self.max_accesses, self.max_seconds)
        shares = [u / limit for u, limit in zip(used, limits, strict=True) if limit is not None]
        return max(shares, default=0.0)


@dataclass
class Interrupt:
    """Whether the user pressed Ctrl-C.

    Attributes
    ----------
    outer
        The enclosing one, which is notified too.
    tell
        Whether to print a notice on stderr.
    pressed
        Whether Ctrl-C was pressed, here or in a nested context.
    waiting
        Whether it was pressed here, and no nested context has begun since: the next ends at once.
    """

    outer: Interrupt | None = None
    tell: bool = False
    pressed: bool = False
    waiting: bool = False

    def press(self) -> None:
        """Set the flag here and in the enclosing contexts."""
        first, self.pressed = not self.pressed, True
        if self.tell and first:
            os.write(2, NOTICE)
        if self.outer is not None:
            self.outer.press()


NOTICE = b"svmp: interrupted: ending with what was learned; Ctrl-C again ends it sooner\n"
_innermost: Interrupt | None = None


@contextmanager
def catch_interrupt(tell: bool = False) -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a flag, so that no update is interrupted; a second one raises.

    Where Ctrl-C is ignored, it stays so. Of nested contexts the innermost ends first, and the
    enclosing ones are notified.
    """
    global _innermost
    number = caught()
    if number is None:
        yield Interrupt()
        return
    outer = _innermost
    flag = _innermost = Interrupt(outer, tell)
    if outer is not None and outer.waiting:
        flag.pressed, outer.waiting = True, False

    def handle(sent: int, frame: FrameType | None) -> None:
        note(sent)
        if flag.pressed:
            raise KeyboardInterrupt
        flag.waiting = True
        flag.press()

    before = signal.signal(number, handle)
    try:
        yield flag
    finally:
        signal.signal(number, before)
        _innermost = outer
