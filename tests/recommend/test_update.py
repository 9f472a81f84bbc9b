"""Updates with more ratings, of known and new users and items, are close to a new fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.datasets import netflix_shaped
from svmp.ratings import Ratings
from svmp.recommend import RatingModel, split
from tests.recommend.tools import drawn

QUIET: Any = {"progress": False, "threads": 1}


def error(model: RatingModel, test: Ratings) -> float:
    users, items = test.user_ids[test.user], test.item_ids[test.item]
    return float(np.sqrt(np.mean((model.predict(users, items) - test.rating) ** 2)))


@pytest.mark.parametrize("covariance", ["diagonal", pytest.param("full", marks=pytest.mark.slow)])
def test_update_is_close_to_a_new_fit(covariance: Any) -> None:
    train, test = split.random(netflix_shaped(0.03), 0.2)
    before, late = split.random(train, 0.1, seed=3)
    model = RatingModel(2, covariance=covariance, **QUIET).fit(before)
    first = error(model, test)
    model.update(late)
    anew = RatingModel(2, covariance=covariance, **QUIET).fit(train)
    assert error(model, test) < first
    assert error(model, test) < 1.005 * error(anew, test)


def test_update_adds_new_users_and_items_and_keeps_the_rest() -> None:
    model = RatingModel(2, **QUIET).fit(drawn(5))
    before = model.users_.side.mean.copy()
    old = model.items_.ids[:3].tolist()
    folded = model.fold_in(old, [5.0, 5.0, 5.0])
    wanted = model.predict(folded, model.items_.ids[10])
    rows = ([9999] * 4, [*old, 777], [5.0, 5.0, 5.0, 1.0])
    model.update([column[:3] for column in rows])
    assert model.predict(9999, model.items_.ids[10]) == pytest.approx(wanted, abs=0.1)
    model.update([column[3:] for column in rows])
    assert (len(model.users_), len(model.items_)) == (61, 41)
    assert np.array_equal(model.users_.side.mean[:60], before)
    assert model.predict(9999, 777)[0] < model.predict(9999, old[0])[0]
    assert set(model.recommend(9999, 100).items.tolist()).isdisjoint([*old, 777])
    assert model.history_.rating[model.history_.rows(60)].tolist() == rows[2]


def test_updated_bias_is_the_closed_form_posterior() -> None:
    """Without factors, one rating of a known item: a Normal with known noise."""
    model = RatingModel(0, **QUIET).fit(drawn(5))
    user, items = 3, model.items_.side
    rated = model.history_.item[model.history_.rows(user)]
    item = int(np.setdiff1d(np.arange(len(items)), rated)[0])
    items.bias_var[item] = 1e-9
    mean, var = float(model.users_.side.bias[user]), float(model.users_.side.bias_var[user])
    target = 5.0 - model.offset_ - float(items.bias[item])
    noise = float(model.noise_[user])
    model.update(([model.users_.ids[user]], [model.items_.ids[item]], [5.0]))
    precision = 1 / var + 1 / noise
    wanted = (mean / var + target / noise) / precision
    assert model.users_.side.bias_var[user] == pytest.approx(1 / precision, rel=1e-4)
    assert model.users_.side.bias[user] == pytest.approx(wanted, rel=1e-3, abs=1e-5)


def test_second_rating_of_a_pair_replaces_the_first() -> None:
    model = RatingModel(2, **QUIET).fit(drawn(5))
    rows = model.history_.rows(0)
    item, count = int(model.history_.item[rows][0]), len(model.history_.item)
    model.update(([model.users_.ids[0]], [model.items_.ids[item]], [2.5]))
    assert len(model.history_.item) == count
    now = model.history_.rows(0)
    place = model.history_.item[now].tolist().index(item)
    assert model.history_.rating[now][place] == 2.5


def test_second_rating_moves_q_by_the_difference() -> None:
    """Without factors and with a known item: the posterior of the new rating instead of the old."""
    model = RatingModel(0, noise="shared", **QUIET).fit(drawn(5))
    rows = model.history_.rows(3)
    item, old = int(model.history_.item[rows][0]), float(model.history_.rating[rows][0])
    model.items_.side.bias_var[item] = 1e-9
    side = model.users_.side
    mean, var = float(side.bias[3]), float(side.bias_var[3])
    pair = [model.users_.ids[3]], [model.items_.ids[item]]
    model.update((*pair, [old]))
    assert model.users_.side.bias[3] == pytest.approx(mean, abs=1e-5)
    new = 1.0 if old > 3 else 5.0
    var = float(model.users_.side.bias_var[3])
    model.update((*pair, [new]))
    wanted = var / float(model.noise_[3]) * (new - old)
    assert model.users_.side.bias[3] - mean == pytest.approx(wanted, rel=0.05)


def test_times_may_be_missing_on_either_side() -> None:
    table = drawn(5)
    late = Ratings(
        table.user, table.item, table.rating, table.user_ids, table.item_ids,
        np.arange(len(table), dtype=float),
    )  # fmt: skip
    model = RatingModel(1, max_sweeps=2, **QUIET).fit(late)
    model.update(([9999], [0], [3.0]))
    time = model.history_.time
    assert time is not None
    assert time[model.history_.rows(60)].tolist() == [len(table) - 1]
    model = RatingModel(1, max_sweeps=2, **QUIET).fit(table)
    assert model.update(([9999], [0], [3.0], [10.0])).history_.time is None


def test_invalid_update_is_refused_and_changes_nothing() -> None:
    model = RatingModel(2, **QUIET).fit(drawn(5))
    before = model.users_
    with pytest.raises(svmp.RatingsError, match="row 0: there is no rating"):
        model.update(([1], [0], [np.nan]))
    with pytest.raises(svmp.RatingsError, match="whole numbers"):
        model.update((["ann"], [0], [3.0]))
    assert model.users_ is before


def test_partial_fit_fits_first_and_updates_later() -> None:
    whole = drawn(5)
    late = np.arange(len(whole.user)) % 10 == 0
    one = (
        RatingModel(2, **QUIET)
        .partial_fit(whole.take(np.flatnonzero(~late)))
        .partial_fit(whole.take(np.flatnonzero(late)))
    )
    other = (
        RatingModel(2, **QUIET)
        .fit(whole.take(np.flatnonzero(~late)))
        .update(whole.take(np.flatnonzero(late)))
    )
    assert np.array_equal(one.users_.side.mean, other.users_.side.mean)
    assert np.array_equal(one.history_.rating, other.history_.rating)
