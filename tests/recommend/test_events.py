"""Events: averaging over graphs, fold-in and ranking scores, compared with independent results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, sparse, stats
from scipy.special import expit

import svmp
from svmp.fitting.online import Online
from svmp.ratings import Ratings
from svmp.recommend import EventModel, evaluate, split
from svmp.recommend.fold_events import fold_in_events
from svmp.recommend.probability import probability
from svmp.recommend.side import Side


def circles(users: int = 60, items: int = 40, seed: int = 0) -> sparse.csr_array:
    """Two groups of users; each takes a third of its own half of the items, and a few others."""
    rng = np.random.default_rng(seed)
    same = (np.arange(users)[:, None] % 2) == (np.arange(items) % 2)
    taken = rng.random((users, items)) < np.where(same, 0.35, 0.02)
    taken[np.arange(users), np.arange(users) % items] = True
    return sparse.csr_array(taken.astype(np.float32))


@pytest.fixture(scope="module")
def model() -> EventModel:
    return EventModel(factors=3, iterations=12, progress=False).fit(circles())


def test_recommendations_come_from_the_users_group(model: EventModel) -> None:
    top = model.recommend(np.arange(60), n=3)
    assert np.mean(top.items % 2 == np.arange(60)[:, None] % 2) > 0.9
    seen = circles().toarray()[np.arange(60)[:, None], top.items] > 0
    assert not seen.any()


def test_the_same_seed_gives_the_same_bits_and_another_does_not() -> None:
    one, two, other = (
        EventModel(factors=2, iterations=3, seed=s, threads=t, progress=False).fit(circles())
        for s, t in ((1, 1), (1, 2), (2, 1))
    )
    assert np.array_equal(one.items_.side.mean, two.items_.side.mean)
    assert not np.array_equal(one.items_.side.mean, other.items_.side.mean)


# --- online inference: networks whose rows are drawn in each iteration ----------------------


def coin(values: Any) -> svmp.Model:
    with svmp.Model() as network:
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("x", mu=mu, tau=1, observed=values)
    return network


def test_natural_parameters_are_the_average_over_networks() -> None:
    """With steps 1/t, q is the mean over draws of the posterior's natural parameters."""
    rows = np.random.default_rng(0).normal(size=(6, 4))
    run = Online(lambda context: 1 / context.iteration, tell=False)
    for values in rows:
        run.advance(coin(values))
    q = run.posteriors["mu"]
    assert q.tau == pytest.approx(1 + 4)
    assert q.mean == pytest.approx(rows.sum() / 6 / 5)


def test_online_inference_on_one_network_equals_full_vb() -> None:
    network = coin([1.0, 2.0])
    run = Online(svmp.Constant(1.0), tell=False)
    run.advance(network)
    assert run.posteriors["mu"].mean == svmp.fit(network, svmp.FullVB()).mean("mu")


# --- one user given the items ---------------------------------------------------------------


def test_fold_in_equals_a_fit_with_known_items(model: EventModel) -> None:
    """With known items, compared with svmp.fit on the network of the rows."""
    side = model.items_.side
    nothing = np.zeros_like(side.bias_var), np.zeros_like(side.cov)
    certain = EventModel(**model.get_params())
    certain.__dict__ |= vars(model)
    known = Side(side.bias, nothing[0], side.mean, nothing[1])
    certain.items_ = type(model.items_)("item", model.items_.ids, known, model.items_.prior)
    state, settings = certain._state(), certain._settings()
    user, _ = fold_in_events(state, settings, np.array([0, 4, 8]), np.ones(3, np.int64))
    keys = np.concatenate([[0, 4, 8], _others(certain)])
    x, bias = side.mean[keys], side.bias[keys]
    taken = np.arange(len(x)) < 3
    times = np.where(taken, 4, 1)  # events count four times as much as each of four draws
    with svmp.Model(coords={"factor": 3}) as network:
        u = svmp.MvNormal("u", mu=0, tau=4 * np.eye(3), dims="factor")
        rows = np.repeat(np.arange(len(x)), times)
        logit = svmp.dot(x[rows], u) + bias[rows] + model.offset_
        svmp.Bernoulli("taken", logit=logit, observed=taken[rows])
    # Four times the prior and four times the rows: the same mean, from a narrower q.
    fit = svmp.fit(network, svmp.FullVB(), tol=1e-12)
    assert np.corrcoef(user.mean[0], fit.mean("u"))[0, 1] > 0.999
    np.testing.assert_allclose(user.mean[0], fit.mean("u"), atol=0.05)


def _others(model: EventModel) -> Any:
    from svmp.recommend.fold_events import DRAWS
    from svmp.recommend.graph import EventGraph

    events = EventGraph(np.array([0, 3]), np.array([0, 4, 8], np.int32), model.odds_, model.ratio)
    return np.concatenate([events.draw(model.seed, -t)[3:] for t in range(1, DRAWS + 1)])


