"""When a run must stop: its budget is spent, or the user pressed Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType


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
