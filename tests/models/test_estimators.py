"""Estimators: scikit-learn's common checks, closed forms, and scikit-learn's own results."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import decomposition, linear_model
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

import svmp
from svmp import models

RNG = np.random.default_rng(2)
QUICK = (
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_estimators_nan_inf",
    "check_fit2d_1sample",
    "check_n_features_in_after_fitting",
    "check_parameters_default_constructible",
    "check_estimators_partial_fit_n_features",
)
"""Common checks that take little time and find most mistakes; all of them are in the slow test."""


ESTIMATORS = (
    models.BayesianRegression,
    models.LogisticRegression,
    models.GaussianMixture,
    models.TopicModel,
    models.FactorAnalysis,
    models.MixedEffects,
)


def quick_checks() -> Iterator[Any]:
    for kind in ESTIMATORS:
        for estimator, check in estimator_checks_generator(kind(), mark=None):
            name = getattr(check, "func", check).__name__
            if name in QUICK:
                yield pytest.param(estimator, check, id=f"{kind.__name__}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(quick_checks()))
@pytest.mark.filterwarnings("ignore")
def test_quick_common_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.filterwarnings("ignore")
def test_all_common_checks(kind: Any) -> None:
    results = check_estimator(kind(), on_fail=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []


def test_regression_is_at_its_fixed_point_and_near_scikit_learn() -> None:
    X = RNG.normal(size=(60, 3))
    y = X @ [1.0, -2.0, 0.0] + 4 + RNG.normal(size=60)
    model = models.BayesianRegression(tol=1e-12).fit(X, y)
    theirs = linear_model.BayesianRidge().fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=0.02)
    mean, std = model.predict(X, return_std=True)
    other, other_std = theirs.predict(X, return_std=True)
    np.testing.assert_allclose(mean, other, atol=0.05)
    np.testing.assert_allclose(std, other_std, rtol=0.1)
    alpha, tau = model.fit_.posteriors["alpha"].mean[1], model.fit_.posteriors["tau"].mean / y.var()
    around = X - X.mean(axis=0)
    prior = alpha * np.diag(X.var(axis=0)) / y.var()  # that of columns and y in standard units
    precision = prior + tau * around.T @ around
    np.testing.assert_allclose(model.sigma_[1:, 1:], np.linalg.inv(precision), rtol=1e-4)
    exact = np.linalg.solve(precision, tau * around.T @ y)
    np.testing.assert_allclose(model.coef_, exact, rtol=1e-4, atol=1e-6)
    level = y.mean() - X.mean(axis=0) @ exact
    assert model.intercept_ == pytest.approx(level, abs=1e-4)
    there = np.append(1.0, X.mean(axis=0))  # the level at the mean of X has a flat prior
    assert there @ model.sigma_ @ there == pytest.approx(1 / (60 * tau), rel=1e-4)


def test_partial_fit_is_near_one_fit_of_all_rows() -> None:
    X = RNG.normal(size=(200, 2))
    y = X @ [1.0, -2.0] + 4 + 0.5 * RNG.normal(size=200)
    whole = models.BayesianRegression().fit(X, y)
    parts = models.BayesianRegression().partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=0.02)
    np.testing.assert_allclose(parts.sigma_, whole.sigma_, rtol=0.2, atol=1e-5)


def test_logistic_regression_is_near_scikit_learn() -> None:
    X = RNG.normal(size=(300, 2))
    for classes in (2, 3):
        logit = np.column_stack([X @ [2.0, 0.0], X @ [0.0, 2.0], np.zeros(300)])[:, :classes]
        y = (logit + RNG.gumbel(size=logit.shape)).argmax(axis=1)
        model = models.LogisticRegression().fit(X, y)
        theirs = linear_model.LogisticRegression().fit(X, y)
        share = model.predict_proba(X)
        np.testing.assert_allclose(share.sum(axis=1), 1)
        assert (model.predict(X) == theirs.predict(X)).mean() > 0.9
        if classes == 2:
            np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=0.15, atol=0.1)
            np.testing.assert_allclose(share, theirs.predict_proba(X), atol=0.05)


def test_partial_fit_of_a_classifier_knows_classes_that_come_later() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 1)), np.repeat(["a", "b"], 20)
    X[20:] += 3
    model = models.LogisticRegression().partial_fit(X[:20], y[:20], classes=["a", "b"])
    model.partial_fit(X[20:], y[20:])
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="'c', which is not one of"):
        model.partial_fit(X[:1], ["c"])


def test_gaussian_mixture_finds_the_groups() -> None:
    z = np.repeat([0, 1, 2], 60)
    X = np.array([[0, 0], [6, 0], [0, 6]])[z] + RNG.normal(size=(180, 2))
    model = models.GaussianMixture(n_components=4).fit(X)
    found = model.predict(X)
    assert len(np.unique(found)) == 3
    for k in range(3):
        assert len(np.unique(found[z == k])) == 1
    assert model.score(X) > models.GaussianMixture(n_components=1).fit(X).score(X)
    later = models.GaussianMixture(3).partial_fit(X[::2]).partial_fit(X[1::2])
    np.testing.assert_allclose(np.sort(later.weights_), [1 / 3] * 3, atol=0.03)


def test_topics_come_back_and_shares_are_those_of_the_fit() -> None:
    phi = np.kron(np.eye(3), np.full(4, 0.25))
    shares = RNG.dirichlet([0.3] * 3, 60)
    counts = np.array([RNG.multinomial(50, p) for p in shares @ phi])
    model = models.TopicModel(3, tol=1e-6).fit(sparse.csr_array(counts))
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    order = [int(np.argmax(topics @ row)) for row in phi]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(topics[order], phi, atol=0.05)
    np.testing.assert_allclose(model.transform(counts), model.fit_.mean("theta"), atol=0.01)
    assert model.perplexity(counts) < 12
    later = model.partial_fit(counts[:5])
    assert later.components_.sum() == pytest.approx(65 * 50 + 12, rel=1e-6)


def test_factor_analysis_has_the_covariance_of_scikit_learn() -> None:
    X = RNG.normal(size=(300, 2)) @ RNG.normal(size=(2, 6)) * 3 + RNG.normal(size=(300, 6)) + 5
    model = models.FactorAnalysis(2).fit(X)
    theirs = decomposition.FactorAnalysis(2).fit(X)
    expected = theirs.get_covariance()
    np.testing.assert_allclose(model.get_covariance(), expected, atol=0.02 * np.abs(expected).max())
    assert model.score(X) == pytest.approx(theirs.score(X), abs=0.05)
    mine, other = model.transform(X), theirs.transform(X)
    fitted = np.linalg.lstsq(other, mine, rcond=None)[0]
    np.testing.assert_allclose(other @ fitted, mine, atol=0.25)


def school_frame() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(9)
    school = np.repeat([f"s{i:02}" for i in range(12)], 15)
    own = rng.normal(0, [2.0, 0.5], size=(12, 2))
    x = rng.normal(size=180)
    kind = np.tile(["a", "b", "c"], 60)
    effect = np.repeat(own, 15, axis=0)
    y = 1 + 2 * x + (kind == "b") + effect[:, 0] + effect[:, 1] * x + 0.3 * rng.normal(size=180)
    return pd.DataFrame({"y": y, "x": x, "kind": kind, "school": school}), own


def test_mixed_effects_from_a_formula() -> None:
    frame, own = school_frame()
    model = models.MixedEffects("y ~ x + kind", groups="school", random="1 + x").fit(frame)
    assert model.names_ == ["Intercept", "x", "kind[T.b]", "kind[T.c]"]
    effects = own - own.mean(axis=0)
    np.testing.assert_allclose(model.effects_ - model.effects_.mean(axis=0), effects, atol=0.5)
    np.testing.assert_allclose(model.coef_[2:], [1, 0], atol=0.2)
    assert model.score(frame, frame["y"]) > 0.95
    _, std = model.predict(frame.assign(school="new"), return_std=True)
    known, known_std = model.predict(frame, return_std=True)
    np.testing.assert_allclose(known, model.predict(frame), atol=1e-8)
    assert (std > known_std).all()
    assert std.mean() == pytest.approx(np.sqrt(4 + 0.25 + 0.09), rel=0.5)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(frame), model.predict(frame))


def test_mixed_effects_of_later_rows_and_new_groups() -> None:
    frame, _ = school_frame()
    first, later = frame[:120], frame[100:]
    model = models.MixedEffects("x + kind", groups="school").fit(first, first["y"])
    model.partial_fit(later, later["y"])
    assert len(model.groups_) == 12
    assert model.score(later, later["y"]) > 0.8
    with pytest.raises(ValueError, match="groups='school' is not a column"):
        model.predict(frame.drop(columns=["school", "y"]))
    with pytest.raises(ValueError, match="needs the column 'x' of X"):
        model.predict(frame.drop(columns="x"))


def test_columns_of_an_array_may_be_groups() -> None:
    X = np.column_stack([RNG.normal(size=60), np.repeat([1.0, 2.0, 7.0], 20)])
    y = X[:, 0] + X[:, 1]
    model = models.MixedEffects(groups=1).fit(X, y)
    assert model.groups_ == [1.0, 2.0, 7.0]
    assert model.score(X, y) > 0.99


def test_without_scikit_learn_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    for name in [n for n in sys.modules if n.startswith("svmp.models.estimators")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(svmp.ModelError, match=r'pip install "svmp\[sklearn\]"'):
        _ = models.BayesianRegression


@pytest.mark.parametrize(
    ("formula", "groups", "random"),
    [("y ~ x + (1 | g)", "g", "1"), ("y ~ (x | g) + x", "g", "x"), ("x + (0 + x|g)", "g", "0 + x")],
)
def test_formula_says_what_varies_by_group(formula: str, groups: str, random: str) -> None:
    frame = pd.DataFrame({"x": RNG.normal(size=30), "g": [*"abc"] * 10, "y": RNG.normal(size=30)})
    one = models.MixedEffects(formula).fit(frame, frame["y"])
    plain = "y ~ x" if "~" in formula else "x"
    two = models.MixedEffects(plain, groups=groups, random=random).fit(frame, frame["y"])
    np.testing.assert_array_equal(one.effects_, two.effects_)
    np.testing.assert_array_equal(one.predict(frame[:3]), two.predict(frame[:3]))


@pytest.mark.parametrize("formula", ["y ~ (1 | a) + (1 | b)", "y ~ x | g"])
def test_formula_with_other_bars_is_refused(formula: str) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0], "g": [0, 1]})
    with pytest.raises(ValueError, match=r"one column of groups|has a '\|' outside"):
        models.MixedEffects(formula).fit(frame)


@pytest.mark.parametrize(
    ("kind", "wrong", "says"),
    [
        (models.LogisticRegression, {"alpha": -1}, "a number above 0 as alpha, not -1"),
        (models.GaussianMixture, {"n_components": 0}, "of at least 1 as n_components, not 0"),
        (models.TopicModel, {"doc_topic_prior": "a"}, "as doc_topic_prior, not 'a'"),
        (models.FactorAnalysis, {"n_components": 1.5}, "a whole number of at least 1"),
        (models.BayesianRegression, {"tol": np.nan}, "a number of at least 0 as tol, not nan"),
        (models.MixedEffects, {"max_iter": None}, "as max_iter, not None"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(kind: Any, wrong: Any, says: str) -> None:
    X = np.abs(RNG.normal(size=(6, 2))).round()
    with pytest.raises(ValueError, match=f"{kind.__name__} needs .*{says}"):
        kind(**wrong).fit(X, [0, 1, 0, 1, 0, 1])


def test_topics_of_weights_are_those_of_rounded_counts() -> None:
    counts = RNG.poisson(2, (8, 5))
    with pytest.warns(UserWarning, match="rounds X to whole numbers"):
        found = models.TopicModel(2).fit(
            counts + RNG.uniform(-0.4, 0.4, counts.shape) * (counts > 0)
        )
    np.testing.assert_array_equal(found.components_, models.TopicModel(2).fit(counts).components_)


def test_columns_of_a_formula_are_checked() -> None:
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "g": list("aabb"), "y": [1.0, 2, 2, 5]})
    fitted = models.MixedEffects("y ~ np.log(x) + (1 | g)").fit(frame)
    assert fitted.score(frame) == fitted.score(frame, frame["y"])
    for formula, column, says in (
        ("y ~ z + (1 | g)", frame, "needs the column 'z' of X"),
        ("y ~ x", frame.assign(x=[1, None, 2, 3]), "column 'x' of X has missing values"),
        ("y ~ x + (", frame, "cannot read the formula"),
        ("g ~ x", frame, "'g' has categories or several columns"),
        ("y ~ x + (1 | g)", frame.assign(g=["a", "b", None, "a"]), "groups, 'g', has missing"),
    ):
        with pytest.raises(ValueError, match=says):
            models.MixedEffects(formula).fit(column)
    kinds = models.MixedEffects("y ~ g").fit(frame)
    with pytest.raises(ValueError, match="has the categories 'z', which the rows of the fit do"):
        kinds.predict(frame.assign(g="z"))
