"""Folders that are written beside their place, and take it when they are whole.

A folder of the same kind is replaced; anything else that is there is refused and left as it is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from svmp.errors import FileError
from svmp.inference.stopping import catch_interrupt

IsOurs = Callable[[Path, bool], bool]
"""Whether a folder has only files that svmp writes, and if the flag is set, all that it needs."""


def beside(target: Path) -> tuple[Path, Path]:
    """Return the paths of the draft and of the folder that is being replaced."""
    return target.with_name(f"{target.name}.part"), target.with_name(f"{target.name}.before")


def check_folder(target: Path, is_ours: IsOurs, other: str, failure: str) -> None:
    """Raise a FileError if a folder cannot be written, or if there is something else.

    Parameters
    ----------
    target, is_ours
        The folder, and the check of one that exists.
    other, failure
        Ends of the messages: what else there is, and that nothing can be written.
    """
    for place in (target, *beside(target)):
        if place.is_symlink():
            raise FileError(f"{place}: a link, not a folder; give the path that it points to")
        if place.exists() and not is_ours(place, place == target):
            raise FileError(
                f"{place}: there is something else, which {other} and is left as it is; name "
                "another"
            )
    above = next(p for p in target.absolute().parents if os.path.lexists(p))
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise FileError(f"{target}: {failure}, because {above} cannot")


@contextmanager
def drafted(target: Path, written: str) -> Iterator[Path]:
    """Yield an empty folder, which takes the place of the target if the block succeeds.

    If Ctrl-C is pressed during the last step, it raises KeyboardInterrupt with the text `written`.
    """
    draft, before = beside(target)
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
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
        with suppress(OSError):
            shutil.rmtree(draft, ignore_errors=True)
