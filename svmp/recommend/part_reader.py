"""One part of ratings as a table, whose ids are the values in the part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from svmp.errors import RatingsError
from svmp.network.dims.data_columns import Columns
from svmp.parts.sources import Source
from svmp.ratings import Ratings, read_ratings
from svmp.ratings.build import deduplicated, repeated_error
from svmp.ratings.columns import Columns as Names
from svmp.ratings.columns import ColumnSelection
from svmp.ratings.table import LARGEST_RATING, Duplicates


@dataclass(frozen=True, eq=False)
class PartReader:
    """Loads parts as tables, whose ids are the values in the part.

    Attributes
    ----------
    source
        The parts.
    columns, duplicates, span
        As `columns`, `duplicates` and `range` of `svmp.ratings.read_ratings`.
    """

    source: Source
    columns: Names | None = None
    duplicates: Duplicates = "error"
    span: tuple[float, float] | None = None

    def read(self, part: int, checked: bool = False) -> Ratings | None:
        """Return the ratings of a part; None if it has none. `checked` ones are not repeated."""
        rows = self.source.load(part)
        name = self.source.name(part)
        if not isinstance(rows, Columns):
            rows = _columns_of(rows, name)
        if rows is not None and not len(rows):
            return None
        found = _table(rows, name, self) if rows is not None else None
        if found is None:
            found = _read_any(self.source.load(part), name, self)
        if checked and self.duplicates == "error":
            return found
        return _distinct(found, name, self.duplicates)


def _table(rows: Columns, name: str, reader: PartReader) -> Ratings | None:
    """Return the table of columns with whole numbers as ids; None if they must be converted."""
    choice = ColumnSelection(reader.columns)
    choice.check()
    places = choice.among(name, rows.columns, header=True)
    arrays = {role: rows[rows.columns[place]] for role, place in places.items()}
    kinds = {role: array.dtype.kind for role, array in arrays.items()}
    if kinds["user"] not in "iu" or kinds["item"] not in "iu" or kinds["rating"] not in "iuf":
        return None
    if kinds.get("time", "f") not in "iuf":
        return None
    low, high = (-LARGEST_RATING, LARGEST_RATING) if reader.span is None else reader.span
    rating = arrays["rating"]
    wrong = ~((rating >= low) & (rating <= high))  # so that NaN is wrong too
    timeless = "time" in arrays and not np.isfinite(arrays["time"]).all()
    if wrong.any() or timeless:
        return None  # the error is that of `read_ratings`
    user, item = (rows.columns[places[role]] for role in ("user", "item"))
    if any(ids.max() >= 2**63 for ids in (rows.labels(user), rows.labels(item))):
        return None
    return Ratings(
        rows.keys(user),
        rows.keys(item),
        np.asarray(rating, np.float32),
        rows.labels(user).astype(np.int64),
        rows.labels(item).astype(np.int64),
        np.asarray(arrays["time"], np.float64) if "time" in arrays else None,
    )


def _columns_of(rows: Any, name: str) -> Columns | None:
    """Return a dict of arrays as columns; None for anything else."""
    return Columns(rows, name) if isinstance(rows, dict) else None


def _read_any(rows: Any, name: str, reader: PartReader) -> Ratings:
    """Read a part as `read_ratings` reads a table in memory."""
    given = dict(rows.items()) if isinstance(rows, Columns) else rows
    try:
        return read_ratings(
            given,
            columns=reader.columns,
            duplicates=reader.duplicates,
            range=reader.span,
        )
    except RatingsError as error:
        raise RatingsError(f"{name}: {error}") from None


def _distinct(table: Ratings, name: str, duplicates: Duplicates) -> Ratings:
    """Return one rating of each pair."""
    pair = table.user.astype(np.int64) * table.items + table.item
    if (np.diff(pair) > 0).all():  # as `partition` writes them
        return table
    order = np.argsort(pair, kind="stable")
    again = np.flatnonzero(pair[order[1:]] == pair[order[:-1]])
    if not len(again):
        return table
    if duplicates == "error":
        first, second = (int(order[again[0] + i]) for i in (0, 1))
        ids = table.user_ids[table.user[first]], table.item_ids[table.item[first]]
        raise repeated_error(f"row {first + 1}", f"{name}, row {second + 1}", *ids)
    return deduplicated(table, pair, duplicates)
