"""Evaluation, compared with plain loops."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

import svmp
from svmp.ratings import Ratings
from svmp.recommend import EventModel, RatingModel, evaluate, split
from svmp.recommend.side import score_all
from tests.recommend.tools import fitted, parts


def test_scores_equal_a_plain_loop() -> None:
    model, test = fitted(), parts().test
    found = evaluate(model, test, n=5, draws=50)
    scores = {name: score.value for name, score in found.scores["model"].items()}
    users, items = test.user_ids[test.user], test.item_ids[test.item]
    mean, std = model.predict(users, items, return_std=True)
    assert scores["RMSE"] == pytest.approx(np.sqrt(np.mean((mean - test.rating) ** 2)), rel=1e-5)
    assert scores["MAE"] == pytest.approx(np.mean(np.abs(mean - test.rating)), rel=1e-5)
    low, high = model.predict_interval(users, items, 0.9)
    assert scores["in 90% interval"] == np.mean((test.rating >= low) & (test.rating <= high))
    assert found.calibration[0.9] == scores["in 90% interval"]
    recall, percentile, shown = [], [], set()
    every = score_all(model.users_.side, model.items_.side)
    for user in np.unique(test.user[test.rating >= 4]):
        seen = model.history_.item[model.history_.rows(user)]
        left = [i for i in range(40) if i not in seen]
        ranked = sorted(left, key=lambda i: -every[user, i])
        wanted = test.item[(test.user == user) & (test.rating >= 4)]
        recall.append(np.mean([i in ranked[:5] for i in wanted]))
        percentile.append(np.mean([ranked.index(i) / (len(left) - 1) for i in wanted]))
        shown |= set(ranked[:5])
    assert found.users == len(recall)
    assert scores["recall@5"] == pytest.approx(np.mean(recall))
    assert scores["mean percentile rank"] == pytest.approx(np.mean(percentile))
    assert scores["catalogue coverage"] == len(shown) / 40
    assert std.min() > 0


def test_popularity_ranks_by_counts() -> None:
    model, test = fitted(), parts().test
    found = evaluate(model, test, n=5, draws=20)
    counts = np.bincount(model.history_.item, minlength=40)
    hits = []
    for user in np.unique(test.user[test.rating >= 4]):
        seen = model.history_.item[model.history_.rows(user)]
        left = sorted((i for i in range(40) if i not in seen), key=lambda i: (-counts[i], i))
        wanted = test.item[(test.user == user) & (test.rating >= 4)]
        hits.append(np.mean([i in left[:5] for i in wanted]))
    assert found.scores["popularity"]["recall@5"].value == pytest.approx(np.mean(hits))
    assert "RMSE" not in found.scores["popularity"]
    assert found.scores["model"]["RMSE"].value < found.scores["biases"]["RMSE"].value


def test_evaluation_can_be_printed_drawn_and_serialised() -> None:
    found = evaluate(fitted(), parts().test, n=5, draws=20)
    for score in found.scores["model"].values():
        assert score.low <= score.value <= score.high
    assert "NDCG@5" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["n"] == 5
    axes = found.plot()
    assert axes[0].get_title("left") == "Calibration"
    plt.close(axes[0].figure)


def test_unknown_users_and_items_are_predicted_by_the_prior() -> None:
    model = fitted()
    test = Ratings(
        np.zeros(2, np.int32),
        np.arange(2, dtype=np.int32),
        np.array([4.0, 5.0], np.float32),
        np.array([99999]),
        np.array([88888, model.items_.ids[0]]),
    )
    found = evaluate(model, test, draws=5)
    assert found.users == 0
    assert np.isfinite(found.scores["model"]["RMSE"].value)
    with pytest.raises(svmp.RatingsError, match="no ratings to predict"):
        evaluate(model, test.take(np.zeros(0, np.int64)))


def test_rankings_below_popularity_are_named() -> None:
    """Everybody rates the same few items in the middle, and some others highly."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(300), 20)
    item = np.concatenate(
        [rng.choice(60, 20, False, (np.arange(60) < 15) * 0.06 + 1 / 600) for _ in range(300)]
    )
    rating = np.where(item < 15, rng.integers(3, 6, len(item)), 5.0)
    train, test = split.random((user, item, rating), 0.2, seed=0)
    model = RatingModel(2, max_sweeps=5, progress=False).fit(train)
    found = evaluate(model, test, n=5, relevant=4)
    recall = {name: scores["recall@5"] for name, scores in found.scores.items()}
    assert recall["model"].high < recall["popularity"].low
    (remark,) = found.remarks
    assert f"recall@5 is {recall['model'].value:.3f}" in remark
    assert "EventModel(at_least=4)" in remark
    assert str(found).endswith(remark)
    assert found.to_dict()["remarks"] == [remark]
    events = EventModel(2, at_least=4, progress=False).fit(train)
    assert evaluate(events, test, n=5).remarks == ()
