"""A table of ratings: one row per rating, with keys of users and items from 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svmp.errors import RatingsError

Ids = NDArray[np.int64] | NDArray[np.str_]
Duplicates = Literal["error", "last", "mean", "sum"]
"""How to treat repeated ratings of an item by the same user."""
LARGEST_RATING = 1e13
"""Largest absolute value of a rating: a model of larger ones could overflow in single precision."""


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """A table of ratings; its arrays are read-only.

    Attributes
    ----------
    user, item
        Keys, int32 from 0: rating r is of user `user_ids[user[r]]` and item `item_ids[item[r]]`.
    rating
        float32.
    user_ids, item_ids
        The original ids, distinct whole numbers or strings.
    time
        Seconds since 1970 if the source had dates, else its numbers; or None.
    """

    user: NDArray[np.int32]
    item: NDArray[np.int32]
    rating: NDArray[np.float32]
    user_ids: Ids
    item_ids: Ids
    time: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        kinds = {"user": np.int32, "item": np.int32, "rating": np.float32, "time": np.float64}
        for name, kind in kinds.items():
            if name != "time" or self.time is not None:
                self._freeze(name, np.asarray(getattr(self, name), kind))
        for name in ("user_ids", "item_ids"):
            self._freeze(name, np.asarray(getattr(self, name)))

    def _freeze(self, name: str, array: NDArray[Any]) -> None:
        own = array.view()
        own.flags.writeable = False
        object.__setattr__(self, name, own)

    @classmethod
    def of_keys(
        cls, user: ArrayLike, item: ArrayLike, rating: ArrayLike, users: int, items: int
    ) -> Ratings:
        """Return a table of keys, which are their own ids.

        >>> Ratings.of_keys([0, 0, 1], [0, 2, 1], [4, 5, 3], users=2, items=3)
        <Ratings: 3 of 3 items by 2 users>
        """
        keys = np.asarray(user, np.int32), np.asarray(item, np.int32)
        return cls(*keys, np.asarray(rating, np.float32), np.arange(users), np.arange(items))

    @property
    def users(self) -> int:
        """Number of users, with or without ratings."""
        return len(self.user_ids)

    @property
    def items(self) -> int:
        """Number of items, with or without ratings."""
        return len(self.item_ids)

    def take(self, rows: ArrayLike) -> Ratings:
        """Return some of the rows, with the same users and items.

        >>> Ratings.of_keys([0, 0, 1], [0, 2, 1], [4, 5, 3], users=2, items=3).take([2, 0]).rating
        array([3., 4.], dtype=float32)
        """
        some = np.asarray(rows)
        time = None if self.time is None else self.time[some]
        columns = self.user[some], self.item[some], self.rating[some]
        return Ratings(*columns, self.user_ids, self.item_ids, time)

    def __len__(self) -> int:
        return len(self.rating)

    def __repr__(self) -> str:
        return f"<Ratings: {len(self):,} of {self.items:,} items by {self.users:,} users>"


def keys_of(
    known: Ids, ids: Sequence[Any] | NDArray[Any], order: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return the index of each id in `known`, -1 if it is absent.

    `order` is the argsort of `known`, which a caller may compute once.

    >>> keys_of(np.array([10, 30, 20]), [20, 5, 10])
    array([ 2, -1,  0])
    """
    wanted = np.asarray(ids)
    if wanted.size == 0:
        return np.zeros(wanted.shape, np.int64)
    numbers = known.dtype.kind in "iu"
    if wanted.dtype.kind != known.dtype.kind and (
        wanted.dtype.kind not in "iu" if numbers else wanted.dtype.kind != "U"
    ):
        kind = "whole numbers" if numbers else "strings"
        raise RatingsError(f"the ids are {kind}, and {wanted.reshape(-1).tolist()[0]!r:.60} is not")
    order = np.argsort(known, kind="stable") if order is None else order
    place = np.minimum(np.searchsorted(known, wanted, sorter=order), max(len(known) - 1, 0))
    found = order[place] if len(known) else np.zeros(wanted.shape, np.int64)
    return np.where(known[found] == wanted, found, -1) if len(known) else found - 1
