"""Ratings of the shape of the paper's Netflix sample.

The Netflix data cannot be distributed. The generated ratings have the size of the paper's sample, a
million distinct (user, item) pairs of 4,805 users and 16,015 items with one to five stars, and
tails as heavy as those of real ratings: user activity is log-normal, and item popularity falls as a
power of the rank.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.ratings import Ratings

USERS, ITEMS, RATINGS = 4805, 16015, 1_000_000


def netflix_shaped(scale: float = 1.0, seed: int = 0) -> Ratings:
    """Generate ratings in the shape of the paper's Netflix sample.

    Parameters
    ----------
    scale
        Number of ratings as a share of a million, in (0, 1]. The numbers of users and items shrink
        by its square root.
    seed
        Seed of the random numbers.

    >>> ratings = netflix_shaped(0.01)
    >>> len(ratings), ratings.users, ratings.items
    (10000, 480, 1602)
    """
    if not 0 < scale <= 1:
        raise ModelError(f"scale must be in (0, 1], not {scale}")
    rng = np.random.default_rng([seed, 2014])
    side = np.sqrt(scale)
    users, items, count = round(USERS * side), round(ITEMS * side), round(RATINGS * scale)
    activity = np.exp(1.1 * rng.standard_normal(users))
    popularity = rng.permutation((np.arange(items) + 20.0) ** -0.9)
    user, item = _distinct_pairs(rng, activity, popularity, count)
    score = 3.6 + 0.4 * rng.standard_normal(users)[user] + 0.45 * rng.standard_normal(items)[item]
    taste, trait = 0.45 * rng.standard_normal((users, 5)), 0.6 * rng.standard_normal((items, 5))
    score += np.einsum("rk,rk->r", taste[user], trait[item]) + 0.8 * rng.standard_normal(count)
    stars = np.clip(np.rint(score), 1, 5)
    return Ratings.of_keys(user, item, stars, users, items)


def _distinct_pairs(
    rng: np.random.Generator,
    activity: NDArray[np.float64],
    popularity: NDArray[np.float64],
    count: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw user and item by activity and popularity until there are `count` distinct pairs."""
    found = np.zeros(0, dtype=np.int64)
    while len(found) < count:
        more = count - len(found) + count // 10
        user = rng.choice(len(activity), more, p=activity / activity.sum())
        item = rng.choice(len(popularity), more, p=popularity / popularity.sum())
        found = np.unique(np.concatenate([found, user * len(popularity) + item]))
    found = np.sort(rng.choice(found, count, replace=False))
    return found // len(popularity), found % len(popularity)
