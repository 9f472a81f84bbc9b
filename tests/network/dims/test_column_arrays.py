"""`with_data` of a model on a data frame: the network that would be declared on the new rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import svmp

pytestmark = pytest.mark.by_size

LEVELS = {"subject": ["a", "b", "c"]}


def table(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "days": rng.uniform(0, 9, rows),
            "subject": rng.choice(LEVELS["subject"], rows),
            "reaction": rng.normal(size=rows),
        }
    )


Columns = Callable[[Any], Any]
COLUMNS: dict[str, Columns] = {
    "column": lambda d: d.days,
    "item": lambda d: d["days"],
    "arithmetic": lambda d: (d.days - 4.5) / 3 + 1,
    "ufunc": lambda d: np.log1p(d.days) * d["days"] ** 2,
    "comparison": lambda d: (d.subject == "a").astype(float) * d.days,
    "where": lambda d: np.where(d.days > 4, d.days, 0.0),
    "clip": lambda d: np.clip(d.days, 1.0, 5.0),
}


def declare(data: Any, column: Columns, observed: bool = True) -> svmp.Model:
    with svmp.Model(coords={**LEVELS, "row": len(data)}, data=data) as model:
        b = svmp.Normal("b", mu=0, tau=1)
        w = svmp.Normal("w", mu=0, tau=1, dims="w")
        u = svmp.Normal("u", mu=0, tau=1, dims="subject")
        design = np.column_stack([model.data.days, np.sqrt(model.data.days)])
        mean = b * column(model.data) + u[model.data.subject] + svmp.dot(design, w)
        values = model.data.reaction if observed else None
        svmp.Normal("y", mu=mean, tau=1, dims="row", observed=values)
    return model


@pytest.fixture(autouse=True)
def two_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LEVELS, "w", ["linear", "root"])


@pytest.mark.parametrize("name", COLUMNS)
def test_new_columns_give_the_fit_of_a_new_declaration(name: str) -> None:
    before, now = table(12, 0), table(5, 1)
    other = declare(before, COLUMNS[name]).with_data(
        days=now.days, subject=now.subject, y=now.reaction
    )
    found = svmp.fit(other, svmp.FullVB())
    truth = svmp.fit(declare(now, COLUMNS[name]), svmp.FullVB())
    assert found.bound == truth.bound
    for variable in truth.posteriors:
        np.testing.assert_array_equal(found[variable].natural, truth[variable].natural)


def test_new_columns_predict_new_rows() -> None:
    before, now = table(12, 0), table(5, 1)
    model = declare(before, COLUMNS["arithmetic"])
    fit = svmp.fit(model)
    other = model.with_data(days=list(now.days), subject=list(now.subject), y=None)
    expected = fit.predict(declare(now, COLUMNS["arithmetic"], observed=False), "y")
    np.testing.assert_allclose(fit.predict(other, "y").mean, expected.mean, rtol=1e-12)


def test_a_mean_over_rows_stays_that_of_the_first_data() -> None:
    before, now = table(12, 0), table(5, 1)
    centred = declare(before, lambda d: d.days - d.days.mean())
    other = centred.with_data(days=now.days, subject=now.subject, y=now.reaction)
    centre = before.days.mean()
    truth = declare(now, lambda d: d.days - centre)
    assert svmp.fit(other).bound == pytest.approx(svmp.fit(truth).bound, rel=1e-12)


def test_the_new_model_has_the_new_columns() -> None:
    before, now = table(12, 0), table(5, 1)
    other = declare(before, COLUMNS["column"]).with_data(
        days=now.days, subject=now.subject, y=now.reaction
    )
    assert list(other.data) == ["days", "subject"]
    np.testing.assert_array_equal(other.data.days, now.days)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        (lambda d: np.sort(d.days), {"days": np.ones(12)}, "cannot be computed anew; name it"),
        (lambda d: d.days.reshape(-1), {"days": np.ones(12)}, "computed from 'days' cannot be"),
        (lambda d: d.days[:12] * 1, {"days": np.ones(12)}, "computed from 'days' cannot be"),
        (lambda d: d.days, {"days": 3.0}, r"'days' has shape \(\)"),
        (lambda d: d.days, {"days": np.ones(4), "subject": ["a"]}, "'days' 4, 'subject' 1"),
        (lambda d: d.days, {"days": np.ones(4), "y": None}, "'row' has another size.*'subject'"),
        (lambda d: d.days, {"day": np.ones(4)}, r"nothing is named 'day'; there are \['days', "),
        (lambda d: (d.subject == "a") * d.days, {"days": np.ones(4)}, "needs subject= too"),
    ],
)
def test_what_cannot_be_computed_anew_is_refused(
    column: Columns, values: dict[str, Any], message: str
) -> None:
    model = declare(table(12, 0), column)
    with pytest.raises(svmp.ModelError, match=message) as caught:
        model.with_data(**values)
    assert "\n" not in str(caught.value)


def test_a_column_is_an_array_like_any_other() -> None:
    frame = table(12, 0)
    with svmp.Model(data=frame) as model:
        days = model.data.days
    assert isinstance(days, np.ndarray)
    assert repr(days[:2]) == repr(frame.days.to_numpy()[:2])
    assert type(days.mean()) is np.float64
    assert (days > 3).sum() == (frame.days > 3).sum()
    np.testing.assert_array_equal(np.concatenate([days, days]), np.tile(frame.days, 2))
    np.testing.assert_array_equal(pd.Series(days), frame.days)
    assert not days.flags.writeable
