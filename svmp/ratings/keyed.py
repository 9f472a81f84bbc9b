"""Ratings as rows of keys, batch after batch: what `partition` writes.

`KeyedFiles` goes through files twice: the first time for the ids, the second time for the rows.
`KeyedTable` is the same for a table that is in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from svmp.errors import RatingsError
from svmp.ratings import convert
from svmp.ratings.batches import RatingsFiles, no_ratings
from svmp.ratings.convert import SourceColumns
from svmp.ratings.id_counts import IdCounter, IdKeys
from svmp.ratings.table import Ratings

KINDS = {"user": np.int32, "item": np.int32, "rating": np.float32, "time": np.float64}
Records = NDArray[np.void]
Report = Callable[[str], None]
Span = tuple[float, float] | None


class KeyedRatings(ABC):
    """Ratings with keys of users and items.

    Attributes
    ----------
    name
        Name of the source in messages.
    ids
        Ids of users and items as a Polars column each, by role.
    counts
        Numbers of rows of users and items, by role.
    has_time
        Whether the rows have times.
    """

    name: str
    ids: dict[str, pl.Series]
    counts: dict[str, NDArray[np.int64]]
    has_time: bool

    @property
    def kind(self) -> np.dtype[Any]:
        """Return the type of a row."""
        fields = [(name, kind) for name, kind in KINDS.items() if name != "time" or self.has_time]
        return np.dtype(fields)

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return int(self.counts["user"].sum())

    @abstractmethod
    def batches(self) -> Iterator[Records]:
        """Yield the rows, some after the other."""

    @abstractmethod
    def places(self, user: int, item: int) -> list[str]:
        """Return where a pair of keys is rated, as "ratings.csv, line 3"."""

    def _records(self, columns: dict[str, Any], rows: int) -> Records:
        found = np.empty(rows, self.kind)
        for name in self.kind.names or ():
            found[name] = columns[name]
        return found


class KeyedTable(KeyedRatings):
    """A table in memory."""

    def __init__(self, table: Ratings, step: int = 1 << 20) -> None:
        self.name, self.has_time = "ratings", table.time is not None
        self.ids = {"user": pl.Series(table.user_ids), "item": pl.Series(table.item_ids)}
        self.counts = {
            "user": np.bincount(table.user, minlength=table.users),
            "item": np.bincount(table.item, minlength=table.items),
        }
        self._table, self._step = table, step

    def batches(self) -> Iterator[Records]:
        for first in range(0, len(self._table), self._step):
            some = self._table.take(np.arange(first, min(first + self._step, len(self._table))))
            columns = {"user": some.user, "item": some.item, "rating": some.rating}
            yield self._records(columns | {"time": some.time}, len(some))

    def places(self, user: int, item: int) -> list[str]:
        return []  # its pairs are distinct


@dataclass(eq=False)
class KeyedFiles(KeyedRatings):
    """Files, which are read once for the ids when this is made, and again for each use.

    Attributes
    ----------
    files
        The files.
    span
        The least and the greatest valid rating, or None.
    text_ids
        "user", "item" or both: ids to be read as text.
    report
        Is told what has been read.
    """

    files: RatingsFiles
    span: Span
    text_ids: Collection[str]
    report: Report

    def __post_init__(self) -> None:
        self.name = str(self.files.source)
        counters = {"user": IdCounter(), "item": IdCounter()}
        timed: set[bool] = set()
        rows = 0
        for found in self.files.batches():
            rows += len(found.columns["user"])
            for role, counter in counters.items():
                counter.add(self._ids(found, role))
            timed.add("time" in found.columns)
            self.report(f"{rows:,} ratings counted")
        if not rows:
            raise no_ratings(self.name)
        if len(timed) > 1:
            raise RatingsError(f"{self.name}: some files have times, and others have none")
        self.has_time = timed.pop()
        self._keys: dict[str, IdKeys] = {r: c.result(self.name) for r, c in counters.items()}
        self.ids = {role: known.ids for role, known in self._keys.items()}
        self.counts = {role: known.counts for role, known in self._keys.items()}

    def batches(self) -> Iterator[Records]:
        for found in self.files.batches():
            yield self._keyed(found)

    def places(self, user: int, item: int) -> list[str]:
        named: list[str] = []
        for found in self.files.batches():
            rows = self._keyed(found)
            for row in np.flatnonzero((rows["user"] == user) & (rows["item"] == item)):
                named.append(found.where(int(row)))
        return named

    def _ids(self, found: SourceColumns, role: str) -> pl.Series:
        return convert.ids(found, role, role in self.text_ids)

    def _keyed(self, found: SourceColumns) -> Records:
        count = len(found.columns["user"])
        columns: dict[str, Any] = {"rating": np.ones(count, np.float32)}
        if "rating" in found.columns:
            columns["rating"] = convert.numbers(found, self.span).to_numpy()
        if self.has_time:
            if "time" not in found.columns:
                raise changed(self.name)
            columns["time"] = convert.times(found).to_numpy()
        for role, known in self._keys.items():
            columns[role] = known.keys(self._ids(found, role))
            if (columns[role] < 0).any():
                raise changed(self.name)
        return self._records(columns, count)


def changed(name: str) -> RatingsError:
    """Return the error of a source that differs when it is read again."""
    return RatingsError(f"{name}: the file has changed while it was read; try again")
