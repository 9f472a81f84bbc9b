"""Splits of ratings into training and test sets.

Both sets are tables of the same users and items. Ratings are whatever
`svmp.ratings.read_ratings` reads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.errors import RatingsError, called
from svmp.inference.running.seeds import Seed, generator
from svmp.ratings import Ratings, read_ratings


class Split(NamedTuple):
    """A training set and a test set."""

    train: Ratings
    test: Ratings


def random(ratings: Any, share: float = 0.1, seed: Seed = 0) -> Split:
    """Hold out a share of the rows, drawn at random.

    >>> ratings = Ratings.of_keys([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [1, 2, 3, 4, 5], 3, 2)
    >>> random(ratings, 0.2)
    Split(train=<Ratings: 4 of 2 items by 3 users>, test=<Ratings: 1 of 2 items by 3 users>)
    """
    ratings = read_ratings(ratings)
    out = np.zeros(len(ratings), bool)
    count = _count(share, len(ratings))
    out[generator(seed).choice(len(ratings), count, replace=False)] = True
    return _split(ratings, out)


def by_time(ratings: Any, share: float = 0.1) -> Split:
    """Hold out the latest share of the rows; rows with equal times stay in order."""
    ratings = read_ratings(ratings)
    out = np.zeros(len(ratings), bool)
    order = np.argsort(_times(ratings), kind="stable")
    out[order[len(ratings) - _count(share, len(ratings)) :]] = True
    return _split(ratings, out)


def last_out(ratings: Any, n: int = 1) -> Split:
    """Hold out the last n rows, by time or else by order, of every user who has more than n."""
    if n < 1:
        raise RatingsError(f"n must be at least 1, not {n}")
    ratings = read_ratings(ratings)
    time = np.zeros(len(ratings)) if ratings.time is None else ratings.time
    order = np.lexsort((np.arange(len(ratings)), time, ratings.user))
    counts = np.bincount(ratings.user, minlength=ratings.users)
    from_end = np.cumsum(counts)[ratings.user[order]] - np.arange(len(ratings))
    out = np.zeros(len(ratings), bool)
    out[order] = (from_end <= n) & (counts[ratings.user[order]] > n)
    return _split(ratings, out)


def cold_users(ratings: Any, share: float = 0.1, seed: Seed = 0) -> Split:
    """Hold out all rows of a share of the users, drawn at random."""
    ratings = read_ratings(ratings)
    return _split(ratings, _cold(ratings.user, ratings.users, share, seed)[ratings.user])


def cold_items(ratings: Any, share: float = 0.1, seed: Seed = 0) -> Split:
    """Hold out all rows of a share of the items, drawn at random."""
    ratings = read_ratings(ratings)
    return _split(ratings, _cold(ratings.item, ratings.items, share, seed)[ratings.item])


def _cold(keys: NDArray[np.int32], size: int, share: float, seed: Seed) -> NDArray[np.bool_]:
    rated = np.unique(keys)
    cold = np.zeros(size, bool)
    chosen = generator(seed).choice(rated, _count(share, len(rated)), replace=False)
    cold[chosen] = True
    return cold


def _times(ratings: Ratings) -> NDArray[np.float64]:
    if ratings.time is None:
        raise RatingsError("a split by time needs ratings with times")
    return ratings.time


def _count(share: float, total: int) -> int:
    """Return the number of elements in a share: at least one, and not all."""
    if not 0 < share < 1:
        raise RatingsError(f"{called('share')} must be between 0 and 1, not {share!r:.60}")
    if total < 2:
        raise RatingsError("there must be at least two to split")
    return min(max(round(share * total), 1), total - 1)


def _split(ratings: Ratings, out: NDArray[np.bool_]) -> Split:
    if not out.any() or out.all():
        raise RatingsError("this split leaves nothing to learn from, or nothing to predict")
    return Split(ratings.take(np.flatnonzero(~out)), ratings.take(np.flatnonzero(out)))
