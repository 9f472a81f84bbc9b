"""Predictions through covariates that are observed in part, in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp

pytestmark = pytest.mark.by_size


def declare(x: Any, y: Any = None) -> svmp.Model:
    with svmp.Model(coords={"row": len(x)}) as model:
        m = svmp.Normal("m", mu=0, tau=0.1)
        x = svmp.Normal("x", mu=m, tau=2, dims="row", observed=x, missing=True)
        b = svmp.Normal("b", mu=0, tau=0.1)
        svmp.Normal("y", mu=b * x, tau=4, dims="row", observed=y)
    return model


def test_missing_covariates_of_new_rows_are_drawn_and_others_are_read() -> None:
    fit = svmp.fit(declare([1.0, 2.0, np.nan, -1.0], [2.1, 3.9, 1.0, -2.0]), svmp.FullVB())
    m, b = fit.posteriors["m"], fit.posteriors["b"]
    found = fit.predict(declare([3.0, np.nan]), "y", corrected=False)
    assert found.mean[0] == pytest.approx(3 * b.mean)
    assert found.var[0] == pytest.approx(9 * b.var + 0.25)
    square = m.mean**2 + m.var + 0.5
    assert found.mean[1] == pytest.approx(b.mean * m.mean)
    second = (b.mean**2 + b.var) * square
    assert found.var[1] == pytest.approx(second - found.mean[1] ** 2 + 0.25)
    draws = found.draw(2000, seed=0)
    np.testing.assert_allclose(draws.std(axis=0), found.std, rtol=0.1)
    whole = fit.predict(declare([3.0, 1.0]), "y", corrected=False)  # nothing is missing
    assert whole.var[0] == pytest.approx(found.var[0])


def test_imputed_covariates_have_their_q() -> None:
    model = declare([1.0, 2.0, np.nan, -1.0], [2.1, 3.9, 1.0, -2.0])
    fit = svmp.fit(model, svmp.FullVB())
    found = fit.predict(model, "y", noise=False, corrected=False)
    q, b = fit.posteriors["x"], fit.posteriors["b"]
    assert found.mean[2] == pytest.approx(b.mean * q.mean[2])
    second = (q.var[2] + q.mean[2] ** 2) * (b.var + b.mean**2)
    assert found.var[2] == pytest.approx(second - found.mean[2] ** 2)


def test_replaced_data_keep_what_is_observed_in_part() -> None:
    model = declare([1.0, 2.0, np.nan, -1.0], [2.1, 3.9, 1.0, -2.0])
    other = model.with_data(y=[1.0, 1.0, 1.0, 1.0])
    truth = svmp.fit(declare([1.0, 2.0, np.nan, -1.0], np.ones(4)), svmp.FullVB())
    assert svmp.fit(other, svmp.FullVB()).bound == truth.bound
    other = model.with_data(x=[1.0, 2.0, 3.0, -1.0])
    truth = svmp.fit(declare([1.0, 2.0, 3.0, -1.0], [2.1, 3.9, 1.0, -2.0]), svmp.FullVB())
    assert svmp.fit(other, svmp.FullVB()).bound == truth.bound
