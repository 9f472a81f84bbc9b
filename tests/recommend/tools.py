"""A small model, fitted once."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from svmp.models import matrix_factorization
from svmp.network.model import Model
from svmp.ratings import Ratings
from svmp.recommend import RatingModel, split
from svmp.recommend.network import pairs_of, priors_of
from svmp.recommend.side import Side
from svmp.recommend.split import Split


def drawn(seed: int, count: int = 1200, words: bool = False) -> Ratings:
    """Ratings of one to five stars with two true factors."""
    users, items = 60, 40
    rng = np.random.default_rng(seed)
    pair = rng.choice(users * items, count, replace=False)
    user, item = pair // items, pair % items
    score = 3 + 0.5 * rng.normal(size=users)[user] + 0.5 * rng.normal(size=items)[item]
    u, v = rng.normal(size=(users, 2)), rng.normal(size=(items, 2))
    score += 0.5 * np.einsum("rk,rk->r", u[user], v[item]) + 0.5 * rng.normal(size=count)
    rating = np.clip(np.rint(score), 1, 5).astype(np.float32)
    ids: tuple[Any, Any] = (np.arange(users) * 3 + 1, np.arange(items) * 7)
    if words:
        ids = tuple(np.array([f"{x}{n:03}" for n in range(k)]) for x, k in (("u", 60), ("i", 40)))
    return Ratings(user.astype(np.int32), item.astype(np.int32), rating, *ids)


@cache
def parts(seed: int = 0) -> Split:
    return split.random(drawn(seed), 0.1)


@cache
def fitted(covariance: Any = "diagonal", noise: Any = "shared", words: bool = False) -> RatingModel:
    train = split.random(drawn(0, words=words), 0.1).train
    model = RatingModel(3, covariance=covariance, noise=noise, progress=False, threads=1)
    return model.fit(train)


def continued(ratings: Ratings, users: Side, items: Side, precision: Any) -> Model:
    """Declare the network of more ratings, with a prior for each user and each item.

    The precision of the noise is given, for all ratings or for each.
    """
    return matrix_factorization(
        pairs_of(ratings),
        ratings.rating,
        users.width,
        priors=priors_of(users, items),
        covariance="full" if users.full else "diagonal",
        noise=precision,
    )


def copied(model: Path, to: Path) -> Path:
    """Copy the folder of a saved model."""
    return Path(shutil.copytree(model, to))
