"""Baselines for every recommender: biases without factors, and popularity."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from svmp.recommend.factor_model import FactorModel
from svmp.recommend.fold import Array
from svmp.recommend.history import History
from svmp.recommend.rating import RatingModel
from svmp.recommend.side import EntityTable, Floats, Keys, Side


class Popularity(FactorModel):
    """The score of an item is its number of ratings, the same for every user."""

    def fit(self, ratings: Any) -> Self:
        """Count the ratings of each item."""
        ratings = self.read(ratings)
        counts = np.bincount(ratings.item, minlength=ratings.items)
        self.offset_ = 0.0
        self.users_ = EntityTable(
            "user", ratings.user_ids, _flat(np.zeros(ratings.users)), _flat([0.0])
        )
        self.items_ = EntityTable("item", ratings.item_ids, _flat(counts), _flat([0.0]))
        self.history_ = History.of(ratings)
        return self

    def _parts(self, items: Keys, ratings: Floats, user: int, one: Side) -> Array:
        return np.zeros(len(items))  # scores do not depend on the user


def biases(ratings: Any, like: RatingModel | None = None) -> RatingModel:
    """Fit the same model without factors."""
    model = RatingModel() if like is None else RatingModel(**like.get_params())
    return model.set_params(factors=0, progress=False).fit(ratings)


def _flat(bias: object) -> Side:
    """Return elements with known biases and without factors."""
    values = np.asarray(bias, np.float32)
    empty = np.zeros((len(values), 0), np.float32)
    return Side(values, np.zeros_like(values), empty, empty)
