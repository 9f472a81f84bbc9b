"""Ratings that lie in parts, each with all ratings of its users.

One pass over the parts finds what depends on all of them: the ids, the number of ratings of each
user, their mean and their standard deviation. From then on a part is loaded as a table of keys:
users are numbered part after part, and items are the same in every part.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import FileError, RatingsError
from svmp.parts.parquet_files import MARKER, ParquetSource
from svmp.parts.sources import Source
from svmp.ratings import Ratings
from svmp.ratings.part_folder import IDS
from svmp.ratings.table import Ids, keys_of
from svmp.recommend.files import read_ids
from svmp.recommend.part_reader import PartReader

Report = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class PartsSummary:
    """What depends on the ratings of all parts.

    Attributes
    ----------
    item_values
        The distinct items, as the parts have them, ascending.
    user_ids, item_ids
        Ids of all users, part after part, and of all items.
    first
        By part, the number of its first user; and the number of all users.
    counts
        Number of ratings of each user.
    largest
        Number of ratings of the largest part.
    mean, std, low, high
        Mean and standard deviation of all ratings, the least and the greatest.
    timed
        Whether all ratings have times.
    """

    item_values: Ids
    user_ids: Ids
    item_ids: Ids
    first: NDArray[np.int64]
    counts: NDArray[np.int64]
    largest: int
    mean: float
    std: float
    low: float
    high: float
    timed: bool

    @property
    def users(self) -> int:
        """Number of users."""
        return len(self.user_ids)

    @property
    def items(self) -> int:
        """Number of items."""
        return len(self.item_ids)

    @property
    def ratings(self) -> int:
        """Number of ratings."""
        return int(self.counts.sum())


@dataclass
class _Totals:
    """Sums over the parts that have been read."""

    users: list[Ids] = field(default_factory=list)
    counts: list[NDArray[np.int64]] = field(default_factory=list)
    items: Ids | None = None
    rows: list[int] = field(default_factory=list)
    means: list[float] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)
    low: float = np.inf
    high: float = -np.inf
    timed: bool = True

    def add(self, table: Ratings, name: str) -> None:
        """Add the ratings of a part."""
        rating = table.rating.astype(np.float64)
        self.users.append(table.user_ids)
        self.counts.append(np.bincount(table.user, minlength=table.users))
        self.items = table.item_ids if self.items is None else _joined(self.items, table, name)
        if table.user_ids.dtype.kind != self.users[0].dtype.kind:
            raise RatingsError(
                f"{name}: the users are not of the same kind as in the parts before it: numbers "
                "here, strings there, or the other way round"
            )
        self.rows.append(len(table))
        self.means.append(float(rating.mean()))
        self.squares.append(float(np.square(rating - self.means[-1]).sum()))
        self.low, self.high = min(self.low, rating.min()), max(self.high, rating.max())
        self.timed &= table.time is not None


def summarise(
    reader: PartReader, report: Report, stopped: Callable[[], bool] = lambda: False
) -> PartsSummary:
    """Read all parts once; raise if a user is in two of them."""
    totals, first = _Totals(), [0]
    for part in range(len(reader.source)):
        if stopped():
            raise KeyboardInterrupt
        report(f"reading part {part + 1:,} of {len(reader.source):,}")
        table = reader.read(part)
        if table is not None:
            totals.add(table, reader.source.name(part))
        first.append(first[-1] + (0 if table is None else table.users))
    if totals.items is None:
        raise RatingsError("there are no ratings in any part")
    users: Any = np.concatenate(totals.users)
    numbers = np.array(first)
    _check_disjoint(users, numbers, reader.source)
    weights = np.array(totals.rows, np.float64)
    mean = float(np.average(totals.means, weights=weights))
    square = sum(totals.squares) + float(np.sum(weights * np.square(np.array(totals.means) - mean)))
    ids = _ids_beside(reader.source)
    return PartsSummary(
        totals.items,
        _as_ids(users, ids, "user"),
        _as_ids(totals.items, ids, "item"),
        numbers,
        np.concatenate(totals.counts),
        max(totals.rows),
        mean,
        float(np.sqrt(square / weights.sum())),
        totals.low,
        totals.high,
        totals.timed,
    )


@dataclass(frozen=True, eq=False)
class RatingParts(Source):
    """Parts as tables of keys, with ratings minus their mean, in units of their deviation.

    Attributes
    ----------
    reader
        Loads the parts.
    item_values, first
        As in `PartsSummary`.
    mean, scale
        What is subtracted from a rating, and by what the difference is divided.
    seed, share
        Which ratings are held out, about this share: those whose pair has a small hash.
    held
        Which ratings to load: False for those that are not held out, True for those that are, None
        for all.
    """

    reader: PartReader
    item_values: Ids
    first: NDArray[np.int64]
    mean: float = 0.0
    scale: float = 1.0
    seed: int = 0
    share: float = 0.0
    held: bool | None = None

    @classmethod
    def of(cls, reader: PartReader, about: PartsSummary, seed: int, share: float) -> RatingParts:
        """Return the parts that were summarised, with all their ratings."""
        scale = about.std or 1.0
        return cls(reader, about.item_values, about.first, about.mean, scale, seed, share)

    def only(self, held: bool | None) -> RatingParts:
        """Return the parts with only those ratings that are held out, or are not; None for all."""
        return replace(self, held=held)

    def __len__(self) -> int:
        return len(self.reader.source)

    def load(self, part: int) -> Ratings:
        """Return the ratings of a part, by the keys of its own users and of all items."""
        table, users = self.keyed(part), int(self.first[part + 1] - self.first[part])
        unit = (table.rating - np.float32(self.mean)) / np.float32(self.scale)
        every = np.arange(users), np.arange(len(self.item_values))
        found = Ratings(table.user, table.item, unit, *every)
        if self.held is None or not self.share:
            return found
        chosen = is_held(table.user + self.first[part], table.item, self.seed, self.share)
        if chosen.all():  # a part without ratings would have no users
            chosen[:] = False
        return found.take(np.flatnonzero(chosen == self.held))

    def keyed(self, part: int) -> Ratings:
        """Return the ratings of a part as they are, by the keys of its users and of all items."""
        users = int(self.first[part + 1] - self.first[part])
        table = self.reader.read(part, checked=True)
        name = self.reader.source.name(part)
        if (0 if table is None else table.users) != users:
            raise FileError(f"{name}: the part has changed since it was read first")
        if table is None:
            return Ratings.of_keys([], [], [], 0, len(self.item_values))
        place = keys_of(self.item_values, table.item_ids, np.arange(len(self.item_values)))
        if (place < 0).any():
            raise FileError(f"{name}: the part has changed since it was read first")
        return replace(table, item=place.astype(np.int32)[table.item], item_ids=self.item_values)

    def name(self, part: int) -> str:
        return self.reader.source.name(part)

    def rows(self, part: int) -> int | None:
        """Return 0 for a part without users; other numbers are known only after loading."""
        return None if self.first[part + 1] > self.first[part] else 0

    def fingerprint(self, part: int) -> str:
        return self.reader.source.fingerprint(part)


def is_held(user: Any, item: Any, seed: int, share: float) -> NDArray[np.bool_]:
    """Return which pairs are held out: about the given share, whatever part they are in.

    The hash is the finaliser of SplitMix64.
    """
    with np.errstate(over="ignore"):
        mixed = np.asarray(user, np.uint64) << np.uint64(32) | np.asarray(item, np.uint64)
        mixed += np.uint64(seed % 2**63) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return np.asarray(mixed < np.uint64(min(max(share, 0.0), 1 - 1e-12) * 2.0**64))


def held_table(parts: RatingParts, report: Report) -> Ratings:
    """Return the held-out ratings of all parts, by the numbers of users."""
    users, items = int(parts.first[-1]), len(parts.item_values)
    source, columns = parts.only(True), list[tuple[Any, Any, Any]]()
    for part in range(len(parts)):
        report(f"holding out ratings of part {part + 1:,} of {len(parts):,}")
        found = source.load(part)
        columns.append((found.user + parts.first[part], found.item, found.rating))
    user, item, rating = (np.concatenate(each) for each in zip(*columns, strict=True))
    return Ratings.of_keys(user, item, rating, users, items)


def _joined(items: Ids, table: Ratings, name: str) -> Ids:
    """Return the items of the parts so far and of one more, ascending."""
    if items.dtype.kind != table.item_ids.dtype.kind:
        raise RatingsError(
            f"{name}: the items are not of the same kind as in the parts before it: numbers here, "
            "strings there, or the other way round"
        )
    return np.union1d(items, table.item_ids)


def _check_disjoint(users: Ids, first: NDArray[np.int64], source: Source) -> None:
    """Raise if a user is in two parts."""
    order = np.argsort(users, kind="stable")
    again = np.flatnonzero(users[order[1:]] == users[order[:-1]])
    if not len(again):
        return
    places = order[again[0]], order[again[0] + 1]
    one, other = (
        source.name(int(np.searchsorted(first, place, side="right")) - 1) for place in places
    )
    raise RatingsError(
        f"user {users[places[0]]!s:.60} is in {one} and in {other}, but all ratings of a user must "
        "be in one part; `svmp recommend partition` (svmp.ratings.partition) writes such parts"
    )


def _ids_beside(source: Source) -> dict[str, Ids]:
    """Return the ids by key, if the parts were written by `partition`."""
    if not isinstance(source, ParquetSource):
        return {}
    folders = {os.path.dirname(part.place) for part in source.parts}
    found: dict[str, Ids] = {}
    for folder in folders:
        if len(folders) == 1 and (Path(folder) / MARKER).is_file():
            for role, name in IDS.items():
                try:
                    found[role] = read_ids(Path(folder) / name)
                except FileError as error:
                    raise FileError(f"{folder}: {error}") from None
    return found


def _as_ids(values: Ids, ids: dict[str, Ids], role: str) -> Ids:
    """Return the ids of values, which are keys if there are ids beside the parts."""
    if role not in ids:
        return values
    if values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= len(ids[role]):
        raise FileError(f"the parts have {role}s that {IDS[role]} has no ids of")
    return ids[role][values]