def test_person_gets_items_of_their_group(model: EventModel) -> None:
    person = model.fold_in([1, 3, 5, 7])
    assert (model.recommend(person, n=5).items % 2 == 1).mean() > 0.7
    assert model.predict(person, 9) > model.predict(person, 8)
    nobody = model.fold_in([])
    np.testing.assert_allclose(nobody.side.mean, 0, atol=1e-6)
    assert np.array_equal(person.seen, [1, 3, 5, 7])


def test_explanation_adds_up_and_names_the_users_group(model: EventModel) -> None:
    why = model.explain(7, 9)
    assert why.prediction == pytest.approx(why.base + why.parts.sum() + why.rest, abs=1e-5)
    assert set(why.items) == set(circles()[[7]].indices)
    assert why.parts[why.items % 2 == 1].sum() > 0
    person = model.fold_in(circles()[[7]].indices)
    again = model.explain(person, 9)
    assert again.prediction == pytest.approx(again.base + again.parts.sum() + again.rest, abs=1e-5)
    np.testing.assert_allclose(again.parts.sum(), why.parts.sum(), rtol=1e-3)


# --- scores ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("mean", "var"), [(0.0, 2.0), (1.5, 0.5), (-2.0, 4.0), (3.0, 0.0)])
def test_probability_is_close_to_the_integral(mean: float, var: float) -> None:
    def density(z: float) -> float:
        return float(expit(z) * stats.norm.pdf(z, mean, np.sqrt(var)))

    exact = expit(mean) if var == 0 else integrate.quad(density, mean - 20, mean + 20)[0]
    assert probability(np.array(mean), np.array(var)) == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_of_probabilities_have_their_coverage(model: EventModel, level: float) -> None:
    """Compared with draws of z with the mean and variance of the model's scores."""
    users, items = np.arange(20), np.arange(20)
    low, high = model.predict_interval(users, items, level)
    mean, var = model._logits(users, items, "error")
    z = np.random.default_rng(0).normal(mean, np.sqrt(var), (20_000, 20))
    held = ((low < expit(z)) & (expit(z) < high)).mean(axis=0)
    np.testing.assert_allclose(held, level, atol=0.02)
    expected = model.predict(users, items)
    assert ((low < expected) & (expected < high)).all()
    with pytest.raises(svmp.ModelError, match="between 0 and 1"):
        model.predict_interval(0, 0, 1.5)


def test_ranking_scores(model: EventModel) -> None:
    users = model.users_.side.at(np.arange(5))
    items = model.items_.side
    z = users.mean @ items.mean.T + items.bias
    for rule, expected in (
        ("z", z),
        ("z + 1/2 log pi", z + 0.5 * np.log(model.odds_)),
    ):
        other = EventModel(**{**model.get_params(), "score": rule})
        other.__dict__ |= {**vars(model), "score": rule}
        np.testing.assert_allclose(other.scores(users), expected, atol=1e-5)
    other.score = "probability"
    pairs = np.repeat(np.arange(5), 40), np.tile(np.arange(40), 5)
    np.testing.assert_allclose(other.scores(users).ravel(), other.predict(*pairs), atol=1e-5)
    top = other.recommend(3, n=4)
    np.testing.assert_allclose(top.scores, other.predict(3, top.items), atol=1e-5)


def test_evaluation_includes_popularity() -> None:
    ratings = Ratings.of_keys(*np.nonzero(circles().toarray()), np.ones(circles().nnz), 60, 40)
    train, test = split.random(ratings, 0.2, seed=1)
    model = EventModel(factors=3, progress=False).fit(train)
    found = evaluate(model, test, n=5, draws=20)
    assert list(found.scores) == ["model", "popularity"]
    assert found.scores["model"]["NDCG@5"].value > found.scores["popularity"]["NDCG@5"].value
    assert found.plot().shape == (1,)


# --- input ----------------------------------------------------------------------------------


def test_counts_are_repeated_events() -> None:
    """A pair that is repeated three times is a count of 3, and differs from a single one."""
    user, item = np.nonzero(circles().toarray())
    again = np.append(user, [user[0]] * 2), np.append(item, [item[0]] * 2)
    count = np.ones(len(user))
    count[0] = 3
    options: dict[str, Any] = {"factors": 2, "iterations": 3, "progress": False, "counts": True}
    one, two, once = (
        EventModel(**options).fit(data) for data in (again, (user, item, count), (user, item))
    )
    np.testing.assert_allclose(one.users_.side.mean, two.users_.side.mean, atol=1e-4)
    assert not np.array_equal(one.users_.side.mean, once.users_.side.mean)
    assert one.odds_[item[0]] > once.odds_[item[0]]


