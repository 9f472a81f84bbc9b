"""Fold-in: the closed form is the fixed point of the engine's updates."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.starts.start import start
from svmp.network.network import Network
from svmp.ratings import Ratings
from svmp.recommend import RatingModel
from tests.recommend.tools import continued, drawn, fitted


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_posterior_is_the_fixed_point_of_the_engine(covariance: Any) -> None:
    """The engine's messages to the user's variables, one after another, with fixed q(items)."""
    model = copy(fitted(covariance))
    prior = replace(model.users_.prior, mean=np.array([[0.8, -0.5, 0.3, 0.2, 1.1]], np.float32))
    model.users_ = replace(model.users_, prior=prior)  # far from 0, so that it counts
    keys, ratings = np.array([0, 3, 5, 11, 30]), np.array([5.0, 1.0, 4.0, 4.0, 2.0])
    person = model.fold_in(model.items_.ids[keys], ratings)
    items = model.items_.side.at(keys)
    table = Ratings.of_keys(np.zeros(5), np.arange(5), ratings - model.offset_, 1, 5)
    net = Network(continued(table, prior, items, 1 / model.prior_noise_))
    init = {"v": {"mu": items.mean, "tau": items.precision().astype(np.float64)}}
    q = start(net, 0, init)
    for _ in range(500):
        for element in range(net.hidden["u"].size):
            net.move(q, "u", np.array([element]), exact(net, q, "u", element))
    mean = net.hidden["u"].family.mean(q.natural["u"]).reshape(-1)
    var = net.hidden["u"].family.var(q.natural["u"]).reshape(-1)
    assert person.side.mean[0] == pytest.approx(mean, rel=1e-3, abs=1e-4)
    own = np.diag(person.side.cov[0]) if covariance == "full" else person.side.cov[0]
    assert own == pytest.approx(var, rel=1e-3)
    assert person.side.joined


@pytest.mark.parametrize("noise", ["shared", "user"])
@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_explanation_adds_up_to_the_prediction(covariance: Any, noise: Any) -> None:
    model = fitted(covariance, noise)
    user, item = model.users_.ids[7], model.items_.ids[12]
    why = model.explain(user, item)
    assert why.base + why.parts.sum() + why.rest == pytest.approx(why.prediction)
    assert (np.diff(np.abs(why.parts)) <= 0).all()
    seen = model.history_.item[model.history_.rows(7)]
    assert set(why.items.tolist()) == set(model.items_.ids[seen].tolist())


def test_person_is_explained_by_their_ratings() -> None:
    """A person with a user's ratings gets the same explanation, without a remainder."""
    model = fitted()
    rows = model.history_.rows(7)
    keys, ratings = model.history_.item[rows], model.history_.rating[rows]
    person = model.fold_in(model.items_.ids[keys], ratings)
    item = model.items_.ids[12]
    mine, its = model.explain(person, item), model.explain(model.users_.ids[7], item)
    assert np.array_equal(mine.items, its.items)
    np.testing.assert_allclose(mine.parts, its.parts, rtol=1e-4, atol=1e-6)
    assert mine.rest == pytest.approx(0, abs=1e-5)
    low, high = model.range_
    assert np.clip(mine.prediction, low, high) == pytest.approx(model.predict(person, item)[0])


def test_contribution_is_the_effect_of_changing_a_rating() -> None:
    """The prediction for a person is linear in each rating, and so is its contribution."""
    model = fitted()
    items, ratings = model.items_.ids[[2, 9, 21]], np.array([2.0, 5.0, 3.0])
    target = model.items_.ids[[33]]
    keys = model.items_.keys(items)
    one = model.items_.at(model.items_.keys(target))

    def parts(values: Any) -> Any:
        return model._conditional(keys, values, -1).parts(one)

    def predicted(items: Any, values: Any) -> float:
        side = model.fold_in(items, values).side
        return float(side.bias[0] + side.mean[0] @ one.mean[0])

    now = predicted(items, ratings)
    assert parts(ratings).sum() == pytest.approx(now - predicted([], []), abs=1e-5)
    for place in range(3):
        more = ratings + np.eye(3)[place]
        change = np.eye(3)[place] * (predicted(items, more) - now)
        assert parts(more) - parts(ratings) == pytest.approx(change, abs=1e-5)


def test_folding_in_a_known_user_reproduces_q() -> None:
    train = drawn(3)
    options: Any = {"calibrate": 0, "max_sweeps": 400, "tol": 1e-9, "progress": False}
    model = RatingModel(2, noise="shared", threads=1, **options).fit(train)
    for key in (0, 20, 41):
        rows = model.history_.rows(key)
        person = model.fold_in(
            model.items_.ids[model.history_.item[rows]], model.history_.rating[rows]
        )
        assert person.side.mean[0] == pytest.approx(model.users_.side.mean[key], abs=5e-3)
        assert person.side.cov[0] == pytest.approx(model.users_.side.cov[key], rel=1e-2)
        why = model.explain(model.users_.ids[key], model.items_.ids[5])
        assert abs(why.rest) < 5e-3


def test_empty_history_gives_the_prior_and_invalid_ones_are_refused() -> None:
    model = fitted()
    nobody = model.fold_in({})
    assert nobody.side.mean == pytest.approx(model.users_.prior.mean)
    assert nobody.side.cov == pytest.approx(model.users_.prior.cov, rel=1e-6)
    one, two = model.items_.ids[:2].tolist()
    for items, ratings, says in [
        ([one, two], [3.0], "a finite rating for each item"),
        ([one], [np.nan], "a finite rating for each item"),
        ([one, one], [3.0, 4.0], "two ratings of one item"),
        ([5], [3.0], "no item 5"),
    ]:
        with pytest.raises(svmp.ModelError, match=says):
            model.fold_in(items, ratings)
    assert len(model.fold_in([5, one], [3.0, 4.0], unknown="prior").seen) == 1


def exact(net: Any, q: Any, name: str, element: int) -> Any:
    """The natural parameter of one element: its prior and the messages of all its children."""
    one = np.array([element])
    natural = np.array(net.prior(q, name, one))
    for edge in net.edges[name]:
        owner, rows = edge.rows_of(one)
        natural = natural + edge.message(q, one, owner, rows)
    return natural
