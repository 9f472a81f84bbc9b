"""Ctrl-C on the command line: a sentence and exit code 130, never a traceback.

Imports take most of the time before a command begins, so `svmp/__init__.py` sets this up first. If
another program imports svmp, nothing changes.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

STOPPED = 130
"""Exit code of a command that was stopped by Ctrl-C."""


def is_command() -> bool:
    """Whether this process is `svmp` or `python -m svmp`, and not a child process of it."""
    if "--multiprocessing-fork" in sys.orig_argv:
        return False
    started = Path(sys.argv[0] if sys.argv else "")
    if started.name == "-m":  # its value until the module has been found
        return bool({"svmp", "-msvmp"} & set(sys.orig_argv))
    return started.stem == "svmp" or started.parts[-2:] == ("svmp", "__main__.py")


def end_quietly() -> None:
    """Let Ctrl-C end this process with a message, until the command begins."""
    if threading.current_thread() is not threading.main_thread() or not is_command():
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def begin() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ignored() -> Iterator[None]:
    """Block Ctrl-C for processes that are started within the block: the parent handles it.

    They inherit the blocked signal; in this process it is only delayed.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it would start with the first process, and unblock Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def say(what: object = "") -> None:
    """Print that the command was interrupted, and what has become of its work."""
    print(f"svmp: interrupted: {what}" if str(what) else "svmp: interrupted", file=sys.stderr)


@contextmanager
def if_interrupted(what: str) -> Iterator[None]:
    """Add to KeyboardInterrupt what has become of the work."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(str(error) or what) from None


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"svmp: interrupted\n")
    os._exit(STOPPED)
