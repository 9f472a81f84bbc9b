"""RatingModel: predictions and their uncertainty, parameters, and awkward data."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import svmp
from svmp.fitting.online import Online
from svmp.ratings import Ratings
from svmp.recommend import RatingModel, learn
from svmp.recommend.learn import LAST
from svmp.recommend.network import FIRM, VectorPrior, guesses
from svmp.recommend.side import PAIRS
from svmp.recommend.similar import metric
from svmp.recommend.spread import Spread
from tests.recommend.tools import drawn, fitted, parts

QUIET: Any = {"progress": False, "threads": 1, "max_sweeps": 8}
KINDS = [("diagonal", "shared"), ("full", "shared"), ("diagonal", "user")]


@pytest.mark.parametrize(("covariance", "noise"), KINDS)
def test_mean_and_deviation_equal_draws_from_q(covariance: Any, noise: Any) -> None:
    model = fitted(covariance, noise)
    user, item = np.array([3, 8, 40]), np.array([1, 30, 7])
    mean, std = model.predict(model.users_.ids[user], model.items_.ids[item], return_std=True)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(4000):
        u, v = model.users_.side.at(user).draw(rng), model.items_.side.at(item).draw(rng)
        score = model.offset_ + u.bias + v.bias + (u.mean * v.mean).sum(axis=1)
        draws.append(score + np.sqrt(model.noise_[user]) * rng.standard_normal(3))
    assert mean == pytest.approx(np.clip(np.mean(draws, axis=0), 1, 5), abs=0.06)
    assert std == pytest.approx(np.std(draws, axis=0) * model.spread_.scale, rel=0.06)


@pytest.mark.parametrize(("covariance", "noise"), KINDS)
def test_factors_improve_on_biases(covariance: Any, noise: Any) -> None:
    train, test = parts()
    users, items = test.user_ids[test.user], test.item_ids[test.item]
    errors = [
        float(np.sqrt(np.mean((m.predict(users, items) - test.rating) ** 2)))
        for m in (fitted(covariance, noise), RatingModel(0, **QUIET).fit(train))
    ]
    assert errors[0] < 0.95 * errors[1]


def test_predictions_are_equivariant_to_scale_and_shift() -> None:
    train = parts().train
    more = Ratings(train.user, train.item, 20 * train.rating - 7, train.user_ids, train.item_ids)
    here, there = (RatingModel(2, **QUIET).fit(x) for x in (train, more))
    users, items = train.user_ids[train.user[:50]], train.item_ids[train.item[:50]]
    (mean, std), (far, wide) = (m.predict(users, items, return_std=True) for m in (here, there))
    assert far == pytest.approx(20 * mean - 7, rel=1e-3)
    assert wide == pytest.approx(20 * std, rel=1e-3)


def test_the_same_seed_gives_the_same_bits_on_any_threads() -> None:
    first, second = (
        RatingModel(2, progress=False, max_sweeps=6, threads=t).fit(parts().train) for t in (1, 2)
    )
    assert np.array_equal(first.users_.side.mean, second.users_.side.mean)


@pytest.mark.parametrize(
    ("options", "ended"),
    [
        ({"max_sweeps": 150}, "stopped early: the held-out error no longer fell"),
        ({}, "stopped at the limit of sweeps"),
        ({"calibrate": 0, "tol": 1e-3, "max_sweeps": 500}, "converged"),
        (
            {"max_sweeps": 150, "covariance": "full", "calibrate": 0.2},
            "stopped after 18 sweeps of the factors, enough with covariances",
        ),
        ({"calibrate": 0, "max_sweeps": 5}, "stopped at the limit of sweeps"),
    ],
)
def test_status_says_how_the_fit_ended(options: Any, ended: str, tmp_path: Path) -> None:
    model = RatingModel(2, **{"covariance": "diagonal", **QUIET, **options}).fit(drawn(0))
    assert model.status_ == ended
    assert model.sweeps_ is not None
    assert model.sweeps_ <= model.max_sweeps
    model.save(tmp_path / "m.svmp")
    assert RatingModel.load(tmp_path / "m.svmp").status_ is None


def test_ratings_outside_the_given_range_are_refused() -> None:
    table = drawn(0)
    source = (table.user_ids[table.user], table.item_ids[table.item], table.rating)
    for data in (table, source):
        with pytest.raises(svmp.RatingsError, match="1"):
            RatingModel(2, range=(1, 4), **QUIET).fit(data)


@pytest.mark.parametrize("at", [1, 4])
def test_ctrl_c_ends_the_sweeps_and_leaves_a_model(monkeypatch: Any, at: int) -> None:
    """Interrupts a stage with held-out ratings; the few sweeps over all ratings follow."""
    advance = Online.advance

    def pressed(self: Online, model: Any) -> None:
        advance(self, model)
        if self.iteration == at:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Online, "advance", pressed)
    model = RatingModel(2, progress=False, threads=1, max_sweeps=20).fit(parts().train)
    assert model.sweeps_ == at + LAST
    assert model.fit_ is not None
    assert (model.interrupted_, model.fit_.status) == (True, "interrupted")
    assert model.status_ == "interrupted"
    assert np.isfinite(model.predict(model.users_.ids[0], model.items_.ids)).all()


def test_intervals_have_their_coverage() -> None:
    """Conformal intervals have their coverage on exchangeable ratings, whatever q is."""
    rng = np.random.default_rng(0)
    std = rng.uniform(0.5, 2, 40_000)
    error = std * rng.standard_t(3, 40_000)  # far from Normal
    spread = Spread.of(error[:20_000], std[:20_000])
    for level in (0.5, 0.9, 0.95):
        held = np.abs(error[20_000:]) <= spread.reach(level) * std[20_000:]
        assert held.mean() == pytest.approx(level, abs=0.01)
    normal = Spread.normal()
    assert normal.reach(0.95) == pytest.approx(1.96, abs=0.01)
    with pytest.raises(svmp.ModelError, match="between 0 and 1"):
        normal.reach(1.5)


def test_intervals_are_clipped_to_the_range_on_request() -> None:
    model = fitted()
    users, items = model.users_.ids, model.items_.ids[3]
    low, high = model.predict_interval(users, items, 0.99)
    assert low.min() >= 1
    assert high.max() <= 5
    wide_low, wide_high = model.predict_interval(users, items, 0.99, clip=False)
    assert (wide_low <= low).all()
    assert (wide_high >= high).all()
    assert wide_high.max() > 5


def test_unknown_ids_get_the_prior_or_an_error() -> None:
    model = fitted()
    user, item = model.users_.ids[0], model.items_.ids[0]
    with pytest.raises(svmp.ModelError, match="there is no user 2 in the model"):
        model.predict(2, item)
    mean, std = model.predict([2, user], item, unknown="prior", return_std=True)
    known, less = model.predict(user, item, return_std=True)
    anyone, any_item, one = (
        model.users_.prior.mean[0],
        model.items_.prior.mean[0],
        model.items_.side,
    )
    base = model.offset_ + one.bias[0] + anyone @ one.mean[0]
    assert mean[0] == pytest.approx(base, abs=1e-4)
    assert model.explain(user, item).base == pytest.approx(base, abs=1e-4)
    assert std[0] > less[0]
    assert mean[1] == pytest.approx(known[0])
    both, _ = model.predict(2, 5, unknown="prior", return_std=True)
    assert both[0] == pytest.approx(model.offset_ + anyone @ any_item, abs=1e-4)
    with pytest.raises(svmp.ModelError, match="give as many"):
        model.predict([user] * 2, [item] * 3)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_prior_mean_of_factors_is_that_of_all_users(covariance: Any) -> None:
    """At the fixed point a mean m has tau (sum E[u] - N m) = P (m - p), its prior's P and p."""
    train = drawn(3)
    options: Any = {"calibrate": 0, "max_sweeps": 400, "tol": 1e-9, "progress": False}
    model = RatingModel(3, covariance=covariance, threads=1, **options).fit(train)
    scale = train.rating.std()
    for name, known in (("u", model.users_), ("v", model.items_)):
        tau = scale / (np.diag(known.prior.cov[0]) if known.prior.full else known.prior.cov[0])
        total = known.side.mean.sum(axis=0)
        prior = VectorPrior.of(name, len(known), 3, FIRM)
        rest = tau * total + np.sqrt(scale) * prior.of_mean * prior.mean
        expected = rest / (prior.of_mean + tau * len(known))
        assert known.prior.mean[0] == pytest.approx(expected, rel=0.02, abs=1e-3)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_slopes_of_users_are_found(covariance: Any) -> None:
    """Some users follow the items' biases closely and others hardly: r = s_user b_item + noise."""
    rng = np.random.default_rng(0)
    user, item = np.divmod(rng.choice(60 * 40, 1600, replace=False), 40)
    slope, bias = rng.uniform(0, 2, 60), rng.normal(size=40)
    rating = 3 + slope[user] * bias[item] + 0.3 * rng.normal(size=1600)
    options: Any = {"covariance": covariance, "calibrate": 0.1, **QUIET}
    model = RatingModel(1, **options).fit((user, item, rating))
    assert np.corrcoef(model.users_.side.mean[:, -1], slope)[0, 1] > 0.9
    assert np.corrcoef(model.items_.side.mean[:, -1], bias)[0, 1] > 0.9


