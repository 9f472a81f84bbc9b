"""Safe writing of files: atomic, and never over files that are not svmp's.

A file is written under a temporary name (its draft) and then renamed, so that a killed process
leaves either the old file or the new one. Before the work begins, the path is checked: a folder, a
device, a link or a file of other origin is refused and not changed.
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
    """Return the temporary path under which a file is written before it is renamed."""
    return target.with_name(f"{target.stem}.part{target.suffix}")


def check_place(target: Path, ours: Ours, what: str, draft: Ours | None = None) -> None:
    """Raise if a path holds something else, or if no file can be created there.

    Parameters
    ----------
    target
        The file to write.
    ours
        Function that decides whether an existing file may be replaced.
    what
        What svmp writes, as "a checkpoint".
    draft
        The same as `ours`, for a draft that was left behind; by default `ours`.
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
    """Raise if the format of a picture is unknown, or if no file can be created at its path."""
    if target.suffix not in formats:
        known = ", ".join(formats)
        raise FileError(f"{target}: cannot draw to {target.suffix!r:.20}; use one of {known}")
    check_place(target, lambda there: True, "a picture", draft=lambda there: False)


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
            f"{path}: there is a file that is not {what} of svmp's, which is left as it is; "
            "name another"
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

    The file gets the permissions of any new file, whatever those of the draft are.
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
