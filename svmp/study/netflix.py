"""Ratings of the shape of the paper's Netflix sample, and its matrix factorization.

The Netflix data cannot be shipped. This draw has the paper's exact size, a million distinct
(user, item) pairs of 4,805 users and 16,015 items with ratings of one to five stars, and tails as
heavy as ratings have: user activity is log-normal, item popularity falls as a power of the rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp import models
from svmp.errors import ModelError
from svmp.network.model import Model
from svmp.ratings import Ratings, read_ratings

USERS, ITEMS, RATINGS = 4805, 16015, 1_000_000


def netflix_shaped(scale: float = 1.0, seed: int = 0) -> Ratings:
    """Draw ratings; `scale` shrinks users, items and ratings alike.

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
    """Draw pairs by activity and popularity until there are enough different ones."""
    found = np.zeros(0, dtype=np.int64)
    while len(found) < count:
        more = count - len(found) + count // 10
        user = rng.choice(len(activity), more, p=activity / activity.sum())
        item = rng.choice(len(popularity), more, p=popularity / popularity.sum())
        found = np.unique(np.concatenate([found, user * len(popularity) + item]))
    found = np.sort(rng.choice(found, count, replace=False))
    return found // len(popularity), found % len(popularity)


def matrix_factorization(ratings: Any, factors: int = 5) -> Model:
    """Declare the paper's model: r_mn ~ Normal(u_m . v_n, 1), all factors Normal(0, 1)."""
    ratings = read_ratings(ratings)
    pairs = models.UserItemPairs(ratings.user, ratings.item, ratings.users, ratings.items)
    return models.matrix_factorization(pairs, ratings.rating, factors)


def beginning(ratings: Any, factors: int = 5, seed: int = 0) -> dict[str, dict[str, object]]:
    """Draw the start of every run: means ~ N(0, 0.3^2), precisions 1."""
    ratings = read_ratings(ratings)
    rng = np.random.default_rng(seed)
    sizes = {"u": ratings.users, "v": ratings.items}
    return {x: {"mu": 0.3 * rng.normal(size=(n, factors)), "tau": 1.0} for x, n in sizes.items()}
