"""Folders that are written beside their place, and take it when they are whole.

A folder of the same kind is replaced; anything else that is there is refused and left as it is. One
process at a time writes to a place (locking.py), so the drafts that it finds there are those of
killed processes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from svmp.errors import FileError
from svmp.inference.running.stopping import catch_interrupt
from svmp.locking import locked
from svmp.writing import draft_of, drafts_of

IsOurs = Callable[[Path, bool], bool]
"""Whether a folder has only files that svmp writes, and if the flag is set, all that it needs."""


def former(target: Path) -> Path:
    """Return the path of the folder that is being replaced."""
    return target.with_name(f"{target.name}.before")


def check_folder(target: Path, is_ours: IsOurs, other: str, failure: str) -> None:
    """Raise a FileError if a folder cannot be written, or if there is something else.

    Parameters
    ----------
    target, is_ours
        The folder, and the check of one that exists.
    other, failure
        Ends of the messages: what else there is, and that nothing can be written.
    """
    for place in (target, former(target)):
        check_kind(place, is_ours, place == target, other)
    check_above(target, failure)


def check_kind(place: Path, is_ours: IsOurs, whole: bool, other: str) -> None:
    """Raise a FileError if there is anything at a path but a folder that may be replaced."""
    if place.is_symlink():
        raise FileError(f"{place}: a link, not a folder; give the path that it points to")
    if place.exists() and not is_ours(place, whole):
        raise FileError(
            f"{place}: there is something else, which {other} and is left as it is; name another"
        )


def check_above(target: Path, failure: str) -> None:
    """Raise a FileError if no folder can be made at a path."""
    above = next(p for p in target.absolute().parents if os.path.lexists(p))
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise FileError(f"{target}: {failure}, because {above} cannot")


@contextmanager
def drafted(target: Path, written: str) -> Iterator[Path]:
    """Yield an empty folder, which takes the place of the target if the block succeeds.

    Another process that writes there is waited for. If Ctrl-C is pressed during the last step, it
    raises KeyboardInterrupt with the text `written`.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    draft, before = draft_of(target), former(target)
    with locked(target) as alone:
        if alone:
            for left in drafts_of(target):
                shutil.rmtree(left, ignore_errors=True)
            if before.exists() and not target.exists():  # of a process killed between the renames
                before.rename(target)
        try:
            draft.mkdir()
            yield draft
            with catch_interrupt() as interrupt:  # between the two renames there is no folder
                if target.exists():
                    shutil.rmtree(before, ignore_errors=True)
                    target.rename(before)
                draft.rename(target)
            shutil.rmtree(before, ignore_errors=True)
            if interrupt.pressed:
                raise KeyboardInterrupt(written)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