def test_prior_variance_hardly_grows_with_the_number_of_factors() -> None:
    few, many = (np.sum(guesses(factors) ** -2.0) for factors in (5, 32))
    assert few < many < 3 * few


def test_string_ids() -> None:
    plain, words = fitted(), fitted(words=True)
    same = words.predict("u007", ["i003", "i011"])
    assert same == pytest.approx(plain.predict(plain.users_.ids[7], plain.items_.ids[[3, 11]]))
    assert words.recommend("u007", 3).items.dtype.kind == "U"
    with pytest.raises(svmp.ModelError, match="the ids are strings"):
        words.predict(7, "i003")


def test_parameters_as_in_scikit_learn() -> None:
    model = RatingModel(5, noise="shared", range=(1, 5))
    again = clone(model)
    assert again is not model
    assert again.get_params() == model.get_params()
    assert repr(again) == "RatingModel(factors=5, noise='shared', range=(1, 5))"
    assert model.set_params(factors=7).factors == 7
    with pytest.raises(svmp.ModelError, match="no parameter 'depth'"):
        model.set_params(depth=3)
    with pytest.raises(svmp.ModelError, match="call fit first"):
        model.predict(1, 2)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"factors": -1}, "factors must be"),
        ({"factors": 2.5}, "factors must be"),
        ({"covariance": "round"}, "covariance must be"),
        ({"noise": "loud"}, "noise must be"),
        ({"calibrate": 0.7}, "calibrate must be"),
    ],
)
def test_invalid_parameters_are_refused(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(svmp.ModelError, match=says):
        RatingModel(**parameters).fit(drawn(0))


@pytest.mark.parametrize(
    ("user", "item", "rating"),
    [
        ([0], [0], [3.0]),  # one rating
        ([0, 0, 0], [0, 1, 2], [3, 4, 5]),  # one user
        ([0, 1, 2], [0, 0, 0], [3, 4, 5]),  # one item
        ([0, 1, 2, 0], [0, 1, 2, 1], [4, 4, 4, 4]),  # constant ratings
    ],
)
def test_very_little_data(user: Any, item: Any, rating: Any) -> None:
    model = RatingModel(2, **QUIET).fit((user, item, rating))
    mean, std = model.predict(user, item, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    model.recommend(user[0], 2)
    model.similar_items(item[0], 5)
    model.similar_users(user[0], 5)


def test_similarity_is_the_correlation_of_scores_over_users() -> None:
    model = fitted()
    key = 4
    found = model.similar_items(model.items_.ids[key], 39)
    rng = np.random.default_rng(0)
    draws = [model.users_.side.draw(rng).tastes()[0] for _ in range(200)]
    added = np.concatenate(draws) @ model.items_.side.tastes()[0].T  # what factors add
    correlation = np.corrcoef(added.T)[key]
    places = model.items_.keys(found.items)
    assert found.scores == pytest.approx(correlation[places], abs=0.02)
    assert (np.diff(found.scores) <= 0).all()
    assert key not in places


def test_deviation_of_a_similarity_equals_draws() -> None:
    model = fitted()
    side = model.items_.side
    sure = type(side)(side.bias, side.bias_var, side.mean, side.cov * np.float32(0.01))
    from svmp.recommend.similar import Similarity

    root = metric(model.users_.side)
    places, _, stds = Similarity.of(sure, model.users_.side).most(4, 3)
    rng = np.random.default_rng(0)
    values = []
    for _ in range(3000):
        turned = sure.at(np.array([4, *places])).draw(rng).tastes()[0] @ root
        unit = turned / np.linalg.norm(turned, axis=1, keepdims=True)
        values.append(unit[1:] @ unit[0])
    assert stds == pytest.approx(np.std(values, axis=0), rel=0.15, abs=2e-3)


@pytest.mark.parametrize("factors", [0, 3])
@pytest.mark.parametrize("most", [1, 2, 3, 7, 12, 15, 40])
def test_number_of_sweeps_is_limited(most: int, factors: int) -> None:
    """Both variants of the repeated stage, and the last sweeps over all ratings, count."""
    model = RatingModel(factors, max_sweeps=most, tol=0, progress=False, threads=1)
    model.fit(drawn(1))
    assert model.sweeps_ is not None
    assert 1 <= model.sweeps_ <= most


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_small_tables_are_fitted_alike_with_and_without_loops(
    covariance: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, test = parts()
    found = []
    for few in (4 * len(train) + 1, 0):  # vectors have 4 entries
        monkeypatch.setattr(learn, "FEW", few)
        model = RatingModel(2, covariance=covariance, progress=False, threads=1).fit(train)
        found.append(model.predict_keys(test.user, test.item)[0])
    np.testing.assert_allclose(*found, atol=2e-3)


def test_predictions_of_many_pairs_are_those_of_each() -> None:
    """Pairs are scored in blocks, with covariances and without."""
    rng = np.random.default_rng(0)
    for form in ("full", "diagonal"):
        model = fitted(form, "user")
        user = rng.integers(0, len(model.users_), 2 * PAIRS + 7)
        item = rng.integers(-1, len(model.items_), len(user))
        mean, std = model.predict_keys(user, item)
        for row in (0, PAIRS - 1, PAIRS, len(user) - 1):
            one = model.predict_keys(user[row : row + 1], item[row : row + 1])
            np.testing.assert_allclose([mean[row], std[row]], np.ravel(one), rtol=1e-6)
