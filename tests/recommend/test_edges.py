"""Very small data: a sensible result, or one clear error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.recommend import EventModel, RatingModel

QUIET: Any = {"progress": False, "threads": 1}
Model = RatingModel | EventModel


def models() -> list[Any]:
    return [RatingModel(2, max_sweeps=3, **QUIET), EventModel(2, iterations=2, **QUIET)]


def test_constant_ratings_predict_the_constant() -> None:
    pair = np.random.default_rng(0).choice(400, 200, replace=False)
    model = RatingModel(3, **QUIET).fit((pair // 20, pair % 20, np.full(200, 4.0)))
    user, item = np.divmod(np.arange(400), 20)
    np.testing.assert_allclose(model.predict(user, item), 4.0, atol=1e-6)
    low, high = model.predict_interval(user, item)
    assert (low <= 4).all()
    assert (high >= 4).all()
    assert np.allclose(model.predict(model.fold_in({1: 4.0}), [2, 3]), 4.0)


@pytest.mark.parametrize("model", models())
def test_single_user_who_has_rated_all_items(model: Model) -> None:
    model.fit((np.zeros(5, int), np.arange(5), np.arange(1.0, 6.0)))
    assert len(model.recommend(0, 10).items) == 0
    assert len(model.recommend(0, 10, exclude_seen=False).items) == 5
    assert len(model.similar_users(0).items) == 0
    several = model.recommend([0, 0], 3)
    assert np.isnan(several.scores).all()
    assert (several.items == -1).all()


@pytest.mark.parametrize("model", models())
def test_one_item_and_one_rating(model: Model) -> None:
    model.fit((np.arange(5), np.zeros(5, int), np.arange(1.0, 6.0)))
    assert len(model.similar_items(0).items) == 0
    assert model.recommend(model.fold_in([]), 10).items.tolist() == [0]
    model.fit(([7], [8], [3.0]))
    assert np.isfinite(model.predict(7, 8)).all()
    with pytest.raises(svmp.ModelError, match="there is no user 8 in the model"):
        model.recommend(8)
    assert model.recommend(8, unknown="prior").items.tolist() == [8]
    for ask in (model.similar_items, lambda item: model.explain(7, item)):
        with pytest.raises(svmp.ModelError, match=r"there is no item 9 in the model$"):
            ask(9)  # it takes no argument unknown=


@pytest.mark.parametrize("model", models())
def test_string_and_integer_ids_are_not_confused(model: Model) -> None:
    model.fit((["1", "ann", "2"], ["a", "b", "7"], [4.0, 3.0, 5.0]))
    for wrong in (1, np.array([1, 2])):
        with pytest.raises(svmp.ModelError, match="the ids are strings, and 1 is not"):
            model.recommend(wrong)
    before = model.users_
    with pytest.raises(svmp.RatingsError, match="the ids are strings, and 5 is not"):
        model.update(([5], ["a"], [3.0]))
    assert model.users_ is before


@pytest.mark.parametrize("model", models())
def test_n_larger_than_the_catalogue_and_zero(model: Model) -> None:
    user, item = np.divmod(np.arange(20), 5)
    model.fit((user[::2], item[::2], np.tile([2.0, 4.0], 5)))
    assert len(model.recommend(0, 1000, exclude_seen=False).items) == 5
    assert len(model.recommend(0, 0).items) == 0
    assert len(model.recommend(0, candidates=[3], exclude=[3]).items) == 0
    with pytest.raises(svmp.ModelError, match="n must be a whole number"):
        model.recommend(0, -1)
