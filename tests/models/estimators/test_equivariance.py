"""Estimators in other units: rescaled and shifted columns or targets change the units alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svmp import models
from svmp.families.family import Array

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 1.0]])
Y = X @ [1.0, -0.5, 0.0] + 2 + 0.5 * RNG.normal(size=60)
LABEL = np.where(Y > 2.5, "high", np.where(Y > 1, "middle", "low"))
GROUP = np.repeat([f"g{i}" for i in range(12)], 5)
OWN = np.repeat(RNG.normal(size=(12, 2)) * [1.0, 0.7], 5, axis=0)
CLUSTER = X + 6 * np.eye(3)[np.arange(60) % 3]
CLOSE = 1e-5

scales = st.lists(st.integers(-6, 6), min_size=4, max_size=4).map(lambda e: 10.0 ** np.array(e))
shifts = st.lists(st.floats(-1e4, 1e4), min_size=4, max_size=4).map(np.array)
units = st.tuples(scales, shifts, st.sampled_from([1, -1]))
"""Scale of three columns and the target, their shifts in the new units, and a sign of a column."""


def changed(values: Array, scale: Any, shift: Any) -> Array:
    """Return values in other units; the shift is a multiple of the scale."""
    return np.asarray(values * scale + shift * scale)


def close(found: Any, expected: Any) -> None:
    """Compare numbers of one unit."""
    expected = np.asarray(expected)
    size = float(np.abs(expected).max(initial=0.0)) or 1.0
    np.testing.assert_allclose(found, expected, rtol=CLOSE, atol=CLOSE * size)


def check_regression(make: Callable[[], Any], scale: Array, shift: Array) -> None:
    before = make().fit(X, Y)
    after = make().fit(changed(X, scale[:3], shift[:3]), changed(Y, scale[3], shift[3]))
    close(after.coef_[-3:] * scale[:3] / scale[3], before.coef_[-3:])
    slopes = after.sigma_[1:, 1:] * np.outer(scale[:3], scale[:3]) / scale[3] ** 2
    close(slopes, before.sigma_[1:, 1:])
    new = X[:5] + 1
    mean, std = before.predict(new, return_std=True)
    other, other_std = after.predict(changed(new, scale[:3], shift[:3]), return_std=True)
    close(other / scale[3] - shift[3], mean)
    close(other_std / scale[3], std)


@settings(max_examples=5, deadline=None)
@given(units)
def test_bayesian_regression(unit: Any) -> None:
    scale, shift, sign = unit
    check_regression(lambda: models.BayesianRegression(tol=1e-10), scale * [sign, 1, 1, 1], shift)


@settings(max_examples=5, deadline=None)
@given(units)
def test_bayesian_regression_without_an_intercept_has_scales_alone(unit: Any) -> None:
    scale, _, sign = unit
    scale = scale * [sign, 1, 1, 1]
    model = models.BayesianRegression(fit_intercept=False, tol=1e-10)
    before = model.fit(X, Y).coef_
    close(model.fit(X * scale[:3], Y * scale[3]).coef_ * scale[:3] / scale[3], before)


@settings(max_examples=5, deadline=None)
@given(units)
def test_mixed_effects_of_an_array(unit: Any) -> None:
    scale, shift, sign = unit
    check_regression(lambda: models.MixedEffects(tol=1e-10), scale * [sign, 1, 1, 1], shift)


def slopes_by_group(scale: Array, shift: Array, formula: str) -> models.MixedEffects:
    y = Y + OWN[:, 0] + OWN[:, 1] * X[:, 0]
    frame = pd.DataFrame(changed(X, scale[:3], shift[:3]), columns=["a", "b", "c"])
    frame = frame.assign(y=changed(y, scale[3], shift[3]), group=GROUP)
    return models.MixedEffects(formula, tol=1e-10).fit(frame)


@pytest.mark.parametrize(
    "formula", ["y ~ a * b + c + (a | group)", "y ~ b + (1 | group)", "y ~ a + (0 + a | group)"]
)
@settings(max_examples=4, deadline=None)
@given(unit=units)
def test_mixed_effects_of_a_formula(formula: str, unit: Any) -> None:
    """With "0 + a" the shift of a is another model, and in a product a shift has few digits."""
    scale, shift, _ = unit
    shift = np.clip(shift, -10, 10) if "*" in formula else shift
    shift = shift * [0, 1, 1, 1] if "0 +" in formula else shift
    one = np.ones(4)
    before, after = slopes_by_group(one, 0 * one, formula), slopes_by_group(scale, shift, formula)
    rows = pd.DataFrame(X[:6] + 0.5, columns=["a", "b", "c"]).assign(group=[*GROUP[::20], *"new"])
    other = rows.assign(**{c: changed(rows[c], scale[i], shift[i]) for i, c in enumerate("abc")})
    (mean, std), (other_mean, other_std) = (
        m.predict(r, return_std=True) for m, r in ((before, rows), (after, other))
    )
    close(other_mean / scale[3] - shift[3], mean)
    close(other_std / scale[3], std)
    close(after.noise_variance_ / scale[3] ** 2, before.noise_variance_)
    column = {"(a": np.array([1, scale[0]]), "(0": scale[0], "(1": 1.0}
    own = scale[3] / next(size for start, size in column.items() if start in formula)
    if shift[0] == 0 or "(1" in formula:
        close(after.effects_ / own, before.effects_)
        close(after.covariance_ / own / np.reshape(own, (-1, 1)), before.covariance_)
    else:
        close(after.effects_[:, 1] / own[1], before.effects_[:, 1])
        close(after.covariance_[1, 1] / own[1] ** 2, before.covariance_[1, 1])


@pytest.mark.parametrize("target", [LABEL, LABEL == "low"], ids=["three", "two"])
@settings(max_examples=4, deadline=None)
@given(unit=units)
def test_logistic_regression(target: Array, unit: Any) -> None:
    scale, shift, sign = unit
    scale = scale * [sign, 1, 1, 1]
    before = models.LogisticRegression(tol=1e-8).fit(X, target)
    after = models.LogisticRegression(tol=1e-8).fit(changed(X, scale[:3], shift[:3]), target)
    close(after.coef_ * scale[:3], before.coef_)
    close(after.predict_proba(changed(X, scale[:3], shift[:3])), before.predict_proba(X))


@settings(max_examples=5, deadline=None)
@given(units)
def test_gaussian_mixture(unit: Any) -> None:
    scale, shift = unit[0][:3], unit[1][:3]
    before = models.GaussianMixture(3, tol=1e-9).fit(CLUSTER)
    rows = changed(CLUSTER, scale, shift)
    after = models.GaussianMixture(3, tol=1e-9).fit(rows)
    close(after.weights_, before.weights_)
    close(after.means_ / scale - shift, before.means_)
    close(after.covariances_ / scale[:, None] / scale, before.covariances_)
    close(after.precisions_ * scale[:, None] * scale, before.precisions_)
    close(after.predict_proba(rows), before.predict_proba(CLUSTER))
    close(after.score(rows) + np.log(scale).sum(), before.score(CLUSTER))


@settings(max_examples=5, deadline=None)
@given(units)
def test_factor_analysis(unit: Any) -> None:
    scale, shift = unit[0][:3], unit[1][:3]
    before = models.FactorAnalysis(tol=1e-9).fit(X)
    rows = changed(X, scale, shift)
    after = models.FactorAnalysis(tol=1e-9).fit(rows)
    close(after.components_ / scale, before.components_)
    close(after.noise_variance_ / scale**2, before.noise_variance_)
    close(after.mean_ / scale - shift, before.mean_)
    close(after.transform(rows), before.transform(X))
    close(after.score(rows) + np.log(scale).sum(), before.score(X))


def test_topics_have_no_units_but_count_types() -> None:
    counts = RNG.poisson(2, (12, 6))
    before = models.TopicModel(2).fit(counts).components_
    for kind in (np.float32, np.uint8):
        np.testing.assert_array_equal(
            models.TopicModel(2).fit(counts.astype(kind)).components_, before
        )
