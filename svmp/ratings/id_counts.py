"""Collect the ids of a column and their numbers of rows, batch after batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from svmp.errors import RatingsError

ID, COUNT = pl.col("id"), pl.col("count")


@dataclass(eq=False)
class IdCounter:
    """Counts the rows of each id.

    Batches are merged when together they have as many ids as are known, so that each id is merged
    a few times only, and memory stays within a few times that of the distinct ids.
    """

    known: pl.DataFrame | None = None
    waiting: list[pl.DataFrame] = field(default_factory=list)

    def add(self, ids: pl.Series) -> None:
        """Add the ids of a batch, Int64 or String."""
        self.waiting.append(ids.alias("id").to_frame().group_by("id").agg(count=pl.len()))
        height = 0 if self.known is None else self.known.height
        if sum(frame.height for frame in self.waiting) > height:
            self._merge()

    def _merge(self) -> None:
        """Merge the waiting batches; if any id of the column is no whole number, all are text."""
        frames = [*([] if self.known is None else [self.known]), *self.waiting]
        if len({frame.schema["id"] for frame in frames}) > 1:
            frames = [frame.with_columns(ID.cast(pl.String)) for frame in frames]
        self.known = pl.concat(frames).group_by("id").agg(COUNT.sum())
        self.waiting = []

    def result(self, name: str) -> IdKeys:
        """Return the distinct ids, ascending, and their numbers of rows."""
        self._merge()
        assert self.known is not None
        known = self.known.sort("id")
        if known.height > np.iinfo(np.int32).max:
            raise RatingsError(f"{name}: there are {known.height:,} ids, too many for 32-bit keys")
        return IdKeys(known["id"], known["count"].cast(pl.Int64).to_numpy())


@dataclass(frozen=True, eq=False)
class IdKeys:
    """Distinct ids, ascending; the key of an id is its index.

    Attributes
    ----------
    ids
        The ids, Int64 or String.
    counts
        Number of rows of each id.
    """

    ids: pl.Series
    counts: NDArray[np.int64]

    @cached_property
    def _categories(self) -> pl.Enum:
        return pl.Enum(self.ids)

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        return self.ids.to_numpy()

    def keys(self, ids: pl.Series) -> NDArray[np.int32]:
        """Return the keys of some ids, -1 for an unknown one."""
        if self.ids.dtype == pl.String:
            codes = ids.cast(pl.String).cast(self._categories, strict=False).to_physical()
            return codes.cast(pl.Int32).fill_null(-1).to_numpy()
        if ids.dtype == pl.String:
            return np.full(len(ids), -1, np.int32)
        wanted = ids.to_numpy()
        place = np.minimum(np.searchsorted(self._numbers, wanted), len(self.ids) - 1)
        return np.where(self._numbers[place] == wanted, place, -1).astype(np.int32)
