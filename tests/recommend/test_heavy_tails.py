"""Heavy-tailed ratings: most items have one or two, and some users almost always give the same."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from svmp.posterior.result.result import Fit
from svmp.ratings import Ratings, partition
from svmp.recommend import RatingModel, split
from svmp.recommend.learn import CUT
from svmp.recommend.network import SHARE, noise_shape
from svmp.recommend.residuals import clipped
from svmp.recommend.split import Split
from tests.recommend.tools import drawn, fitted

QUIET: Any = {"progress": False, "threads": 1}


def heavy(scale: float, seed: int, share: float = 0.125) -> tuple[Ratings, Any]:
    """Draw ratings from 0 to 10 without factors; return the eccentric users as well.

    A share of all users hardly vary their ratings; eccentric users give hundreds of items the
    same rating, except for a few that get a 10.
    """
    rng = np.random.default_rng([seed, 15])
    users, items, count = round(40_000 * scale), round(80_000 * scale), round(250_000 * scale)
    active, popular = rng.pareto(0.9, users) + 0.3, (np.arange(items) + 15.0) ** -0.85
    active = np.minimum(active, np.quantile(active, 0.999))
    user = rng.choice(users, count, p=active / active.sum())
    item = rng.choice(items, count, p=popular / popular.sum())
    steady = rng.random(users) < share
    noise = np.where(steady, 0.15, np.exp(0.3 + 0.45 * rng.standard_normal(users)))
    of_user, of_item = 0.8 * rng.standard_normal(users), 0.6 * rng.standard_normal(items)
    score = 7.5 + of_user[user] + np.where(steady, 0.1, 1.0)[user] * of_item[item]
    score += noise[user] * rng.standard_normal(count)
    eccentrics = users + np.arange(8)
    parts = [(user, item, np.clip(np.rint(score), 0, 10))]
    for one in eccentrics:
        some = rng.choice(items, round(max(scale, 0.2) * rng.integers(400, 1500)), replace=False)
        same = np.full(len(some), rng.choice([5.0, 7.0, 8.0]))
        parts.append((np.full(len(some), one), some, same))
        same[rng.choice(len(some), len(some) // 40, replace=False)] = 10
    user, item, rating = (np.concatenate(column) for column in zip(*parts, strict=True))
    _, first = np.unique(user.astype(np.int64) * items + item, return_index=True)
    ids, item = np.unique(item[first], return_inverse=True)
    people, user = np.unique(user[first], return_inverse=True)
    return Ratings(user, item, rating[first], people, ids), np.searchsorted(people, eccentrics)


@cache
def parts(scale: float, seed: int) -> tuple[Split, Any]:
    ratings, eccentrics = heavy(scale, seed)
    return split.random(ratings, 0.1, seed), eccentrics


@cache
def model_of(scale: float, seed: int, factors: int) -> RatingModel:
    return RatingModel(factors, seed=seed, **QUIET).fit(parts(scale, seed)[0].train)


def check_lists(model: RatingModel, eccentrics: Any, users: int) -> None:
    """Few items have only eccentric ratings, most have several ratings, and scores are in range."""
    history, some = model.history_, np.arange(users)
    shown = model.items_.keys(model.recommend(model.users_.ids[some], 10).items.ravel())
    counts = np.bincount(history.item, minlength=len(model.items_))
    others = np.bincount(history.item[~np.isin(history.user, eccentrics)], minlength=len(counts))
    assert np.mean(others[shown] == 0) < 0.1
    assert np.median(counts[shown]) >= 5
    anyone = model.users_.prior
    base = model.offset_ + model.items_.side.bias + model.items_.side.mean @ anyone.mean[0]
    assert base.max() <= model.range_[1]


def errors(model: RatingModel, test: Ratings) -> Any:
    return (model.predict_keys(test.user, test.item)[0].astype(np.float64) - test.rating) ** 2


@pytest.mark.parametrize("factors", [0, 4])
def test_eccentric_users_do_not_dominate_the_lists_of_others(factors: int) -> None:
    check_lists(model_of(0.2, 0, factors), parts(0.2, 0)[1], 500)


def test_user_with_constant_ratings_hardly_moves_items_only_they_rated() -> None:
    """The items of the others have 20 ratings each; the best of them are better than 7."""
    rng = np.random.default_rng(3)
    user, item = np.divmod(np.arange(6000), 60)
    keep = rng.random(6000) < 0.2
    score = 7 + rng.standard_normal(60)[item] + 1.2 * rng.standard_normal(6000)
    rating = np.clip(np.rint(score), 0, 10)[keep]
    alone = np.arange(60, 460)
    odd = np.where(alone % 50 == 0, 10.0, 5.0)
    model = RatingModel(3, **QUIET).fit(
        (
            np.concatenate([user[keep], np.full(400, 100)]),
            np.concatenate([item[keep], alone]),
            np.concatenate([rating, odd]),
        )
    )
    assert (model.recommend(np.arange(100), 3).items < 60).all()
    assert model.noise_[100] >= SHARE / (1 + SHARE) * np.median(model.noise_) / 2


def test_unsupported_factors_are_dropped() -> None:
    ratings, eccentrics = heavy(0.2, 0, share=0)
    keep = ~np.isin(ratings.user, eccentrics)  # all users follow the items' biases as they are
    train, test = split.random(ratings.take(np.flatnonzero(keep)), 0.1)
    without, spare = (RatingModel(factors, **QUIET).fit(train) for factors in (0, 4))
    worse = errors(spare, test) - errors(without, test)
    assert worse.mean() <= 2 * worse.std() / np.sqrt(len(worse))
    assert spare.users_.side.factors == spare.items_.side.factors == 0
    assert spare.predict(-1, -1, unknown="prior") == pytest.approx(spare.offset_)


def test_true_factors_are_kept() -> None:
    assert fitted().users_.side.factors == 3
    side = fitted("full", "user").items_.side
    assert (side.factors, side.width) == (3, 5)
    assert side.tastes()[1].shape[1:] == (3, 3)


def test_noise_prior_bounds_the_variance_for_any_number_of_ratings() -> None:
    """With no residuals the variance is alpha l / (alpha + n / 2), which SHARE bounds."""
    user = np.repeat(np.arange(3), (1, 40, 4000))
    shape = noise_shape(Ratings.of_keys(user, np.arange(4041), np.ones(4041), 4, 4041))
    least = shape / (shape + np.array([1, 40, 4000, 0]) / 2)
    assert (least >= SHARE / (1 + SHARE)).all()
    assert least[3] == 1
    assert np.argsort(-least).tolist() == [3, 0, 1, 2]


def skewed(seed: int) -> Ratings:
    """Draw ratings up to 10, of which most are the highest, and few by each user."""
    rng = np.random.default_rng([seed, 16])
    users, items, count = 6000, 150, 12_000
    pair = rng.choice(users * items, count, replace=False)
    user, item = np.divmod(pair, items)
    lost = rng.exponential(np.exp(0.3 * rng.standard_normal(items)))[item]
    rating = np.maximum(10 - 2 * np.floor(lost * rng.exponential(1, count)), 2)
    return Ratings.of_keys(user, item, rating, users, items)


@pytest.mark.parametrize("in_parts", [False, True])
def test_expectations_of_skewed_ratings_are_right_on_average(in_parts: bool, tmp_path: Any) -> None:
    """The clipped, and the reweighted, mean of skewed ratings is not their mean."""
    train, test = split.random(skewed(0), 0.3)
    model = RatingModel(0, **QUIET)
    if in_parts:
        partition(train, tmp_path / "parts", parts=3)
        model.fit(tmp_path / "parts", memory="2GB")
    else:
        model.fit(train)
    user = model.users_.keys(train.user_ids[train.user])
    item = model.items_.keys(train.item_ids[train.item])
    expected = model.offset_ + model.users_.side.bias[user] + model.items_.side.bias[item]
    mean = train.rating.mean(dtype=np.float64)
    assert expected.mean(dtype=np.float64) == pytest.approx(mean, abs=1e-3)
    found = model.predict(test.user_ids[test.user], test.item_ids[test.item], unknown="prior")
    errors = test.rating - found.astype(np.float64)
    standard = errors.std() / np.sqrt(len(errors))
    assert mean - model.offset_ > 2 * standard
    assert abs(errors.mean()) < 3 * standard


def test_residuals_are_clipped_in_units_of_the_noise_of_their_user() -> None:
    found = RatingModel(0, noise="shared", calibrate=0, **QUIET).fit(drawn(0)).fit_
    assert isinstance(found, Fit)
    a, b = found.mean("a"), found.mean("b")
    reach = CUT / np.sqrt(found.posteriors["noise"].mean)
    user, item = np.array([0, 5, 9]), np.array([3, 8, 11])
    mean = a[user] + b[item]
    far = mean + np.array([2.0, -1.5, 0.9]) * reach
    rows = Ratings.of_keys(user, item, far, 60, 40)
    expected = mean + np.array([1.0, -1.0, 0.9]) * reach
    assert clipped(rows, found.posteriors, CUT).rating == pytest.approx(expected, abs=1e-5)


def test_update_by_an_eccentric_user_moves_new_items_by_a_bounded_amount() -> None:
    """One rating moves an item by at most CUT predictive deviations times what the prior leaves."""
    model = RatingModel(0, noise="shared", range=(-500, 500), **QUIET).fit(drawn(1))
    var = model.items_.prior.bias_var[0]
    user = int(np.argmin(model.users_.side.bias))
    side = model.users_.side.at(np.array([user]))
    total = float(var + side.bias_var[0] + model.noise_[user])
    model.update(([model.users_.ids[user]], [10_000], [500.0]))
    moved = float(model.items_.side.bias[-1])
    assert 0 < moved <= 1.01 * CUT * np.sqrt(total) * var / (var + model.noise_[user])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_large_heavy_tailed_sample(seed: int) -> None:
    data, eccentrics = parts(1.0, seed)
    without, spare = model_of(1.0, seed, 0), model_of(1.0, seed, 32)
    check_lists(spare, eccentrics, 5000)
    worse = errors(spare, data.test) - errors(without, data.test)
    assert worse.mean() <= 2 * worse.std() / np.sqrt(len(worse))
    for level in (0.5, 0.9):
        low, high = spare.interval_of_keys(data.test.user, data.test.item, level)
        held = np.mean((data.test.rating >= low) & (data.test.rating <= high))
        assert held == pytest.approx(level, abs=0.02)
