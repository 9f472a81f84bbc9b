"""The paper's matrix factorization, and the q that every run of the study starts from."""

from __future__ import annotations

from typing import Any

import numpy as np

from svmp import models
from svmp.network.model import Model
from svmp.ratings import read_ratings


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
