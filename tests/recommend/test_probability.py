"""The probability of an event: mean, deviation and intervals of one distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from svmp.recommend import EventModel
from svmp.recommend.population import Population
from svmp.recommend.probability import interval, moments
from svmp.recommend.side import EntityTable, Side
from tests.recommend.test_more_events import drawn

CASES = [(0.0, 0.3), (-2.0, 1.0), (-6.0, 1.5), (-5.0, 2.5), (4.0, 2.5), (-9.0, 0.5), (1.0, 3.0)]


@pytest.mark.parametrize(("mean", "std"), CASES)
def test_moments_equal_numerical_integrals(mean: float, std: float) -> None:
    def integral(power: int) -> float:
        def density(x: float) -> float:
            return float(expit(mean + std * x) ** power * stats.norm.pdf(x))

        return integrate.quad(density, -12, 12, epsabs=1e-14, limit=200)[0]

    found, spread = moments(np.array([mean]), np.array([std**2]))
    wanted = integral(1)
    assert found[0] == pytest.approx(wanted, rel=2e-3)
    assert spread[0] == pytest.approx(np.sqrt(integral(2) - wanted**2), rel=5e-3)


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize(("mean", "std"), CASES)
def test_intervals_have_their_coverage_and_contain_the_mean(
    mean: float, std: float, level: float
) -> None:
    arrays = np.array([mean]), np.array([std**2])
    (low,), (high,) = interval(*arrays, level)
    chance = expit(np.random.default_rng(0).normal(mean, std, 200_000))
    assert np.mean((low <= chance) & (chance <= high)) == pytest.approx(level, abs=0.006)
    assert low <= moments(*arrays)[0][0] <= high
    tail = (1 - level) / 2
    middle = np.quantile(chance, [tail, 1 - tail])
    if middle[0] < chance.mean() < middle[1]:  # then as much is left out on either side
        np.testing.assert_allclose([low, high], middle, rtol=0.02)


def test_zero_variance() -> None:
    arrays = np.array([-3.0, 0.0], np.float32), np.zeros(2, np.float32)
    found, spread = moments(*arrays)
    np.testing.assert_allclose(found, expit(arrays[0]), rtol=1e-6)
    np.testing.assert_allclose(spread, 0, atol=1e-7)
    for end in interval(*arrays, 0.9):
        np.testing.assert_allclose(end, found, rtol=1e-6)


def test_population_variances_are_posteriors_under_the_empirical_prior() -> None:
    """Elements x ~ N(0, 0.09), each seen with a known precision; q has the prior N(0, 1)."""
    rng = np.random.default_rng(0)
    count, true = 5000, 0.09
    x = np.sqrt(true) * rng.standard_normal((count, 2))
    data = rng.gamma(1.0, 10.0, (count, 2))
    seen = x + rng.standard_normal((count, 2)) / np.sqrt(data)
    cov = 1 / (1 + data)
    side = Side(*(a.astype(np.float32) for a in (seen[:, 0], cov[:, 0], cov * data * seen, cov)))
    known = EntityTable("item", np.arange(count), side, Side.prior(1.0, np.ones(2), full=False))
    told = Population.of(known).shrunk(side)
    np.testing.assert_allclose(told.cov, 1 / (1 / true + data), rtol=0.1)
    assert np.array_equal(told.mean, side.mean)


@pytest.fixture(scope="module")
def model() -> EventModel:
    return EventModel(16, progress=False, threads=1).fit(drawn(250, 500, 4000, seed=0))


def test_predictions_lie_in_their_intervals(model: EventModel) -> None:
    rng = np.random.default_rng(1)
    pairs = rng.choice(model.users_.ids, 3000), rng.choice(model.items_.ids, 3000)
    mean, std = model.predict(*pairs, return_std=True)
    for level in (0.2, 0.5, 0.9):
        low, high = model.predict_interval(*pairs, level)
        assert ((low <= mean) & (mean <= high)).all()
    logit, var = model._logits(*pairs, "error")
    chance = expit(rng.normal(logit, np.sqrt(var), (4000, 3000)))
    np.testing.assert_allclose(mean, chance.mean(axis=0), rtol=0.1)
    assert np.median(std / chance.std(axis=0)) == pytest.approx(1, abs=0.02)


def test_predictions_are_close_to_draws_of_the_factors(model: EventModel) -> None:
    """The logit is not exactly Normal: it has products of factors."""
    users = model._population(model.users_).shrunk(model.users_.side.at(np.arange(20)))
    items = model._population(model.items_).shrunk(model.items_.side.at(np.arange(20)))
    rng = np.random.default_rng(0)
    u, v = (s.mean + np.sqrt(s.cov) * rng.standard_normal((4000, 20, 16)) for s in (users, items))
    b = items.bias + np.sqrt(items.bias_var) * rng.standard_normal((4000, 20))
    chance = expit((u * v).sum(axis=2) + b + model.offset_)
    mean, std = model.predict(model.users_.ids[:20], model.items_.ids[:20], return_std=True)
    np.testing.assert_allclose(mean, chance.mean(axis=0), rtol=0.05)
    np.testing.assert_allclose(std, chance.std(axis=0), rtol=0.15)


# --- exploring ------------------------------------------------------------------------------


@pytest.mark.parametrize("explore", ["thompson", "ucb"])
def test_exploration_does_not_fill_lists_with_unknown_items(explore: str) -> None:
    """Most items have an event or two; lists should still consist of items that users take."""
    rng = np.random.default_rng(3)
    log = drawn(300, 200, 6000, seed=3)
    user = np.append(log.user, rng.choice(300, 1500))
    item = np.append(log.item, 1000 + rng.integers(0, 1200, 1500))
    held = rng.random(len(user)) < 0.1
    model = EventModel(16, progress=False, threads=1).fit((user[~held], item[~held]))
    count = dict(zip(*np.unique(item[~held], return_counts=True), strict=True))
    users = np.unique(user[held])
    options: dict[str, object] = {"n": 20, "progress": False}
    greedy = model.recommend(users, **options).items
    lists = [model.recommend(users, explore=explore, seed=s, **options).items for s in (1, 2)]
    events, most = (np.median([count[i] for i in x.ravel()]) for x in (lists[0], greedy))
    assert events > 0.6 * most
    found, best = (gain(x, users, user[held], item[held]) for x in (lists[0], greedy))
    assert found > 0.75 * best
    if explore == "thompson":
        same = [len(set(a) & set(b)) / 20 for a, b in zip(*lists, strict=True)]
        assert np.mean(same) < 0.9
        narrow = model.recommend(users, explore="thompson", width=0.2, seed=1, **options).items
        assert gain(narrow, users, user[held], item[held]) > 0.95 * best


def gain(top: np.ndarray, users: np.ndarray, user: np.ndarray, item: np.ndarray) -> float:
    """Return the mean NDCG of lists."""
    weights = 1 / np.log2(np.arange(2, top.shape[1] + 2))
    found = []
    for one, line in zip(users, top, strict=True):
        own = item[user == one]
        found.append((np.isin(line, own) * weights).sum() / weights[: len(own)].sum())
    return float(np.mean(found))
