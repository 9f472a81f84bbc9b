"""Ctrl-C and SIGTERM on the command line: a sentence and exit code 130 or 143, never a traceback.

SIGTERM, by which service managers, batch systems and `kill` end a process, does what Ctrl-C does:
both raise KeyboardInterrupt, or end a fit with what was learned. Other programs that import svmp
keep their own SIGTERM.

Imports take most of the time before a command begins, so `svmp/__init__.py` sets this up first. If
another program imports svmp, nothing changes.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_terminates = False
"""Whether SIGTERM does what Ctrl-C does."""
_last = int(signal.SIGINT)
"""The signal that has interrupted this process."""


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


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt within a command.

    A command that SIGTERM has ended then ends by that signal, so that whoever sent it knows.
    """
    global _terminates, _last
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.current_thread() is threading.main_thread()
    _last = int(signal.SIGINT)
    _terminates = main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if _terminates:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        if _terminates:
            _terminates = False
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if _last == signal.SIGTERM:
                for stream in (sys.stdout, sys.stderr):
                    with suppress(OSError, ValueError):
                        stream.flush()
                signal.raise_signal(signal.SIGTERM)


def caught() -> int | None:
    """Return the signal whose handler decides what an interruption does; None if nothing does.

    It is that of Ctrl-C, which SIGTERM calls too, unless Ctrl-C is ignored, as in the background.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        return signal.SIGINT
    return signal.SIGTERM if _terminates else None


def note(number: int) -> None:
    """Remember which signal has interrupted this process."""
    global _last
    _last = number


def exit_code() -> int:
    """Return the exit code of a command that was interrupted: 128 and the number of the signal."""
    return 128 + _last


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


def _terminate(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C would do now."""
    note(number)
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(number, frame)
    else:
        raise KeyboardInterrupt


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"svmp: interrupted\n")
    os._exit(128 + number)
