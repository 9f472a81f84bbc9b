"""Ctrl-C while a loop is compiled: KeyboardInterrupt is raised when Numba is done with it.

Raised inside, it is lost as often as not: it comes up in a function that LLVM calls, from which no
exception returns, and Numba ends with an error of its own instead.
"""

from __future__ import annotations

import signal
import threading
from functools import cache
from types import FrameType
from typing import Any

from numba.core import event


class Deferring(event.Listener):
    """Lets the handler of Ctrl-C do all that it does, but raise."""

    def __init__(self) -> None:
        self.depth = 0
        self.pending = False
        self.before: Any = None

    def on_start(self, event: Any) -> None:
        """Hold back what is raised from here on."""
        if threading.current_thread() is not threading.main_thread():
            return
        if self.depth == 0:
            self.before = signal.getsignal(signal.SIGINT)
            if callable(self.before):
                signal.signal(signal.SIGINT, self.handle)
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Raise what was held back; that is safe also where one loop is compiled within another."""
        if threading.current_thread() is not threading.main_thread():
            return
        self.depth -= 1
        if self.depth == 0 and callable(self.before):
            signal.signal(signal.SIGINT, self.before)
        if self.pending:
            self.pending = self.depth > 0  # in case that the one outside goes on
            raise KeyboardInterrupt

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Do what was done before this."""
        try:
            self.before(number, frame)
        except KeyboardInterrupt:
            self.pending = True


@cache
def defer_interrupts() -> None:
    """Do so whenever Numba compiles something in this process."""
    event.register("numba:compile", Deferring())
