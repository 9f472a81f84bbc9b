"""Ctrl-C on the command line: a sentence and exit code 130, never a traceback.

Most of the time until a command begins is that of imports, so that `svmp/__init__.py` asks for this
first. Where svmp is imported by another program, nothing is changed.
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
"""The exit code of a command that was stopped by Ctrl-C."""


def is_command() -> bool:
    """Whether this process is `svmp`, or `python -m svmp`, and none that such a process started."""
    if "--multiprocessing-fork" in sys.orig_argv:
        return False
    started = Path(sys.argv[0] if sys.argv else "")
    if started.name == "-m":  # so it is called until the module has been found
        return bool({"svmp", "-msvmp"} & set(sys.orig_argv))
    return started.stem == "svmp" or started.parts[-2:] == ("svmp", "__main__.py")


def end_quietly() -> None:
    """Until the command begins, let Ctrl-C end this process with a sentence."""
    if threading.current_thread() is not threading.main_thread() or not is_command():
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def begin() -> None:
    """From here on, let Ctrl-C raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ignored() -> Iterator[None]:
    """Let processes that start now hear nothing of Ctrl-C: this one decides.

    They inherit that it is blocked; here it is only late.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # which would start with the first, and unblock it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def say(what: object = "") -> None:
    """Say that the command was interrupted, and what has become of its work."""
    print(f"svmp: interrupted: {what}" if str(what) else "svmp: interrupted", file=sys.stderr)


@contextmanager
def if_interrupted(what: str) -> Iterator[None]:
    """Let Ctrl-C say what has become of the work."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(str(error) or what) from None


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"svmp: interrupted\n")
    os._exit(STOPPED)