def test_at_least_selects_events() -> None:
    user, item = np.nonzero(circles().toarray())
    stars = np.where(np.arange(len(user)) % 3, 5.0, 2.0)
    options: dict[str, Any] = {"factors": 2, "iterations": 2, "progress": False}
    model = EventModel(at_least=4, **options).fit((user, item, stars))
    assert len(model.history_.item) == (stars >= 4).sum()
    with pytest.raises(svmp.SvmpError, match="no events: no rating is of 9 or more"):
        EventModel(at_least=9, **options).fit((user, item, stars))


def test_a_model_is_saved_and_loaded(model: EventModel, tmp_path: Any) -> None:
    model.save(tmp_path / "events")
    again = EventModel.load(tmp_path / "events")
    assert np.array_equal(again.recommend(3).items, model.recommend(3).items)
    assert again.get_params() == model.get_params()
    assert np.array_equal(again.fold_in([1, 3]).side.mean, model.fold_in([1, 3]).side.mean)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"factors": 0}, "factors must be a whole number of at least 1"),
        ({"iterations": 0}, "iterations must be"),
        ({"ratio": 0}, "ratio must be a positive number"),
        ({"ratio": "many"}, "ratio must be a positive number"),
        ({"precision": -1.0}, "precision must be a positive number"),
        ({"score": "best"}, "score must be one of"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(svmp.ModelError, match=words):
        EventModel(progress=False, **parameters).fit(circles())


def test_invalid_requests_are_refused(model: EventModel) -> None:
    with pytest.raises(svmp.ModelError, match="not fitted yet"):
        EventModel().recommend(1)
    with pytest.raises(svmp.ModelError, match="no item 99"):
        model.predict(1, 99)
    with pytest.raises(svmp.ModelError, match="an item twice"):
        model.fold_in([1, 1])
    with pytest.raises(svmp.SvmpError, match="a rating is a count"):
        EventModel(counts=True, progress=False).fit(([0, 1], [0, 1], [1.5, 2.0]))


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
def test_one_user_or_one_item(shape: tuple[int, int]) -> None:
    data = sparse.csr_array(np.ones(shape, np.float32))
    model = EventModel(factors=2, iterations=3, progress=False).fit(data)
    assert np.isfinite(model.predict(0, 0)).all()
    assert len(model.recommend(0).items) == 0  # all of it is seen


# --- more events ----------------------------------------------------------------------------


def drawn_events(seed: int, count: int) -> tuple[Any, Any]:
    """Events of two groups of 40 users, with 20 items each."""
    rng = np.random.default_rng(seed)
    user, item = rng.integers(0, 80, count), rng.integers(0, 20, count)
    return user, item + 20 * (user % 2)


def test_update_adds_new_users_and_items_and_keeps_other_users() -> None:
    model = EventModel(2, progress=False, threads=1).fit(drawn_events(0, 1500))
    before = model.users_.side.mean.copy()
    model.update(([1000] * 4 + [1, 3, 5, 7, 9], [21, 22, 23, 24] + [500] * 5))
    assert (len(model.users_), len(model.items_)) == (81, 41)
    touched = np.isin(model.users_.ids, [1, 3, 5, 7, 9, 1000])
    assert np.array_equal(model.users_.side.mean[~touched], before[~touched[:80]])
    assert (np.asarray(model.recommend(1000, 5).items) >= 20).all()
    assert model.predict(11, 500)[0] > model.predict(10, 500)[0]
    assert model.odds_.sum() == pytest.approx(1)
    assert set(model.recommend(1000, 100).items.tolist()).isdisjoint([21, 22, 23, 24])


def test_update_is_as_close_to_a_refit_as_another_seed() -> None:
    user, item = drawn_events(1, 3000)
    model = EventModel(2, progress=False, threads=1).fit((user[:2700], item[:2700]))
    model.update((user[2700:], item[2700:]))
    fitted = [EventModel(2, seed=s, progress=False, threads=1).fit((user, item)) for s in (0, 1)]
    who, what = np.divmod(np.arange(80 * 40), 40)
    found, anew, again = (m.predict(who, what) for m in (model, *fitted))
    assert np.corrcoef(found, anew)[0, 1] > 0.9
    assert np.sqrt(np.mean((found - anew) ** 2)) < 2 * np.sqrt(np.mean((again - anew) ** 2)) + 0.05


def test_counts_add_up() -> None:
    model = EventModel(2, counts=True, progress=False, threads=1)
    model.fit(([1, 1, 2], [5, 6, 5], [2, 1, 1]))
    model.update(([1, 2], [5, 6], [3, 1]))
    assert sorted(model.history_.rating.tolist()) == [1, 1, 1, 5]
