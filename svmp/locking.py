"""Locks between processes, so that one at a time writes to a path; readers need none.

The operating system locks an empty file beside the path, and unlocks it when the process that holds
it ends, however it ends. On Linux and macOS this is `flock`, on Windows `msvcrt.locking`. The file
is removed when the lock is released; one that a killed process leaves behind locks nothing.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from svmp.errors import FileError

WAIT = 600.0
"""Seconds to wait for another process, by default."""
PAUSE = 0.02
"""Seconds between two attempts."""
SOON = 1.0
"""Seconds after which a process says that it waits, and for whom."""
PLACE = 1 << 30
"""The byte that is locked on Windows, where a locked byte cannot be read: behind the content."""
BUSY = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        os.lseek(file, PLACE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


_held: dict[Path, tuple[int, int]] = {}
"""The process and the thread that hold each lock of this process."""


def lock_of(target: Path) -> Path:
    """Return the path of the file that is locked."""
    return target.with_name(f".{target.name}.lock")


@contextmanager
def locked(target: Path, wait: float = WAIT, instead: str = "") -> Iterator[bool]:
    """Hold the lock of a path, and yield whether the file system has locks.

    A thread that holds it may enter again. Without locks there is nothing to wait for: writers then
    rely on unique names, and on the versions of what they replace.

    Parameters
    ----------
    target
        The file or folder to write.
    wait
        Seconds to wait for another process before a FileError.
    instead
        What to do to wait longer, for the message.
    """
    target = Path(os.path.realpath(target))
    owner = os.getpid(), threading.get_ident()
    if _held.get(target) == owner:
        yield True
        return
    file = _acquired(target, wait, instead)
    if file is None:
        yield False
        return
    _held[target] = owner
    try:
        yield True
    finally:
        del _held[target]
        _release(lock_of(target), file)


def _acquired(target: Path, wait: float, instead: str) -> Any:
    """Return the open lock file, as soon as this process has locked it; None without locks."""
    path, began, told = lock_of(target), time.monotonic(), False
    while True:
        try:
            file = _attempt(path)
        except OSError as error:
            if error.errno in WITHOUT_LOCKS:
                return None
            reason = os.strerror(error.errno or 0)
            raise FileError(f"{target}: cannot be written ({reason})") from None
        if file is not None:
            return file
        waited = time.monotonic() - began
        if waited >= wait:
            more = f", or {instead}" if instead else ""
            raise FileError(
                f"{target}: {_holder(path)} is still writing there after {wait:g} seconds; try "
                f"again when it has ended{more}"
            )
        if waited >= SOON and not told:
            told = True
            print(f"svmp: waiting for {_holder(path)}, which writes to {target}", file=sys.stderr)
        time.sleep(min(PAUSE, max(wait - waited, 0.001)))


def _attempt(path: Path) -> Any:
    """Return the lock file, locked; None if another process has locked it."""
    try:
        file = path.open("a+b")
    except PermissionError:
        if sys.platform == "win32" and path.exists():  # it is being removed
            return None
        raise
    try:
        _lock(file.fileno())
        # Its holder may have removed the file between the two calls.
        if _is_at(path, file.fileno()):
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            file.flush()
            return file
    except OSError as error:
        file.close()
        if error.errno not in BUSY:
            raise
        return None
    file.close()
    return None


def _is_at(path: Path, file: int) -> bool:
    """Whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def _release(path: Path, file: Any) -> None:
    """Remove the lock file and unlock it; on Windows an open file cannot be removed."""
    steps: list[Callable[[], None]] = [path.unlink, file.close]
    for step in reversed(steps) if sys.platform == "win32" else steps:
        with suppress(OSError):
            step()


def _holder(path: Path) -> str:
    """Return who holds a lock, in words."""
    with suppress(OSError, ValueError):
        return f"process {int(path.read_bytes()):d}"
    return "another process"
