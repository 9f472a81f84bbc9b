"""Ratings sorted by user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.kernels.machine.pairs import find_pairs
from svmp.kernels.machine.sorting import by_key, take
from svmp.ratings import Ratings
from svmp.recommend.side import Keys


@dataclass(frozen=True, eq=False)
class History:
    """The rows of a table of ratings, sorted by user.

    Attributes
    ----------
    begin
        The rows of user m are `begin[m] : begin[m + 1]`.
    item, rating, time
        Item key, rating and time of each row; `time` may be None.
    """

    begin: NDArray[np.int64]
    item: NDArray[np.int32]
    rating: NDArray[np.float32]
    time: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, ratings: Ratings) -> History:
        """Sort a table by user; the sort is stable."""
        begin, order = by_key(ratings.user, ratings.users)

        def kept(column: NDArray[Any]) -> NDArray[Any]:  # a copy: it belongs to the caller
            return column.copy() if order is None else take(column, order)

        time = None if ratings.time is None else kept(ratings.time)
        return cls(begin, kept(ratings.item), kept(ratings.rating), time)

    @classmethod
    def empty(cls, users: int) -> History:
        """Return the history of users whose ratings are not kept."""
        none = np.zeros(0, np.int32)
        return cls(np.zeros(users + 1, np.int64), none, none.astype(np.float32))

    @property
    def user(self) -> NDArray[np.int32]:
        """User key of each row."""
        return np.repeat(np.arange(len(self.begin) - 1, dtype=np.int32), np.diff(self.begin))

    def rows(self, user: int) -> slice:
        """Return the rows of a user as a slice, which is empty for an unknown user."""
        return slice(0, 0) if user < 0 else slice(self.begin[user], self.begin[user + 1])

    def rows_of(self, users: Keys) -> tuple[Keys, Keys]:
        """Return the rows of several users: offsets by user, and row numbers."""
        known = np.maximum(users, 0)
        counts = np.where(users < 0, 0, self.begin[known + 1] - self.begin[known])
        begin = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(begin[-1]) - np.repeat(begin[:-1], counts)
        return begin, np.repeat(self.begin[known], counts) + within

    def items(self, users: Keys) -> tuple[Keys, Keys]:
        """Return the items of several users: offsets by user, and item keys."""
        begin, rows = self.rows_of(users)
        return begin, self.item[rows].astype(np.int64)

    def find(self, user: Keys, item: Keys) -> Keys:
        """Return the row of each pair, -1 for pairs without a rating."""
        return find_pairs(self.begin, self.item, user, item)

    def ratings_of(self, user: Keys, item: Keys) -> NDArray[np.float32]:
        """Return the ratings of pairs, NaN for pairs without a rating."""
        rows = self.find(user, item)
        found = np.full(len(rows), np.nan, np.float32)
        found[rows >= 0] = self.rating[rows[rows >= 0]]
        return found

    def then(
        self,
        users: int,
        user: Keys,
        item: Keys,
        rating: NDArray[np.float32],
        time: NDArray[np.float64] | None,
    ) -> History:
        """Add rows of users behind their earlier ones; a pair that exists is replaced.

        The rows are in any order, and there are `users` in all. New rows without times get the
        latest time of this history; if it has no times, those of new rows are dropped.
        """
        order = _last_of_pairs(user, item)
        user, item, rating = user[order], item[order], rating[order]
        gone = self.find(user, item)
        gone = gone[gone >= 0]
        left = np.zeros(users, np.int64)
        left[: len(self.begin) - 1] = np.diff(self.begin)
        left -= np.bincount(np.searchsorted(self.begin, gone, "right") - 1, minlength=users)
        place = np.cumsum(left)[user]

        def column(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
            return np.insert(np.delete(old, gone) if len(gone) else old, place, new)

        begin = np.zeros(users + 1, np.int64)
        np.cumsum(left + np.bincount(user, minlength=users), out=begin[1:])
        times = None
        if self.time is not None:
            late = np.full(len(user), self.time.max(initial=0.0)) if time is None else time[order]
            times = column(self.time, late)
        return History(begin, column(self.item, item), column(self.rating, rating), times)


def _last_of_pairs(user: Keys, item: Keys) -> Keys:
    """Return the rows in the order of users, of equal pairs the last one only."""
    by_user = np.argsort(user, kind="stable")
    pair = user.astype(np.int64) * (int(item.max(initial=0)) + 1) + item
    _, last = np.unique(pair[::-1], return_index=True)
    if len(last) < len(pair):
        kept = np.zeros(len(pair), bool)
        kept[len(pair) - 1 - last] = True
        by_user = by_user[kept[by_user]]
    return by_user
