"""Updates with more events: rankings of new items are like those of a full fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from svmp.datasets import netflix_shaped
from svmp.fitting.online import Online
from svmp.inference.steps import Constant
from svmp.models import UserItemPairs, matrix_factorization
from svmp.posterior.marginals.posterior import Posterior
from svmp.ratings import Ratings, read_ratings
from svmp.recommend import EventModel
from svmp.recommend.evaluation import ranks
from svmp.recommend.graph import EventGraph, popularity
from svmp.recommend.history import History
from svmp.recommend.negatives import NegativeSampler, draw_times
from svmp.recommend.network import earlier_run, priors_of
from svmp.recommend.side import Side

QUIET: Any = {"progress": False, "threads": 1}
DATA = Path(__file__).parents[3] / "shared" / "data"
Ints = NDArray[np.int64]


class Log(NamedTuple):
    """Users and items of events."""

    user: Ints
    item: Ints

    def at(self, rows: NDArray[np.bool_]) -> Log:
        return Log(self.user[rows], self.item[rows])


def drawn(users: int, items: int, count: int, seed: int, tastes: int = 4) -> Log:
    """Simulated events: activity, popularity and preferences have heavy tails."""
    rng = np.random.default_rng(seed)
    activity = np.exp(rng.standard_normal(users))
    popular = rng.permutation(np.log((np.arange(items) + 5.0) ** -0.9))
    liking = rng.standard_normal((users, tastes)) @ rng.standard_normal((tastes, items))
    wanted = np.clip(np.rint(count * activity / activity.sum()), 1, items // 4).astype(int)
    order = np.argsort(-(popular + 0.8 * liking + rng.gumbel(size=(users, items))), axis=1)
    return Log(
        np.repeat(np.arange(users), wanted),
        np.concatenate([row[:d] for row, d in zip(order, wanted, strict=True)]),
    )


def late(kind: str, log: Log, seed: int) -> tuple[NDArray[np.bool_], Ints]:
    """Return which events come late, and the items that are new by then."""
    rng = np.random.default_rng([seed, 1])
    users, items = np.unique(log.user), np.unique(log.item)
    count = np.bincount(log.item)
    by_count = items[np.argsort(-count[items])]
    some = {
        "popular": by_count[: len(items) // 8 : 4],
        "rare": by_count[-len(items) // 8 :],
        "rows": items[:0],
    }
    new = some.get(kind, rng.choice(items, len(items) // 16, replace=False))
    rows = np.isin(log.item, new)
    if kind == "mixed":
        rows |= np.isin(log.user, rng.choice(users, len(users) // 20, replace=False))
    return rows | (rng.random(len(rows)) < 0.04 * (kind in ("mixed", "rows"))), new


def ndcg(model: EventModel, test: Log, n: int = 20) -> float:
    user, item = model.users_.keys(test.user, "prior"), model.items_.keys(test.item, "prior")
    known = (user >= 0) & (item >= 0)
    users = np.unique(user[known])
    return float(ranks(model, users, user[known], item[known]).ndcg(n).mean())


def share(model: EventModel, items: Ints, n: int = 20) -> float:
    """Return the share of the lists that some items occupy."""
    return float(np.isin(model.recommend(model.users_.ids, n, progress=False).items, items).mean())


class Compared(NamedTuple):
    """An updated model, and a fit to all events."""

    update: float
    refit: float
    filled: float
    filled_by_refit: float


def compare(log: Log, kind: str, seed: int, updates: int = 1, factors: int = 6) -> Compared:
    rng = np.random.default_rng([seed, 2])
    held = rng.random(len(log.user)) < 0.1
    train, test = log.at(~held), log.at(held)
    rows, new = late(kind, train, seed)
    model = EventModel(factors, seed=seed, **QUIET).fit(train.at(~rows))
    for part in np.array_split(rng.permutation(np.flatnonzero(rows)), updates):
        model.update((train.user[part], train.item[part]))
    refit = EventModel(factors, seed=seed, **QUIET).fit(train)
    return Compared(ndcg(model, test), ndcg(refit, test), share(model, new), share(refit, new))


@pytest.mark.parametrize(
    ("kind", "updates"),
    [("items", 1), ("popular", 1), ("rare", 1), ("mixed", 1), ("popular", 6), ("rows", 1)],
)
def test_update_ranks_like_a_full_fit(kind: str, updates: int) -> None:
    found = [compare(drawn(300, 250, 9000, seed), kind, seed, updates) for seed in range(2)]
    update, refit, filled, by_refit = np.mean(found, axis=0)
    assert update > 0.95 * refit
    assert abs(filled - by_refit) < 0.02 + 0.3 * by_refit


@pytest.mark.slow
@pytest.mark.parametrize("name", ["netflix", "tastes", "goodbooks", "movietweetings"])
@pytest.mark.parametrize(
    ("kind", "updates"), [("items", 1), ("popular", 1), ("mixed", 1), ("mixed", 8)]
)
def test_update_ranks_like_a_full_fit_on_real_data(name: str, kind: str, updates: int) -> None:
    """Users of goodbooks have few events, of which later ones count less than in a fit."""
    found = [compare(log_of(name, seed), kind, seed, updates, factors=16) for seed in range(2)]
    update, refit, filled, by_refit = np.mean(found, axis=0)
    assert update > (0.9 if name == "goodbooks" else 0.97) * refit
    assert abs(filled - by_refit) < 0.02 + 0.3 * by_refit


def log_of(name: str, seed: int) -> Log:
    if name == "tastes":
        return drawn(1500, 2500, 90_000, seed)
    if name == "netflix":
        ratings = netflix_shaped(0.1, seed)
    else:
        path = DATA / name / "ratings.npz"
        if not path.exists():
            pytest.skip(f"there is no {name} here")
        ratings = read_ratings(path, duplicates="last")
        ratings = ratings.take(np.flatnonzero(ratings.rating >= np.median(ratings.rating)))
    users = np.random.default_rng(seed).permutation(ratings.users)[:10_000]
    return Log(ratings.user.astype(int), ratings.item.astype(int)).at(np.isin(ratings.user, users))


# --- negatives ------------------------------------------------------------------------------


def table(log: Log, users: int, items: int) -> Ratings:
    return Ratings.of_keys(*log, np.ones(len(log.user)), users, items)


def test_new_items_have_as_many_negatives_as_in_a_fit() -> None:
    """Compared with graphs drawn for all events, as in a fit."""
    log = drawn(200, 150, 5000, seed=3)
    new = log.item >= 130
    model = EventModel(2, iterations=1, **QUIET).fit(table(log.at(~new), 200, 130))
    history = History.of(table(log, 200, 150))
    odds = popularity(history.item, 150, 1.0)
    afresh = np.arange(150) >= 130
    sampler = NegativeSampler.of(
        model._state(), model._settings(), history, odds, log.user[new], afresh
    )
    draws = [sampler.draw(0, t) for t in range(1, 201)]
    item = np.concatenate([i for _, i in draws])
    found = np.bincount(item[item >= 130], minlength=150)[130:] / 200
    events = EventGraph(history.begin, history.item, odds, model.ratio)
    graphs = np.concatenate([events.draw(0, t)[events.taken == 0] for t in range(1, 201)])
    wanted = np.bincount(graphs, minlength=150)[130:] / 200
    np.testing.assert_allclose(found, wanted, rtol=0.1, atol=0.5)
    assert found.sum() == pytest.approx(wanted.sum(), rel=0.05)
    pairs = set(zip(log.user.tolist(), log.item.tolist(), strict=True))
    for who, what in draws[:20]:
        key = np.where(who < 0, ~who, who), np.where(what < 0, ~what, what)
        assert pairs.isdisjoint(zip(*(k.tolist() for k in key), strict=True))
        assert np.isin(who[who >= 0], log.user[new]).all()
        assert (what < 130).sum() < len(what)


def test_draw_times_equal_sampling_without_replacement() -> None:
    """Items arrive after exponential times; on average the wanted number has arrived."""
    log = drawn(40, 60, 500, seed=5)
    history = History.of(table(log, 40, 60))
    odds = popularity(history.item, 60, 1.0)
    events = np.diff(history.begin)
    time = draw_times(history, events, odds, 2.0)
    came = np.random.default_rng(0).exponential(1 / odds, (4000, 60))
    for user in range(40):
        others = np.setdiff1d(np.arange(60), log.item[log.user == user])
        wanted = min(np.rint(2.0 * events[user]), len(others) // 2)
        assert (came[:, others] < time[user]).sum(axis=1).mean() == pytest.approx(wanted, rel=0.03)


def test_posterior_is_the_prior_of_more_events() -> None:
    """The same as q declared as the prior of each element, also where q is wider than the prior."""
    rng = np.random.default_rng(0)

    def side(size: int) -> Side:
        arrays = rng.normal(size=size), rng.uniform(0.1, 2, size), rng.normal(size=(size, 3))
        return Side(*(np.float32(a) for a in (*arrays, rng.uniform(0.1, 2, (size, 3)))))

    users, items = side(20), side(12)
    anyone, anything = (Side.prior(1.0, np.ones(3), full=False) for _ in range(2))
    user, item, taken = rng.integers(20, size=200), rng.integers(12, size=200), np.arange(200) % 2
    start = {
        name: {"mu": q.mean, "tau": q.precision} for name, q in priors_of(users, items).items()
    }
    start.pop("a")

    def learned(of_users: Side, of_items: Side, **options: Any) -> dict[str, Posterior]:
        priors = priors_of(of_users, of_items)
        run = Online(Constant(0.5), init=start, tell=False, **options)
        for t in range(4):
            pairs = UserItemPairs(user, (item + t) % 12, 20, 12)
            given = {name: priors[name] for name in ("u", "v", "b")}
            run.advance(matrix_factorization(pairs, taken, 3, priors=given, link="logit"))
        return run.posteriors

    declared = learned(users, items)
    found = learned(anyone, anything, earlier=earlier_run(users, items, but="a"))
    for name, q in declared.items():
        np.testing.assert_allclose(found[name].natural, q.natural, rtol=1e-6, atol=1e-8)


def test_items_without_new_events_do_not_change() -> None:
    log = drawn(200, 100, 4000, seed=1)
    new = log.item >= 90
    model = EventModel(3, **QUIET).fit(log.at(~new))
    items, users = model.items_, model.users_
    model.update(log.at(new))
    for before, after in zip(items.side.arrays(), model.items_.side.arrays(), strict=True):
        assert np.array_equal(before, after[: len(before)])
    named = np.isin(users.ids, log.user[new])
    assert np.array_equal(users.side.mean[~named], model.users_.side.mean[: len(users)][~named])
    assert not np.array_equal(users.side.mean[named], model.users_.side.mean[: len(users)][named])


def test_new_users_with_only_new_items_get_items_of_their_group() -> None:
    """Two new groups of users, each with new items."""
    rng = np.random.default_rng(2)
    model = EventModel(6, **QUIET).fit(drawn(200, 100, 4000, seed=2))
    user = np.repeat(np.arange(1000, 1060), 8)
    item = 1000 + 2 * np.concatenate([rng.permutation(15)[:8] for _ in range(60)]) + user % 2
    model.update((user, item))
    top = model.recommend(np.arange(1000, 1060), 5, progress=False).items
    new, own = top >= 1000, top % 2 == np.arange(60)[:, None] % 2
    assert new.mean() > 0.4
    assert own[new].mean() > 0.95


def test_many_small_updates_of_an_item_equal_one_large_update() -> None:
    log = drawn(300, 100, 8000, seed=4)
    item = int(np.argmax(np.bincount(log.item)))
    new = log.item == item
    fans = log.user[new]
    models = [EventModel(3, **QUIET).fit(log.at(~new)) for _ in range(2)]
    models[0].update(log.at(new))
    for some in np.array_split(fans, 12):
        models[1].update((some, np.full(len(some), item)))
    everybody = np.unique(log.user)
    once, often = (m.predict(everybody, np.full(len(everybody), item)) for m in models)
    assert often.mean() == pytest.approx(once.mean(), rel=0.1)
    assert np.corrcoef(once, often)[0, 1] > 0.9


def test_repeated_updates_use_different_draws() -> None:
    """Otherwise the same negatives would be drawn each time that a user takes something."""
    log = drawn(100, 80, 2000, seed=6)
    model = EventModel(2, **QUIET).fit(log)
    moved = []
    for item in (70, 71, 72):
        before = model.items_.side.bias.copy()
        model.update(([1000 + item], [item]))
        moved.append(tuple(np.flatnonzero(model.items_.side.bias != before)))
    assert len(set(moved)) == 3


def test_update_of_a_saved_model_equals_update_of_the_original(tmp_path: Path) -> None:
    log = drawn(100, 80, 2000, seed=7)
    new = log.item >= 70
    model = EventModel(2, **QUIET).fit(log.at(~new))
    half = np.arange(len(log.user)) % 2 == 0
    model.update(log.at(new & half))
    model.save(tmp_path / "model")
    again = EventModel.load(tmp_path / "model")
    for one in (model, again):
        one.update(log.at(new & ~half))
    assert np.array_equal(model.items_.side.mean, again.items_.side.mean)
    assert np.array_equal(model.learned_, again.learned_)


def test_counts_of_new_items_are_repeated_events() -> None:
    """A pair that is repeated three times is three events."""
    log = drawn(100, 60, 1500, seed=8)
    model = EventModel(2, counts=True, **QUIET).fit(log)
    model.update(([1, 2, 3], [500, 500, 500], [3, 1, 2]))
    assert model.learned_[model.items_.keys(500)].tolist() == [6]
    model.update(([4], [500], [1]))
    assert model.learned_[model.items_.keys(500)].tolist() == [6]
    model.update(([1], [500], [1]))
    assert model.learned_[model.items_.keys(500)].tolist() == [8]


def test_partial_fit_fits_first_and_updates_later() -> None:
    log = drawn(100, 80, 2000, seed=7)
    late = np.arange(len(log.user)) % 10 == 0
    one = EventModel(2, **QUIET).partial_fit(log.at(~late)).partial_fit(log.at(late))
    other = EventModel(2, **QUIET).fit(log.at(~late)).update(log.at(late))
    assert np.array_equal(one.items_.side.mean, other.items_.side.mean)
