"""Predictions of new groups and missing values, beside simulation in NumPy and exact posteriors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import svmp

pytestmark = pytest.mark.by_size

P = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def groups(labels: str, key: Any, x: Any, observed: Any = None) -> svmp.Model:
    with svmp.Model(coords={"group": list(labels), "row": len(key)}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.1)
        spread = svmp.Gamma("spread", alpha=3, beta=2)
        slope = svmp.Normal("slope", mu=0, tau=1)
        effect = svmp.Normal("effect", mu=mu, tau=spread, dims="group")
        tau = svmp.Gamma("tau", alpha=3, beta=1)
        svmp.Normal("y", mu=effect[key] + slope * x, tau=tau, dims="row", observed=observed)
    return model


@pytest.fixture(scope="module")
def fit() -> svmp.Fit:
    rng = np.random.default_rng(0)
    key, x = rng.integers(4, size=24), rng.normal(size=24)
    y = np.array([0.0, 1.0, 3.0, 1.5])[key] + 0.5 * x + 0.6 * rng.normal(size=24)
    return svmp.fit(groups("abcd", key, x, y), svmp.FullVB())


def test_known_and_new_groups_match_a_long_simulation(fit: svmp.Fit) -> None:
    x = np.array([0.0, 1.0, 2.0])
    found = fit.predict(groups("cz", [0, 1, 1], x), "y", corrected=False)
    rng, n = np.random.default_rng(5), 400_000
    gammas = {
        k: rng.gamma(fit.posteriors[k].alpha, 1 / fit.posteriors[k].beta, n)
        for k in ("spread", "tau")
    }
    normals = {
        k: rng.normal(fit.posteriors[k].mean, fit.posteriors[k].std, n) for k in ("mu", "slope")
    }
    known = rng.normal(fit.posteriors["effect"].mean[2], fit.posteriors["effect"].std[2], n)
    new = normals["mu"] + rng.normal(size=n) / np.sqrt(gammas["spread"])
    effects = np.stack([known, new, new])
    truth = effects + normals["slope"] * x[:, None] + rng.normal(size=(3, n)) / gammas["tau"] ** 0.5
    sd = truth.std(axis=1)
    assert found.exact
    np.testing.assert_allclose(found.mean, truth.mean(axis=1), atol=0.01)
    np.testing.assert_allclose(found.std, sd, rtol=0.01)
    off = np.abs(found.quantile(P) - np.quantile(truth, P, axis=1)) / sd
    assert off.max() < 0.02
    draws = found.draw(5000, seed=1)
    cov = np.cov(effects[:2] + normals["slope"] * x[:2, None])
    np.testing.assert_allclose(np.cov(draws.T)[1, 2], np.cov(truth)[1, 2], rtol=0.1)
    assert cov[0, 1] == pytest.approx(np.cov(draws.T)[0, 1], abs=0.05)


def test_draws_are_the_same_for_the_same_seed_and_for_any_block(
    fit: svmp.Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = groups("cz", [0, 1, 1], np.zeros(3))
    found = fit.predict(model, "y", corrected=False)
    np.testing.assert_array_equal(found.draw(4, seed=3), found.draw(4, seed=3))
    np.testing.assert_array_equal(
        found.quantile(P), fit.predict(model, "y", corrected=False).quantile(P)
    )
    whole = found.interval(0.9)
    monkeypatch.setattr("svmp.posterior.prediction.prediction.AT_ONCE", 1000)
    np.testing.assert_allclose(found.interval(0.9), whole, atol=0.05)
    assert found.labels == {}
    assert found.dims == ("row",)


def test_a_frame_has_labels_and_intervals() -> None:
    pytest.importorskip("pandas")
    with svmp.Model(coords={"day": ["mon", "tue"], "word": ["a", "b"]}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("y", mu=mu, tau=1, dims="day", observed=[1.0, 2.0])
        p = svmp.Dirichlet("p", a=1, dims="word")
        svmp.Categorical("c", p=p, dims="day", observed=[0, 1])
    fit = svmp.fit(model, svmp.FullVB())
    found = fit.predict(model, "y", corrected=False)
    frame = found.to_frame(0.8)
    assert list(frame.columns) == ["day", "mean", "sd", "lower", "upper"]
    assert list(frame.day) == ["mon", "tue"]
    np.testing.assert_array_equal(frame.upper, found.interval(0.8)[1])
    frame = fit.predict(model, "c", corrected=False).to_frame()
    assert list(frame.columns) == ["day", "word", "mean", "sd"]
    assert list(frame.word) == ["a", "b"] * 2  # as fit.to_frame has a hidden Categorical


def test_a_childless_element_is_wider_than_its_prior_given_expected_parents() -> None:
    """Var = 1 / tau + Var[mu]: the group without rows has q of variance 1 / tau alone."""
    with svmp.Model(coords={"group": 2, "row": 3}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        x = svmp.Normal("x", mu=mu, tau=4, dims="group")
        svmp.Normal("y", mu=x[[0, 0, 1]], tau=2, dims="row", observed=[1, 2, np.nan], missing=True)
    fit = svmp.fit(model, svmp.FullVB())
    found = fit.predict(model, "y", noise=False, corrected=False)
    np.testing.assert_allclose(fit.posteriors["x"].var[1], 0.25)
    np.testing.assert_allclose(found.var[2], 0.25 + fit.posteriors["mu"].var)
    np.testing.assert_allclose(found.var[0], fit.posteriors["x"].var[0])


def test_missing_values_are_imputed_from_what_their_row_has_shown() -> None:
    """One vector per row, seen through the entries that are there: a conditional Normal."""
    y = np.array([[2.0, 1.5, np.nan], [-1.0, np.nan, -2.0]])
    loads = np.array([1.0, 2.0, -1.0])

    def declare(values: Any) -> svmp.Model:
        with svmp.Model(coords={"row": 2, "col": 3}) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims="row")
            mu = u * svmp.data(loads, dims="col")
            svmp.Normal("y", mu=mu, tau=4, dims=("row", "col"), observed=values, missing=True)
        return model

    model = declare(y)
    fit = svmp.fit(model, svmp.FullVB())
    found = fit.predict(model, "y", corrected=False)
    cov = np.outer(loads, loads) + np.eye(3) / 4
    for row, gap in ((0, 2), (1, 1)):
        rest = [c for c in range(3) if c != gap]
        pull = cov[gap, rest] @ np.linalg.inv(cov[np.ix_(rest, rest)])
        assert found.mean[row, gap] == pytest.approx(pull @ y[row, rest])
        assert found.var[row, gap] == pytest.approx(cov[gap, gap] - pull @ cov[rest, gap])
    again = fit.predict(declare(y), "y", known=["row"], corrected=False)
    np.testing.assert_array_equal(again.mean, found.mean)
    np.testing.assert_allclose(fit.predict(declare(y), "y", new=["row"]).var[0], np.diag(cov))


def test_factors_of_new_users_are_drawn_from_their_prior() -> None:
    """A product of two Normals: E = 0 and Var = sum of products of second moments."""
    user, item = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])

    def declare(users: list[str], user: Any, item: Any, values: Any = None) -> svmp.Model:
        coords = {"user": users, "item": 2, "k": 2, "row": len(user)}
        with svmp.Model(coords=coords) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "k"))
            v = svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))
            mu = svmp.dot(u[user], v[item])
            svmp.Normal("r", mu=mu, tau=1, dims="row", observed=values)
        return model

    fit = svmp.fit(declare(["a", "b"], user, item, [2.0, 0.5, 1.0, -1.0]), svmp.FullVB())
    found = fit.predict(declare(["new", "b"], [0, 1], [0, 0]), "r", corrected=False)
    v, u = fit.posteriors["v"], fit.posteriors["u"]
    square = v.var + v.mean**2
    assert found.mean[0] == pytest.approx(0)
    assert found.var[0] == pytest.approx(square[0].sum() + 1)
    assert found.mean[1] == pytest.approx(u.mean[1] @ v.mean[0])
    rng = np.random.default_rng(0)
    draws = (rng.normal(size=(200_000, 2)) * rng.normal(v.mean[0], v.std[0], (200_000, 2))).sum(1)
    truth = np.quantile(draws + rng.normal(size=200_000), P)
    np.testing.assert_allclose(found.quantile(P)[:, 0], truth, atol=0.06)


def test_hidden_rows_between_are_drawn_too() -> None:
    """A row's own logit, with noise of its own, and a rate above a rate."""
    with svmp.Model(coords={"row": 3}) as model:
        c = svmp.Normal("c", mu=0.5, tau=2)
        own = svmp.Normal("own", mu=c, tau=1, dims="row")
        svmp.Bernoulli("y", logit=own, dims="row", observed=[1, 0, 1])
    fit = svmp.fit(model, svmp.FullVB())
    with svmp.Model(coords={"row": 1}) as later:
        c = svmp.Normal("c", mu=0.5, tau=2)
        own = svmp.Normal("own", mu=c, tau=1, dims="row")
        svmp.Bernoulli("y", logit=own, dims="row")
    z = stats.norm(fit.posteriors["c"].mean, np.sqrt(fit.posteriors["c"].var + 1)).ppf(
        (np.arange(10_000) + 0.5) / 10_000
    )
    found = fit.predict(later, "y", corrected=False)
    assert found.mean[0] == pytest.approx((1 / (1 + np.exp(-z))).mean(), abs=2e-3)

    def rates(count: int, values: Any = None) -> svmp.Model:
        with svmp.Model(coords={"row": count}) as model:
            top = svmp.Gamma("top", alpha=4, beta=2)
            g = svmp.Gamma("g", alpha=3, beta=top, dims="row")
            svmp.Poisson("y", mu=g, dims="row", observed=values)
        return model

    fit = svmp.fit(rates(3, [1, 3, 2]), svmp.FullVB())
    found = fit.predict(rates(1), "y", corrected=False)
    a, b = float(fit.posteriors["top"].alpha), float(fit.posteriors["top"].beta)
    assert found.mean[0] == pytest.approx(3 * b / (a - 1), rel=1e-3)
    rng = np.random.default_rng(1)
    draws = rng.poisson(rng.gamma(3, 1 / rng.gamma(a, 1 / b, 300_000)))
    for p in P:
        k = found.quantile(p)[0]
        assert (draws <= k).mean() >= p - 0.005
        assert (draws < k).mean() <= p + 0.005


