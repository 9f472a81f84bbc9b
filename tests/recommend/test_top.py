"""The n best items, compared with sorting; and which items recommend may return."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import svmp.recommend
from svmp.recommend import RatingModel
from svmp.recommend.side import score_all, variance_all
from svmp.recommend.top import best, rank
from tests.recommend.tools import fitted


@given(st.integers(0, 1000), st.integers(1, 9), st.integers(1, 8))
def test_best_equals_sorting(seed: int, items: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    n = min(n, items)
    scores = rng.integers(0, 4, (5, items)).astype(np.float32)  # with ties
    seen = [rng.choice(items, rng.integers(0, items + 1), replace=False) for _ in range(5)]
    begin = np.concatenate([[0], np.cumsum([len(s) for s in seen])])
    places, alone = np.full((2, 5, n), -1)
    best(scores.copy(), n, begin, np.concatenate(seen), places)
    for row in range(5):
        left = [c for c in range(items) if c not in seen[row]]
        wanted = sorted(left, key=lambda c: (-scores[row, c], c))[:n]
        assert places[row].tolist() == wanted + [-1] * (n - len(wanted))
        one = slice(row, row + 1)
        best(scores[one].copy(), n, np.array([0, len(seen[row])]), seen[row], alone[one])
        assert alone[row].tolist() == places[row].tolist()
        if left:
            ranks = np.zeros(len(left), np.int64)
            cells = np.full(len(left), row), np.array(left)
            rank(scores.copy(), begin, np.concatenate(seen), *cells, ranks)
            by_rank = sorted(left, key=lambda c: (-scores[row, c], c))
            assert [by_rank[r - 1] for r in ranks] == left


def test_recommendations_are_the_best_unseen_items() -> None:
    model = fitted()
    scores = score_all(model.users_.side, model.items_.side) + model.offset_
    for key in range(0, 60, 7):
        found = model.recommend(model.users_.ids[key], n=5)
        seen = model.history_.item[model.history_.rows(key)]
        left = [i for i in range(40) if i not in seen]
        wanted = sorted(left, key=lambda i: -scores[key, i])[:5]
        assert found.items.tolist() == model.items_.ids[wanted].tolist()
        shown = np.clip(scores[key, wanted], *model.range_)
        assert found.scores == pytest.approx(shown, rel=1e-5)
        again = model.recommend(model.users_.ids[key], n=3, exclude_seen=False)
        assert again.items[0] == model.items_.ids[np.argmax(scores[key])]


def test_candidates_and_exclusions() -> None:
    model, user = fitted(), fitted().users_.ids[4]
    some = model.items_.ids[[1, 5, 9, 30]]
    inside = model.recommend(user, 10, candidates=some, exclude_seen=False)
    assert set(inside.items.tolist()) == set(some.tolist())
    fewer = model.recommend(user, 10, candidates=some, exclude=some[:2], exclude_seen=False)
    assert set(fewer.items.tolist()) == set(some[2:].tolist())
    seen = set(model.items_.ids[model.history_.item[model.history_.rows(4)]].tolist())
    unseen = model.recommend(user, 10, candidates=some)
    assert set(unseen.items.tolist()) == set(some.tolist()) - seen
    with pytest.raises(svmp.ModelError, match="no item 99999"):
        model.recommend(user, candidates=[99999])


def test_each_user_gets_of_their_own_candidates_only() -> None:
    model, rng = fitted(), np.random.default_rng(3)
    users = model.users_.ids[rng.permutation(60)[:25]]
    lists = [rng.choice(model.items_.ids, rng.integers(0, 9), replace=False) for _ in users]
    for options in ({}, {"exclude_seen": False}, {"exclude": model.items_.ids[::3]}):
        together = model.recommend(users, 4, candidates=lists, **options)
        for place, user in enumerate(users):
            alone = model.recommend(user, 4, candidates=lists[place], **options)
            there = ~np.isnan(together.scores[place])
            assert together.items[place][there].tolist() == alone.items.tolist()
            assert together.scores[place][there] == pytest.approx(alone.scores)
    assert model.recommend(users[0], candidates=[[7]], exclude_seen=False).items.tolist() == [7]
    some = model.recommend(users[:2], 3, candidates=np.array([[0, 7], [14, 21]]))
    assert set(some.items[0].tolist()) <= {0, 7, -1}
    person = model.fold_in({0: 4})
    assert model.recommend(person, candidates=[[0, 7]]).items.tolist() == [7]
    with pytest.raises(svmp.ModelError, match="candidates has 2 lists for 3 users"):
        model.recommend(users[:3], candidates=[[7], [14]])
    with pytest.raises(svmp.ModelError, match="both ids and lists"):
        model.recommend(users[:2], candidates=[7, [14]])


def test_unknown_users_are_skipped_and_named() -> None:
    model = fitted()
    users = [model.users_.ids[3], 99_999, model.users_.ids[1], 77_777]
    lists = [[7, 14], [21], [28, 35], [7]]
    top = model.recommend(users, 2, candidates=lists, exclude_seen=False, unknown="skip")
    assert top.skipped == (99_999, 77_777)
    assert top.users is not None
    assert top.users.tolist() == [users[0], users[2]]
    assert [set(row) for row in top.items.tolist()] == [{7, 14}, {28, 35}]
    known = model.recommend([users[0], users[2]], 2, unknown="skip")
    assert known.skipped == ()
    assert model.recommend([77_777], 2, unknown="skip").items.shape == (0, 2)
    with pytest.raises(svmp.ModelError, match="a single one"):
        model.recommend(77_777, unknown="skip")
    with pytest.raises(svmp.ModelError, match="no user 99999"):
        model.recommend(users, 2)


def test_clipped_scores_come_with_those_before() -> None:
    model = copy.copy(fitted())
    model.range_ = 1.0, 2.0
    top = model.recommend(model.users_.ids[:5], 6)
    assert top.raw is not None
    scores = score_all(model.users_.side, model.items_.side) + model.offset_
    keys = model.items_.keys(top.items.ravel()).reshape(top.items.shape)
    np.testing.assert_allclose(top.raw, scores[np.arange(5)[:, None], keys], rtol=1e-5)
    assert (np.diff(top.raw, axis=1) <= 0).all()
    assert (top.scores == 2.0).all()  # all three of the best are equal, their order is not
    one = model.recommend(model.users_.ids[0], 6)
    assert one.raw is not None
    assert one.raw == pytest.approx(top.raw[0])


def test_batches_equal_single_users() -> None:
    model = fitted()
    together = model.recommend(model.users_.ids, 50)
    assert together.items.shape == (60, 40)  # n larger than the catalogue
    for key in (0, 17, 59):
        alone = model.recommend(model.users_.ids[key], 50)
        count = len(alone.items)
        assert together.items[key, :count].tolist() == alone.items.tolist()
        assert (together.items[key, count:] == -1).all()
        assert np.isnan(together.scores[key, count:]).all()


def test_user_who_has_seen_all_items_gets_no_recommendations() -> None:
    model = fitted()
    everything = dict.fromkeys(model.items_.ids.tolist(), 3.0)
    assert len(model.recommend(model.fold_in(everything), 5).items) == 0
    assert model.recommend(model.users_.ids[:2], 0).items.shape == (2, 0)


def test_ucb_adds_standard_deviations() -> None:
    model = fitted()
    users, items = model.users_.side.at(np.arange(60)), model.items_.side
    wanted = score_all(users, items) + 2 * np.sqrt(variance_all(users, items))
    found = model.recommend(model.users_.ids, 1, exclude_seen=False, explore="ucb", width=2)
    assert found.items[:, 0].tolist() == model.items_.ids[wanted.argmax(axis=1)].tolist()


def test_thompson_picks_items_with_the_probability_of_being_best() -> None:
    model = fitted()
    user = model.users_.ids[0]
    items = model.items_.ids[[3, 8]]
    picks = [
        model.recommend(
            user, 1, candidates=items, exclude_seen=False, explore="thompson", seed=seed
        ).items[0]
        for seed in range(400)
    ]
    rng = np.random.default_rng(0)
    one = model.users_.side.at(np.zeros(20_000, np.int64)).draw(rng)
    scores = []
    for key in (3, 8):
        other = model.items_.side.at(np.full(20_000, key)).draw(rng)
        scores.append(one.bias + other.bias + (one.mean * other.mean).sum(axis=1))
    share = np.mean(scores[0] > scores[1])
    assert np.mean(np.array(picks) == items[0]) == pytest.approx(share, abs=0.1)


def test_the_same_seed_gives_the_same_draws() -> None:
    model = fitted()
    first, second, other = (
        model.recommend(model.users_.ids, 5, explore="thompson", seed=s).items for s in (1, 1, 2)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_scores_are_clipped_and_rankings_are_not() -> None:
    model = fitted()
    user, items = model.users_.ids[0], model.items_.ids
    scores = score_all(model.users_.side.at(np.array([0])), model.items_.side)[0] + model.offset_
    narrow = copy.copy(model)
    low, high = np.quantile(scores, [0.4, 0.6])  # so that most scores are off the scale
    narrow.range_ = float(low), float(high)
    top = narrow.recommend(user, 40, exclude_seen=False)
    assert top.items.tolist() == items[np.argsort(-scores, kind="stable")].tolist()
    assert top.scores == pytest.approx(narrow.predict(user, top.items))
    assert top.scores[0] == pytest.approx(high)
    assert top.scores[-1] == pytest.approx(low)
    for explore in ("ucb", "thompson"):
        found = narrow.recommend(user, 40, exclude_seen=False, explore=explore)  # type: ignore[arg-type]
        assert found.scores == pytest.approx(narrow.predict(user, found.items))
    for item in (top.items[0], top.items[-1]):
        why = narrow.explain(user, item)
        assert why.prediction == pytest.approx(narrow.predict(user, item)[0])
        assert why.base + why.parts.sum() + why.rest == pytest.approx(why.prediction)


def test_exploration_is_random_without_a_seed() -> None:
    model = fitted()
    users = model.users_.ids
    lists = [model.recommend(users, 5, explore="thompson").items for _ in range(2)]
    assert not np.array_equal(*lists)
    greedy = [model.recommend(users, 5).items for _ in range(2)]
    assert np.array_equal(*greedy)


def test_generator_as_seed() -> None:
    model = fitted()

    def lists(seed: Any) -> list[list[Any]]:
        found = (model.recommend(model.users_.ids, 5, explore="thompson", seed=seed) for _ in "ab")
        return [top.items.tolist() for top in found]

    first, second = lists(np.random.default_rng(1))
    assert first != second  # it moves on
    assert lists(np.random.default_rng(1)) == [first, second]
    with pytest.raises(svmp.ModelError, match="seed must be a whole number"):
        model.recommend(model.users_.ids, 5, explore="thompson", seed=-1)


def test_invalid_arguments_are_refused() -> None:
    model = fitted()
    for arguments, says in [
        ({"users": 2}, "no user 2"),
        ({"users": "ann"}, "whole numbers"),
        ({"users": 1, "n": -1}, "at least 0"),
        ({"users": 1, "n": 2.5}, "whole number"),
        ({"users": 1, "explore": "greedy"}, "explore must be"),
        ({"users": 1, "unknown": "maybe"}, "unknown must be"),
    ]:
        with pytest.raises(svmp.ModelError, match=says):
            model.recommend(**arguments)  # type: ignore[arg-type]
    assert len(model.recommend(2, 3, unknown="prior").items) == 3
    with pytest.raises(svmp.ModelError, match="call fit first"):
        svmp.recommend.RatingModel().recommend(1)


def test_empty_candidates_give_no_recommendations() -> None:
    model = fitted()
    for users, shape in ((model.users_.ids[0], (0,)), (model.users_.ids[:3], (3, 0))):
        top = model.recommend(users, 4, candidates=[])
        assert top.items.shape == top.scores.shape == top.stds.shape == shape


def test_recommendations_and_users_are_tables() -> None:
    pairs = np.random.default_rng(0).permutation(12 * 9)[:60]
    names = np.array([f"user {i}" for i in range(12)])
    rating = 1.0 + pairs % 5
    model = RatingModel(factors=2, max_sweeps=3, covariance="full")
    model.fit((names[pairs // 9], pairs % 9, rating))
    top = model.recommend(["user 3", "user 1"], n=2)
    items, scores, stds = top
    table = pl.DataFrame(top)
    assert table.columns == ["user", "rank", "item", "score", "sd"]
    assert table["user"].to_list() == ["user 3", "user 3", "user 1", "user 1"]
    assert table["item"].to_list() == items.ravel().tolist()
    np.testing.assert_array_equal(table["score"], scores.ravel())
    np.testing.assert_array_equal(table["sd"], stds.ravel())
    assert top.to_polars().equals(table)
    assert pl.from_pandas(top.to_pandas()).equals(table)
    assert pl.from_arrow(top.to_arrow()).equals(table)
    assert str(top).splitlines()[2].split()[:3] == ["user", "3", "1"]
    assert pl.DataFrame(model.recommend("user 3", n=2)).columns == ["rank", "item", "score", "sd"]
    users = pl.DataFrame(model.users_)
    assert users["user"].to_list() == model.users_.ids.tolist()
    mean, cov = model.users_.side.tastes()
    np.testing.assert_array_equal(users["factor_1"], mean[:, 1])
    np.testing.assert_allclose(users["factor_1_sd"] ** 2, cov[:, 1, 1], rtol=1e-5)
    assert model.users_._repr_html_().count("<tr>") == 12  # heads, 5 + 5 rows, and what is between
