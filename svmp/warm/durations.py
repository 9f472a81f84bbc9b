"""How long each recipe took last time: a small JSON file beside the cache of compiled loops.

The durations are shown and used to start with the longest, and for nothing else. A file that is
damaged, or not ours, is treated as if it were not there.
"""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from svmp.kernels.machine.elements import _moved_kl

NAME = "svmp-durations.json"
LARGEST_FILE, LONGEST = 65_536, 86_400.0
"""Most bytes of the file, and most seconds of a recipe."""


def cache_folder() -> Path | None:
    """Return the folder of compiled loops; None if none can be written."""
    path = _moved_kl._cache.cache_path
    return None if path is None else Path(path)


def read_durations(folder: Path) -> dict[str, float]:
    """Return the seconds of each recipe, as kept beside a folder of compiled loops."""
    path = folder.parent / NAME
    try:
        if path.stat().st_size > LARGEST_FILE:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: float(value) for name, value in found.items() if is_duration(value)}


def is_duration(value: object) -> bool:
    """Whether a value is a number of seconds that a recipe may take.

    >>> is_duration(3.5), is_duration(-1), is_duration(True), is_duration(float("nan"))
    (True, False, False, False)
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value) and 0 <= value <= LONGEST  # type: ignore[arg-type,operator]


def write_durations(folder: Path, durations: dict[str, float]) -> None:
    """Keep the seconds of each recipe; a full disk is no error."""
    path = folder.parent / NAME
    draft = path.with_name(f"{NAME}.{uuid4().hex[:16]}")
    text = json.dumps({name: round(seconds, 1) for name, seconds in durations.items()})
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text)
        os.replace(draft, path)
