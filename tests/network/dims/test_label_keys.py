"""Keys that are labels: the places that pandas finds, and sentences for those that are none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import svmp
from svmp.network.dims.labels import LabelIndex
from svmp.network.grid import Labelled

DAYS = st.dates(date(1900, 1, 1), date(2100, 1, 1))
TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))
LABELS = (
    st.lists(st.text(max_size=4), min_size=1, max_size=8, unique=True)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8, unique=True)
    | st.lists(st.integers(-3, 9), min_size=1, max_size=8, unique=True)
    | st.lists(st.floats(allow_nan=False), min_size=1, max_size=8, unique=True)
    | st.lists(DAYS, min_size=1, max_size=8, unique=True)
    | st.lists(TIMES, min_size=1, max_size=8, unique=True)
    | st.lists(st.tuples(st.text(max_size=2), st.integers(0, 3)), min_size=1, unique=True)
)
FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "array": lambda x: np.array(x, dtype=object if isinstance(x[0], str) else None),
    "pandas": pd.Series,
    "index": pd.Index,
    "categories": lambda x: pd.Series(pd.Categorical(x)),
    "polars": lambda x: pl.Series(x, strict=False),
    "pyarrow": pa.array,
}


def places(expression: Any) -> list[Any]:
    """Return the places along each axis of an indexed variable."""
    (term,) = expression.terms
    return [i.values.tolist() if isinstance(i, Labelled) else i for i in term.operands[0].index]


def variable(labels: Any, dim: str = "user") -> svmp.Variable:
    with svmp.Model(coords={dim: labels}):
        return svmp.Normal("u", mu=0, tau=1, dims=dim)


@settings(max_examples=50)
@given(LABELS, st.data())
def test_labels_are_read_as_their_places(labels: list[Any], data: st.DataObject) -> None:
    u = variable(labels)
    at = data.draw(st.lists(st.integers(0, len(labels) - 1), min_size=1, max_size=10))
    keys = [labels[i] for i in at]
    form = "list" if isinstance(labels[0], tuple) else data.draw(st.sampled_from(sorted(FORMS)))
    assert places(u.loc[FORMS[form](keys)]) == [at]
    assert places(u.loc[keys[0]]) == [at[0]]
    assert places(u.iloc[at]) == [at]
    if not LabelIndex(labels).numeric:
        assert places(u[keys]) == [at]
        assert places(u[at]) == [at]


@settings(max_examples=50)
@given(st.lists(st.integers(-3, 9), min_size=1, max_size=8, unique=True), st.data())
def test_whole_numbers_are_never_misread(labels: list[int], data: st.DataObject) -> None:
    """Keys that are all labels, or all places, are read as such, or refused if both."""
    u, size = variable(labels), len(labels)
    at = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=10))
    for keys in ([labels[i] for i in at], at):
        both = all(k in labels for k in keys) and all(0 <= k < size for k in keys)
        if both and [labels.index(k) for k in keys] != keys:
            with pytest.raises(svmp.ModelError, match=r"u.loc\[...\] for labels, or u.iloc"):
                _ = u[keys]
        else:
            assert places(u[keys]) == [at]
    every, ascending = list(range(size)), sorted(labels)
    u = variable(ascending)
    assert places(u[ascending]) == places(u[every]) == [every]


@settings(max_examples=50)
@given(LABELS, st.data())
def test_slices_of_labels_are_those_of_pandas(labels: list[Any], data: st.DataObject) -> None:
    u = variable(labels)
    first, last = sorted(data.draw(st.integers(0, len(labels) - 1)) for _ in range(2))
    assert places(u.loc[labels[first] : labels[last]]) == [list(range(first, last + 1))]
    assert places(u.loc[labels[first] :]) == [list(range(first, len(labels)))]
    if all(isinstance(label, str) for label in labels):
        by_place = pd.Series(range(len(labels)), index=labels)
        assert places(u[: labels[last]]) == [by_place.loc[: labels[last]].tolist()]


@settings(max_examples=50)
@given(
    st.integers(1, 6),
    st.integers(-7, 7) | st.none(),
    st.integers(-7, 7) | st.none(),
    st.integers(-3, 3).filter(bool) | st.none(),
)
def test_slices_of_places_are_those_of_python(
    size: int, start: int | None, stop: int | None, step: int | None
) -> None:
    expected = list(range(size))[start:stop:step]
    for labels in (size, [f"n{i}" for i in range(size)]):
        u = variable(labels)
        if expected and (start, stop, step) != (None, None, None):
            assert places(u[start:stop:step]) == [expected]
        elif not expected:
            with pytest.raises(svmp.ModelError, match="selects no element"):
                _ = u[start:stop:step]


def test_masks_negative_places_and_several_dims() -> None:
    with svmp.Model(coords={"user": ["a", "b", "c"], "year": [1999, 2000]}):
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "year"))
    assert places(u["b", 2000]) == [1, 1]
    assert places(u["b"]) == [1, "year"]
    assert places(u[-1, -1]) == [2, 1]
    assert places(u[:, 1999:2000]) == ["user", [0, 1]]
    assert places(u[:, 1:]) == ["user", [1]]
    assert places(u[[True, False, True], 0]) == [[0, 2], 0]
    assert places(u[pd.Series(["c", "a"]), np.array([2000, 1999])]) == [[2, 0], [1, 0]]
    assert places(u[[["a", "b"], ["c", "a"]]]) == [[[0, 1], [2, 0]], "year"]
    named = u[svmp.data(["c", "a"], dims="row")].terms[0].operands[0].index[0]
    assert named.axes == ("row",)
    assert named.values.tolist() == [2, 0]


def test_a_tuple_can_be_a_label() -> None:
    u = variable([("a", 1), ("b", 2)])
    assert places(u["b", 2]) == [1]
    assert places(u[[("b", 2), ("a", 1)]]) == [[1, 0]]
    assert places(u[pd.MultiIndex.from_tuples([("b", 2)])]) == [[1]]


def test_a_date_is_the_time_at_its_midnight() -> None:
    days = [date(2024, 2, 29), date(2024, 3, 1)]
    for labels in (days, np.array(days, "M8[ns]"), pd.to_datetime(pd.Series(days))):
        u = variable(labels, "day")
        for key in (days[1], datetime(2024, 3, 1), np.datetime64("2024-03-01", "ns")):
            assert places(u[key]) == [1]
        with pytest.raises(svmp.ModelError, match=r"2024, 3, 1, 0, 0, 1\), which is no label"):
            _ = u[datetime(2024, 3, 1, 0, 0, 1)]
        with pytest.raises(svmp.ModelError, match="no label"):
            _ = u[np.datetime64("2024-03-01T00:00:00.000000001", "ns")]


def test_times_with_a_zone_are_compared_as_moments() -> None:
    utc, east = UTC, timezone(timedelta(hours=2))
    u = variable([datetime(2024, 1, 1, 12, tzinfo=utc), datetime(2024, 1, 2, tzinfo=utc)])
    assert places(u[[datetime(2024, 1, 1, 14, tzinfo=east)]]) == [[0]]
    assert places(u[pd.Series(pd.to_datetime(["2024-01-02"], utc=True))]) == [[1]]


def test_boolean_labels_are_labels() -> None:
    assert places(variable([True, False])[[False, True, True]]) == [[1, 0, 0]]


NAMES = ["alice", "bob", "carol"]
IDS = [1, 2, 3, 4]
WRONG: list[tuple[str, Any, Callable[[svmp.Variable], Any], str]] = [
    ("unknown", NAMES, lambda u: u["dave"], "'dave', which is no label; labels are 'alice', 'bob'"),
    ("misspelled", NAMES, lambda u: u["alise"], "did you mean 'alice'?"),
    ("another case", NAMES, lambda u: u[["bob", "Alice "]], "at 1, .* did you mean 'alice'?"),
    ("several unknown", NAMES, lambda u: u[["x", "bob", "y"]], "2 of the 3 keys are none"),
    ("missing", NAMES, lambda u: u[["bob", None]], "is missing at 1; leave out rows without a key"),
    ("missing, pandas", NAMES, lambda u: u[pd.Series(["bob", None])], "is missing at 1"),
    ("text for a number", IDS, lambda u: u["2"], "did you mean 2, of the type int?"),
    ("number as text", ["7", "9"], lambda u: u[[7]], "did you mean '7', of the type str?"),
    ("text for a date", [date(2024, 1, 2)], lambda u: u["2024-01-02"], "of the type date?"),
    ("neither", IDS, lambda u: u[[7, 9]], "7 at 0, which is no label nor a place"),
    ("ambiguous", IDS, lambda u: u[2], "2, which may be a label or a place; write u.loc"),
    ("ambiguous slice", IDS, lambda u: u[1:3], "slice of numbers, which may be labels or places"),
    ("code of missing", NAMES, lambda u: u[[0, -1]], "in a column of codes -1 means missing"),
    ("fraction", NAMES, lambda u: u[0.5], "must be whole numbers"),
    ("missing number", IDS, lambda u: u[[1.0, np.nan]], "is missing at 1"),
    ("mixed", NAMES, lambda u: u[["bob", 1]], "holds 1 at 1, which is no label"),
    ("labels without coords", 3, lambda u: u[["a"]], 'as coords={"user": names}'),
    ("loc without labels", 3, lambda u: u.loc[0], "has no labels; give them in the model's coords"),
    ("iloc of labels", NAMES, lambda u: u.iloc["bob"], r"labels are read by x.loc\[...\]"),
    ("slice from nowhere", NAMES, lambda u: u["dave":], "'dave', which is no label"),
    ("step of text", NAMES, lambda u: u["bob"::"x"], "the step 'x'"),
    ("several indices", NAMES, lambda u: u["bob", "carol"], r"give a list, as x\[\[...\]\]"),
    ("no such tuple", [("a", 1), ("b", 2)], lambda u: u["a", 2], r"\('a', 2\), which is no label"),
    ("xarray", NAMES, lambda u: u.sel(user="bob"), r"labels are read by x\[label\]"),
    ("arithmetic", NAMES, lambda u: u * svmp.data(["a"], dims="row"), "holds labels, which are"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "use", "says"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_wrong_keys_are_refused_with_a_sentence(
    labels: Any, use: Callable[[svmp.Variable], Any], says: str
) -> None:
    with pytest.raises(svmp.ModelError, match=says) as caught:
        use(variable(labels))
    assert "'u'" in str(caught.value)


@pytest.mark.parametrize("labels", [["a", None], [1.5, float("nan")], pd.Series(["a", None])])
def test_missing_labels_are_refused(labels: Any) -> None:
    with pytest.raises(svmp.ModelError, match="'user' has no label at 1"):
        svmp.Model(coords={"user": labels})


def test_labels_in_a_set_are_refused() -> None:
    with pytest.raises(svmp.ModelError, match="'user' has its labels in a set, which has no order"):
        svmp.Model(coords={"user": {"a", "b"}})


def test_a_fit_by_labels_is_the_fit_by_places() -> None:
    rng = np.random.default_rng(0)
    names = np.array(["b", "a", "c"])
    at, y = rng.integers(0, 3, 20), rng.normal(size=20)

    def fitted(key: Any) -> svmp.Fit:
        with svmp.Model(coords={"user": names}) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims="user")
            svmp.Normal("y", mu=u[key], tau=1, observed=y)
        assert model.coords["user"] == ["b", "a", "c"]
        assert dict(model.coords) == {"user": ["b", "a", "c"], "y_dim_0": 20}
        return svmp.fit(model)

    by_place, by_label = fitted(at), fitted(names[at])
    np.testing.assert_array_equal(by_place.mean("u"), by_label.mean("u"))
    exact = pd.Series(y).groupby(names[at]).agg(lambda x: x.sum() / (1 + len(x)))
    np.testing.assert_allclose(by_label.mean("u"), exact.loc[names])


def test_observed_categories_may_be_labels() -> None:
    words = pd.Series(["cat", "dog", "cat", None])
    with svmp.Model(coords={"word": ["dog", "cat", "eel"]}) as model:
        p = svmp.Dirichlet("p", a=1, dims="word")
        svmp.Categorical("w", p=p, observed=words, missing=True)
    np.testing.assert_array_equal(svmp.fit(model)["p"].a, [2, 3, 1])
    with model, pytest.raises(svmp.ModelError, match="'cow' at 0, which is no label"):
        svmp.Categorical("v", p=p, observed=["cow"])
    with model, pytest.raises(svmp.ModelError, match="names of categories"):
        svmp.Categorical("v", p=[0.5, 0.5], observed=["cow"])
    with model, pytest.raises(svmp.ModelError, match="missing=True"):
        svmp.Categorical("v", p=p, observed=words)


def test_many_texts_are_found_by_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svmp.network.dims.texts.MANY", 2)
    keys = np.array([["c", "a"], ["z", "\u00e9"]])
    labels = ["a", "\u00e9", "c", ""]
    found = LabelIndex(labels).find(keys)
    assert found.tolist() == [[2, 0], [-1, 1]]
    monkeypatch.setattr("svmp.network.dims.texts.find_spec", lambda name: None)
    assert np.array_equal(LabelIndex(labels).find(keys), found)
    assert LabelIndex(["a", "\ud800", "b"]).find(np.array(["b"], dtype=object)).tolist() == [2]
