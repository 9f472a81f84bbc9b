"""What users have rated, one user after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from svmp.ratings import Ratings
from svmp.recommend.side import Keys


@dataclass(frozen=True, eq=False)
class History:
    """The rows of a table of ratings, sorted by user.

    Attributes
    ----------
    begin
        Where the rows of each user begin, and where the last one's end.
    item, rating, time
        By row: the key of the item, the rating, and the time or None.
    """

    begin: NDArray[np.int64]
    item: NDArray[np.int32]
    rating: NDArray[np.float32]
    time: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, ratings: Ratings) -> History:
        """Sort a table by user; of each user the rows stay in their order."""
        order = np.argsort(ratings.user, kind="stable")
        begin = np.zeros(ratings.users + 1, np.int64)
        np.cumsum(np.bincount(ratings.user, minlength=ratings.users), out=begin[1:])
        time = None if ratings.time is None else ratings.time[order]
        return cls(begin, ratings.item[order], ratings.rating[order], time)

    @property
    def user(self) -> NDArray[np.int32]:
        """The key of the user, by row."""
        return np.repeat(np.arange(len(self.begin) - 1, dtype=np.int32), np.diff(self.begin))

    def rows(self, user: int) -> slice:
        """Return where the rows of a user are; of an unknown one there are none."""
        return slice(0, 0) if user < 0 else slice(self.begin[user], self.begin[user + 1])

    def items(self, users: Keys) -> tuple[Keys, Keys]:
        """Return the items of some users: where those of each begin, and their keys."""
        known = np.maximum(users, 0)
        counts = np.where(users < 0, 0, self.begin[known + 1] - self.begin[known])
        begin = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(begin[-1]) - np.repeat(begin[:-1], counts)
        return begin, self.item[np.repeat(self.begin[known], counts) + within].astype(np.int64)