@pytest.mark.parametrize("values", [None, np.full(2, np.nan), np.ma.masked_all(2)])
def test_rows_without_any_value_are_predicted(values: Any) -> None:
    """`missing=True` in a function that declares is no obstacle to rows without values."""

    def declare(x: Any, y: Any) -> svmp.Model:
        with svmp.Model(coords={"row": 2}) as model:
            a = svmp.Normal("a", mu=0, tau=1)
            svmp.Normal("y", mu=a * x, tau=1, dims="row", observed=y, missing=True)
        return model

    fit = svmp.fit(declare(np.ones(2), [1.0, np.nan]))
    found = fit.predict(declare(np.array([1.0, 2.0]), values), "y")
    np.testing.assert_allclose(found.mean, [0.5, 1.0])
    np.testing.assert_allclose(found.var, [1.5, 3.0])
    with pytest.raises(svmp.ModelError, match="nothing observed"):
        svmp.fit(declare(np.ones(2), values))


def test_a_frame_without_the_column_to_predict_is_refused_with_the_remedy() -> None:
    with svmp.Model(data={"x": [1.0, 2.0]}) as model:
        a = svmp.Normal("a", mu=0, tau=1)
        with pytest.raises(svmp.ModelError, match=r"no column 'y'.*add the column with NaN"):
            svmp.Normal("y", mu=a * model.data.x, tau=1, observed="y")
