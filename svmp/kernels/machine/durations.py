"""How long each loop, and each recipe of `svmp warm`, took to compile last time.

They are in a small JSON file beside the cache of compiled loops. They are shown, and used to start
with the longest recipe, and for nothing else. A file that is
damaged, or not ours, is treated as if it were not there.
"""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

NAME = "svmp-durations.json"
LARGEST_FILE, LONGEST = 65_536, 86_400.0
"""Most bytes of the file, and most seconds of a compilation."""


def read_durations(folder: Path) -> dict[str, float]:
    """Return seconds by name, as kept beside a folder of compiled loops."""
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
    """Whether a value is a number of seconds that a compilation may take.

    >>> is_duration(3.5), is_duration(-1), is_duration(True), is_duration(float("nan"))
    (True, False, False, False)
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value) and 0 <= value <= LONGEST  # type: ignore[arg-type,operator]


def add_durations(folder: Path, durations: dict[str, float]) -> None:
    """Keep seconds by name, with those that are kept already; a full disk is no error."""
    path = folder.parent / NAME
    draft = path.with_name(f"{NAME}.{uuid4().hex[:16]}")
    new = {name: round(seconds, 1) for name, seconds in durations.items()}
    text = json.dumps(read_durations(folder) | new)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text)
        os.replace(draft, path)
