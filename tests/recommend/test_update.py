"""Updates with more ratings, of known and new users and items, are close to a new fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.datasets import netflix_shaped
from svmp.ratings import Ratings
from svmp.recommend import RatingModel, split, update
from svmp.recommend.network import sides
from tests.recommend.tools import continued, drawn

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


def test_biases_of_new_items_do_not_depend_on_the_seed() -> None:
    found = []
    for seed in range(3):
        model = RatingModel(0, **QUIET).fit(drawn(5))
        model.seed_ = seed
        model.update(([1000, 1000, 1001], [900, 901, 900], [5.0, 4.0, 1.0]))
        found.append(model.predict([1000, 1001], [900, 901]).tolist())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(("factors", "rating"), [(0, 1e13), (2, 1e6)])
def test_what_is_accepted_can_be_saved_and_loaded(
    factors: int, rating: float, tmp_path: Path
) -> None:
    model = RatingModel(factors, range=(1, 1e14), **QUIET).fit(drawn(5))
    user, item = model.users_.ids[0], model.items_.ids[model.history_.item[0]]
    model.update(([user], [item], [rating]))
    model.save(tmp_path / "model")
    again = RatingModel.load(tmp_path / "model")
    assert again.predict(user, item) == model.predict(user, item)


def test_ratings_too_far_from_the_others_are_refused() -> None:
    model = RatingModel(2, range=(1, 1e14), **QUIET).fit(drawn(5))
    user, item = model.users_.ids[0], model.items_.ids[model.history_.item[0]]
    before = model.predict(user, item)
    with pytest.raises(svmp.SvmpError, match="too far from those"):
        model.update(([user], [item], [1e13]))
    assert model.predict(user, item) == before


@pytest.mark.parametrize("span", [None, (1, 5)])
def test_ratings_off_the_scale_are_refused_and_change_nothing(span: Any) -> None:
    """Three ratings of 900 by one user would move the predictions of others by half a star."""
    model = RatingModel(2, range=span, **QUIET).fit(drawn(5))
    user, items = int(model.users_.ids[0]), model.items_.ids[:3]
    others, before = model.users_.ids[1:], model.users_
    predicted = model.predict(others, items[0])
    for rating in (900.0, 0.5):
        with pytest.raises(svmp.RatingsError, match=f"({rating:g} is not between 1 and 5|row 0)"):
            model.update(([user] * 3, items, [rating] * 3))
    assert model.users_ is before
    assert model.predict(others, items[0]).tolist() == predicted.tolist()
    model.update(([user, 9999], items[:2], [1, 5]))  # the ends are valid
    tenths = RatingModel(0, **QUIET).fit(([1, 2, 3], [1, 1, 2], [0.1, 0.7, 0.3]))
    tenths.update(([1], [2], [0.7]))  # which single precision rounds


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


@pytest.mark.parametrize(("factors", "covariance"), [(0, "diagonal"), (2, "full")])
def test_update_is_a_fit_whose_prior_is_the_posterior(factors: int, covariance: Any) -> None:
    """The engine, to convergence, on the network of the new rows; no rating is far off."""
    model = RatingModel(factors, covariance=covariance, **QUIET).fit(drawn(5))
    users, items = model.users_.side, model.items_.side
    every = [(u, i) for u in range(0, 60, 7) for i in range(0, 40, 9)]
    rated = {(u, i) for u, i in zip(model.history_.user, model.history_.item, strict=True)}
    user, item = np.array([pair for pair in every if pair not in rated]).T
    some_users, u = np.unique(user, return_inverse=True)
    some_items, i = np.unique(item, return_inverse=True)
    rating = model.predict_keys(user, item)[0] + 0.3 * np.sin(np.arange(len(user)))
    rows = Ratings.of_keys(u, i, rating - model.offset_, len(some_users), len(some_items))
    before = users.at(some_users), items.at(some_items)
    network = continued(rows, *before, 1 / model.noise_[user].astype(np.float64))
    start = {"u": before[0].mean, "v": before[1].mean} if factors else None
    engine = svmp.fit(network, svmp.FullVB(), init=start, max_sweeps=500, tol=1e-12, progress=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update, "SWEEPS", 500)
        model.update((model.users_.ids[user], model.items_.ids[item], rating))
    after = model.users_.side.at(some_users), model.items_.side.at(some_items)
    for found, wanted in zip(after, sides(engine.posteriors), strict=True):
        for one, other in zip(found.arrays(), wanted.arrays(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_models_that_are_saved_between_updates_learn_the_same(tmp_path: Path) -> None:
    whole = drawn(5)
    parts = [np.flatnonzero(np.arange(len(whole)) % 10 == k) for k in range(3)]
    rest = np.flatnonzero(np.arange(len(whole)) % 10 > 2)
    one = RatingModel(2, covariance="full", **QUIET).fit(whole.take(rest))
    other = one.save(tmp_path / "first") or RatingModel.load(tmp_path / "first")
    for n, rows in enumerate(parts):
        one.update(whole.take(rows))
        other.update(whole.take(rows))
        other.save(tmp_path / f"{n}")
        other = RatingModel.load(tmp_path / f"{n}")
    assert len(other.history_.item) == len(whole)
    for a, b in ((one.users_.side, other.users_.side), (one.items_.side, other.items_.side)):
        assert all(np.array_equal(x, y) for x, y in zip(a.arrays(), b.arrays(), strict=True))


def test_bits_of_an_update_do_not_depend_on_threads() -> None:
    train, late = split.random(netflix_shaped(0.03), 0.1)
    found = []
    for threads in (1, 2):
        model = RatingModel(2, covariance="full", max_sweeps=3, **QUIET).fit(train)
        model.threads = threads
        found.append(model.update(late).items_.side)
    assert all(np.array_equal(x, y) for x, y in zip(*(s.arrays() for s in found), strict=True))
