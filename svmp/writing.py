"""Safe writing of files: atomic, and never over files that are not svmp's.

A file is written under a temporary name (its draft) and then renamed, so that a killed process
leaves either the old file or the new one. No two drafts share a name, and one process at a time
writes to a path (locking.py), so the drafts that it finds there are those of killed processes.
Before the work begins, the path is checked: a folder, a device, a link or a file of other origin is
refused and not changed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from svmp.errors import FileError, ModelError
from svmp.locking import locked

Ours = Callable[[Path], bool]
TOKEN = 4
"""Bytes of the random part of a draft's name."""
OPEN_TRIES, PAUSE = 100, 0.02
"""On Windows: how often to replace a file that a reader has open, and the seconds in between."""
PICTURES = (".png", ".svg", ".pdf", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".eps", ".ps")


def as_path(path: Any, argument: str = "path") -> Path:
    """Return an argument as a path; raise if it is not the path of a file.

    >>> as_path(3, "checkpoint")
    Traceback (most recent call last):
    svmp.errors.ModelError: checkpoint must be the path of a file, not 3
    """
    try:
        found = Path(path)
        os.fsencode(found)
        named = found.name not in ("", "..") and "\0" not in str(found)
    except (TypeError, ValueError):
        named = False
    if not named:
        raise ModelError(f"{argument} must be the path of a file, not {path!r:.80}")
    return found


def draft_of(target: Path) -> Path:
    """Return a new temporary path, under which a file or a folder is written at first."""
    return target.with_name(f"{target.stem}.{secrets.token_hex(TOKEN)}.part{target.suffix}")


def drafts_of(target: Path) -> list[Path]:
    """Return all drafts of a path that are there."""
    name = re.compile(
        rf"{re.escape(target.stem)}\.[0-9a-f]{{{2 * TOKEN}}}\.part{re.escape(target.suffix)}"
    )
    with suppress(OSError), os.scandir(target.parent) as entries:
        return [target.with_name(e.name) for e in entries if name.fullmatch(e.name)]
    return []


def check_place(target: Path, ours: Ours, what: str) -> None:
    """Raise if a path holds something else, or if no file can be created there.

    Parameters
    ----------
    target
        The file to write.
    ours
        Function that decides whether an existing file may be replaced.
    what
        What svmp writes, as "a checkpoint".
    """
    if not os.path.lexists(target.parent):
        raise FileError(f"{target}: there is no folder {target.parent}")
    refuse_other(target, ours, what)
    draft = draft_of(target)
    try:
        draft.touch(exist_ok=False)
        draft.unlink()
    except OSError as error:
        raise FileError(f"{target}: cannot be written ({os.strerror(error.errno or 0)})") from None


def check_picture(target: Path, formats: Collection[str] = PICTURES) -> None:
    """Raise if the format of a picture is unknown, or if no file can be created at its path."""
    if target.suffix not in formats:
        known = ", ".join(formats)
        raise FileError(f"{target}: cannot draw to {target.suffix!r:.20}; use one of {known}")
    check_place(target, lambda there: True, "a picture")


def refuse_other(path: Path, ours: Ours, what: str) -> None:
    """Raise if there is anything at a path but a file that may be replaced."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({os.strerror(error.errno or 0)})") from None
    if stat.S_ISLNK(mode):
        raise FileError(f"{path}: a link, not a file; give the path that it points to")
    if stat.S_ISDIR(mode):
        raise FileError(f"{path}: a folder, not a file")
    if not stat.S_ISREG(mode):
        raise FileError(f"{path}: a device or a pipe, not a file")
    try:
        replaceable = ours(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({os.strerror(error.errno or 0)})") from None
    if not replaceable:
        raise FileError(
            f"{path}: exists and is not {what} of svmp's; it was not overwritten: choose another "
            "path"
        )


def begins_as(path: Path, key: str) -> bool:
    """Whether a file is empty, or begins as a safetensors file of svmp with the metadata `key`.

    This also holds for truncated files, and for files with damaged arrays.
    """
    mark = b'{"__metadata__":{' + f'"{key}":'.encode()
    with path.open("rb") as file:
        start = file.read(200)
    return not start or b"".join(start[8:].split()).startswith(mark)


@contextmanager
def written_beside(target: Path) -> Iterator[Path]:
    """Yield the path of a draft, which is renamed to the target if the block succeeds.

    Another process that writes to the target is waited for.
    """
    with locked(target) as alone:
        if alone:
            for left in drafts_of(target):
                with suppress(OSError):
                    left.unlink()
        with drafted_file(target) as draft:
            yield draft


@contextmanager
def drafted_file(target: Path) -> Iterator[Path]:
    """As `written_beside`, within the lock of the caller.

    The file gets the permissions of any new file, whatever those of the draft are.
    """
    draft = draft_of(target)
    with draft.open("xb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    try:
        yield draft
        draft.chmod(mode)
        rename(draft, target)
    finally:
        with suppress(OSError):
            draft.unlink()


def rename(draft: Path, target: Path) -> None:
    """Let a file take its place; on Windows, once no reader has the old one open."""
    tries = OPEN_TRIES if sys.platform == "win32" else 1
    for left in reversed(range(tries)):
        try:
            os.replace(draft, target)
            return
        except PermissionError as error:
            if not left or error.errno != errno.EACCES:
                raise
            time.sleep(PAUSE)
