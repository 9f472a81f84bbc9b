"""Build a table from columns: keys from 0, and one rating for each pair."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from svmp.errors import RatingsError, argument, called
from svmp.ratings import convert
from svmp.ratings.convert import SourceColumns
from svmp.ratings.lines import MOST
from svmp.ratings.table import Duplicates, Ids, Ratings

Keys = NDArray[np.int32]


def build_table(
    found: SourceColumns,
    duplicates: Duplicates,
    span: tuple[float, float] | None,
    text_ids: Collection[str] = (),
) -> Ratings:
    """Return the table of some columns."""
    check_duplicates(duplicates)
    rows = len(found.columns["user"])
    if not rows:
        raise RatingsError(f"{found.name}: there are no ratings")
    rating = np.ones(rows, np.float32)
    if "rating" in found.columns:
        rating = convert.numbers(found, span).to_numpy()
    time = convert.times(found).to_numpy() if "time" in found.columns else None
    user, user_ids = _keys(found, "user", "user" in text_ids)
    item, item_ids = _keys(found, "item", "item" in text_ids)
    table = Ratings(user, item, rating, user_ids, item_ids, time)
    pair = table.user.astype(np.int64) * table.items + table.item
    in_order = np.sort(pair)
    if (in_order[1:] != in_order[:-1]).all():
        return table
    if duplicates == "error":
        raise _repeated(found, table, pair)
    return deduplicated(table, pair, duplicates)


def check_duplicates(rule: Duplicates) -> None:
    """Raise unless this is a rule for repeated ratings."""
    if rule not in get_args(Duplicates):
        raise RatingsError(
            f"{called('duplicates')} must be 'error', 'last', 'mean' or 'sum', not {rule!r:.60}"
        )


def _keys(found: SourceColumns, role: str, text: bool) -> tuple[Keys, Ids]:
    """Return the key of each row, and the sorted ids."""
    if role in found.ids:
        known = found.ids[role]
        known = known.astype(np.str_) if text else known
        return found.columns[role].cast(pl.Int32).to_numpy(), known
    ids = convert.ids(found, role, text)
    distinct = ids.unique().sort()
    if ids.dtype == pl.String:
        longest = int(distinct.str.len_chars().max() or 0)  # type: ignore[arg-type]
        if 4 * longest * len(distinct) > MOST:
            raise RatingsError(
                f"{found.name}: {len(distinct):,} {role}s of up to {longest:,} characters take too "
                "much memory"
            )
        keys = ids.cast(pl.Enum(distinct)).to_physical()
        return keys.cast(pl.Int32).to_numpy(), np.array(distinct.to_list())
    numbers, known = ids.to_numpy(), distinct.to_numpy()
    low, width = int(known[0]), int(known[-1]) - int(known[0]) + 1
    if width > 4 * len(numbers) + 1000:
        return np.searchsorted(known, numbers).astype(np.int32), known
    place = np.zeros(width, np.int32)
    place[known - low] = np.arange(len(known), dtype=np.int32)
    return place[numbers - low], known


def _repeated(found: SourceColumns, table: Ratings, pair: NDArray[np.int64]) -> RatingsError:
    """Return the error of the first row whose pair has been rated before."""
    order = np.argsort(pair, kind="stable")
    again = order[1:][pair[order][1:] == pair[order][:-1]]
    second = int(again.min())
    first = int(np.argmax(pair == pair[second]))
    ids = table.user_ids[table.user[second]], table.item_ids[table.item[second]]
    return repeated_error(found.where(first), found.where(second), *ids)


def repeated_error(first: str, second: str, user: object, item: object) -> RatingsError:
    """Return the error of two rows that rate the same item."""
    rules = argument("duplicates", "'last' or 'mean'", "last or mean")
    return RatingsError(
        f"{second}: user {user!s:.60} has rated item {item!s:.60} already ({first}); say which "
        f"counts with {rules}"
    )


def deduplicated(table: Ratings, pair: NDArray[np.int64], rule: Duplicates) -> Ratings:
    """Keep one rating of each pair: the last, by time if there are times, the mean, or the sum."""
    time = np.zeros(len(table)) if table.time is None else table.time
    order = np.lexsort((np.arange(len(table)), time, pair))
    new = np.append(True, pair[order][1:] != pair[order][:-1])
    last = order[np.append(new[1:], True)]
    rating = table.rating[last]
    if rule in ("mean", "sum"):
        group = np.cumsum(new) - 1
        total = np.bincount(group, table.rating[order])
        rating = (total / (np.bincount(group) if rule == "mean" else 1)).astype(np.float32)
    rows = np.argsort(last)
    kept = table.take(last[rows])
    return Ratings(kept.user, kept.item, rating[rows], kept.user_ids, kept.item_ids, kept.time)
