"""Inner products of vectors rank as the model does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.recommend import EventModel, RatingModel
from tests.recommend.service.conftest import events
from tests.recommend.tools import drawn, fitted


def models() -> list[Any]:
    z = EventModel(3, score="z", progress=False, threads=1).fit(drawn(1))
    none = RatingModel(0, progress=False, threads=1).fit(drawn(1))
    return [fitted(), fitted("full"), none, events(), z]


@pytest.mark.parametrize("which", range(5))
def test_brute_force_over_vectors_equals_recommend(which: int) -> None:
    model = models()[which]
    found = model.vectors()
    assert found.users.dtype == found.items.dtype == np.float32
    assert found.users.shape[1] == found.items.shape[1]
    scores = found.users.astype(float) @ found.items.astype(float).T + found.constant[:, None]
    top = model.recommend(found.user_ids, 5, exclude_seen=False)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    np.testing.assert_allclose(np.take_along_axis(scores, order, 1), top.raw, rtol=1e-4, atol=1e-5)
    same = model.items_.ids[order] == top.items
    assert same.mean() > 0.99  # but for ties by rounding
    some = model.vectors(found.user_ids[[4, 2]])
    np.testing.assert_array_equal(some.users, found.users[[4, 2]])
    assert some.user_ids.tolist() == found.user_ids[[4, 2]].tolist()


def test_vectors_of_somebody_who_is_not_in_the_model() -> None:
    model = fitted()
    person = model.fold_in({7: 5.0, 14: 1.0})
    found = model.vectors(person)
    assert found.user_ids is None
    top = model.recommend(person, 40, exclude_seen=False)
    scores = (found.users @ found.items.T + found.constant[:, None])[0]
    np.testing.assert_allclose(np.sort(scores)[::-1], top.raw, rtol=1e-5)


def test_the_bias_of_events_has_half_the_log_odds() -> None:
    model = events()
    found = model.vectors()
    bias = model.items_.side.bias + 0.5 * np.log(model.odds_)
    np.testing.assert_allclose(found.items[:, -1], bias, rtol=1e-6)
    np.testing.assert_array_equal(found.users[:, -1], 1)


def test_probabilities_have_no_vectors() -> None:
    model = EventModel(2, score="probability", progress=False, threads=1).fit(drawn(1))
    with pytest.raises(svmp.ModelError, match="not inner products"):
        model.vectors()
