"""Ctrl-C during compilation: KeyboardInterrupt is raised when Numba has finished.

Raised inside, it is often lost: it may occur in a callback from LLVM, which no exception leaves, or
turn into an error of Numba.
"""

from __future__ import annotations

import signal
import threading
from functools import cache
from types import FrameType
from typing import Any

from numba.core import event


class Deferring(event.Listener):
    """Calls the handler of Ctrl-C as usual, but delays its KeyboardInterrupt."""

    def __init__(self) -> None:
        self.depth = 0
        self.pending = False
        self.before: Any = None

    def on_start(self, event: Any) -> None:
        """Delay exceptions from now on."""
        if threading.current_thread() is not threading.main_thread():
            return
        if self.depth == 0:
            self.before = signal.getsignal(signal.SIGINT)
            if callable(self.before):
                signal.signal(signal.SIGINT, self.handle)
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Raise the delayed exception, also if this loop was compiled within another."""
        if threading.current_thread() is not threading.main_thread():
            return
        self.depth -= 1
        if self.depth == 0 and callable(self.before):
            signal.signal(signal.SIGINT, self.before)
        if self.pending:
            self.pending = self.depth > 0  # the outer compilation may catch it and go on
            raise KeyboardInterrupt

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Call the original handler."""
        try:
            self.before(number, frame)
        except KeyboardInterrupt:
            self.pending = True


@cache
def defer_interrupts() -> None:
    """Register for all compilations of this process."""
    event.register("numba:compile", Deferring())
