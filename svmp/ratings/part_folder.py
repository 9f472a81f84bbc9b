"""The folder of a partitioned data set: written beside, renamed when it is whole.

It has `part-00000.parquet` and so on, the ids by key in `users.parquet` and `items.parquet`, and a
marker file that names the parts. Only a folder that has such a marker, and nothing else, is ever
replaced.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from svmp.errors import FileError
from svmp.parts.parquet_files import FORMAT, MARKER
from svmp.ratings.folders import check_folder, drafted
from svmp.writing import as_path

IDS = {"user": "users.parquet", "item": "items.parquet"}
OURS = re.compile(
    r"part-\d+\.parquet|rows-\d+\.bin|users\.parquet|items\.parquet|" + re.escape(MARKER)
)
"""Names of the files in the folder, and in its draft."""


def part_name(part: int) -> str:
    """Return the name of the file of a part."""
    return f"part-{part:05}.parquet"


def check_place(path: str | os.PathLike[str]) -> Path:
    """Return a path to which a folder can be written; raise if there is anything else."""
    target = as_path(path, "directory")
    other = "was not written by svmp's partition"
    check_folder(target, _is_ours, other, "nothing can be written there")
    return target


@contextmanager
def drafted_parts(target: Path) -> Iterator[Path]:
    """Yield an empty folder, which takes the place of the target if the block succeeds."""
    try:
        with drafted(target, f"{target} is written") as draft:
            yield draft
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise FileError(f"{target}: the parts cannot be written ({reason:.200})") from None


def write_ids(folder: Path, ids: dict[str, pl.Series]) -> None:
    """Write the ids of users and items by key."""
    for role, name in IDS.items():
        ids[role].alias("id").to_frame().write_parquet(folder / name)


def write_marker(folder: Path, parts: int, about: dict[str, Any]) -> None:
    """Write the file that names the parts."""
    names = [part_name(part) for part in range(parts)]
    text = json.dumps({"format": FORMAT, **about, "parts": names}, indent=1)
    (folder / MARKER).write_text(text + "\n", "utf-8")


def _is_ours(folder: Path, marked: bool) -> bool:
    """Whether a folder has only files that svmp writes, and the marker if it must."""
    try:
        with os.scandir(folder) as entries:
            found = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries}
    except OSError:
        return False
    ours = all(is_file and OURS.fullmatch(name) for name, is_file in found.items())
    return ours and (not marked or MARKER in found)
