"""Where svmp may write: beside the file's place first, and never over what is not its own.

A file is written under another name and then renamed, so that a process that is killed leaves the
old file or the new one. Before the work begins, the place is checked: a folder, a device, a link or
somebody else's file is refused and left as it is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from svmp.errors import FileError, ModelError

Ours = Callable[[Path], bool]
PICTURES = (".png", ".svg", ".pdf", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".eps", ".ps")


def as_path(path: Any, argument: str = "path") -> Path:
    """Return an argument as a path; refuse what is none.

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
    """Return the name under which a file is written before it takes its own."""
    return target.with_name(f"{target.stem}.part{target.suffix}")


def check_place(target: Path, ours: Ours, what: str, draft: Ours | None = None) -> None:
    """Refuse a place where something else is, or where no file can be made.

    Parameters
    ----------
    target
        The file to be written.
    ours
        Whether a file may be replaced.
    what
        What svmp writes there, as "a checkpoint".
    draft
        Whether a draft that was left behind may be replaced; by default as `ours` says.
    """
    beside = draft_of(target)
    if not os.path.lexists(target.parent):
        raise FileError(f"{target}: there is no folder {target.parent}")
    refuse_other(target, ours, what)
    refuse_other(beside, draft or ours, what)
    left_behind = os.path.lexists(beside)
    try:
        with beside.open("ab"):
            pass
        if not left_behind:
            beside.unlink()
    except OSError as error:
        raise FileError(f"{target}: cannot be written ({os.strerror(error.errno or 0)})") from None


def check_picture(target: Path, formats: Collection[str] = PICTURES) -> None:
    """Refuse a place for a picture that is of no format, or where no file can be made."""
    if target.suffix not in formats:
        known = ", ".join(formats)
        raise FileError(f"{target}: cannot draw to {target.suffix!r:.20}; use one of {known}")
    check_place(target, lambda there: True, "a picture", draft=lambda there: False)


def refuse_other(path: Path, ours: Ours, what: str) -> None:
    """Refuse what is at a path, unless it is a file that may be replaced."""
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
            f"{path}: there is a file that is not {what} of svmp's, which is left as it is; "
            "name another"
        )


def begins_as(path: Path, key: str) -> bool:
    """Return whether a file is empty, or begins as a safetensors file of svmp's kind `key`.

    So do a file that was cut short and one whose arrays are damaged.
    """
    mark = b'{"__metadata__":{' + f'"{key}":'.encode()
    with path.open("rb") as file:
        start = file.read(200)
    return not start or b"".join(start[8:].split()).startswith(mark)


@contextmanager
def written_beside(target: Path) -> Iterator[Path]:
    """Give the path of a draft that takes the target's name when all went well.

    The file has the permissions of any new file, whatever the writer gave the draft.
    """
    draft = draft_of(target)
    draft.unlink(missing_ok=True)
    with draft.open("xb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    try:
        yield draft
        draft.chmod(mode)
        draft.replace(target)
    finally:
        with suppress(OSError):
            draft.unlink()
