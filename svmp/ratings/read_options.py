"""Options of `read_ratings`, for functions that pass them on."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict

from svmp.ratings.columns import Columns
from svmp.ratings.table import Duplicates


class ReadOptions(TypedDict, total=False):
    """Options of `read_ratings`, which describes them."""

    columns: Columns | None
    duplicates: Duplicates
    range: tuple[float, float] | None
    header: bool | None
    encoding: str
    events: bool
    max_unpacked: int
    text_ids: Collection[str]
