"""Data frames in a model: the same fit from every library, and sentences about columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import svmp

TABLE = {
    "store": ["y", "x", "z", "x", "y"],
    "price": [1.0, 2.0, 0.5, 3.0, 1.5],
    "sales": [5.0, 9.0, None, 8.0, 4.0],
    "day": np.array(["2024-01-02", "2024-01-01"] * 2 + ["2024-01-02"], "M8[us]"),
}
FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "arrays": lambda t: {**t, "sales": np.array(t["sales"], dtype=float)},
}


@pytest.mark.parametrize("form", FRAMES)
def test_columns_are_dims_keys_covariates_and_observed_values(form: str) -> None:
    with svmp.Model(coords={"date": "day"}, data=FRAMES[form](TABLE)) as model:
        level = svmp.Normal("level", mu=0, tau=1, dims="store")
        shift = svmp.Normal("shift", mu=0, tau=1, dims="date")
        slope = svmp.Normal("slope", mu=0, tau=1)
        mean = level[model.data.store] + shift[model.data.day] + slope * model.data["price"]
        svmp.Normal("y", mu=mean, tau=1, observed="sales", missing=True)
    assert model.coords["store"] == ["x", "y", "z"]
    fit = svmp.fit(model, tol=1e-12)
    keep = [0, 1, 3, 4]
    store, day = np.array([1, 0, 2, 0, 1]), np.array([1, 0, 1, 0, 1])
    design = np.column_stack([np.eye(3)[store], np.eye(2)[day], TABLE["price"]])[keep]
    exact = np.linalg.solve(np.eye(6) + design.T @ design, design.T @ [5.0, 9.0, 8.0, 4.0])
    found = np.concatenate([fit.mean("level"), fit.mean("shift"), [fit.mean("slope")]])
    np.testing.assert_allclose(found, exact, atol=1e-5)


def test_categories_keep_their_order_and_those_without_rows() -> None:
    kinds = pd.CategoricalDtype(["z", "y", "x", "w"])
    frame = pd.DataFrame(TABLE).astype({"store": kinds})
    enum = pl.DataFrame(TABLE).with_columns(pl.col("store").cast(pl.Enum(["z", "y", "x", "w"])))
    for data in (frame, enum):
        model = svmp.Model(data=data, coords={"store": "store"})
        assert model.coords["store"] == ["z", "y", "x", "w"]
        assert model.data.keys("store").tolist() == [1, 2, 0, 2, 1]


def test_several_columns_are_a_design() -> None:
    data = svmp.Model(data=pd.DataFrame(TABLE)).data
    np.testing.assert_array_equal(data[["price", "price"]], np.array([TABLE["price"]] * 2).T)


def test_a_dim_of_the_same_name_in_coords_comes_first() -> None:
    assert svmp.Model(data=TABLE, coords={"store": 2}).coords["store"] == 2


WRONG: list[tuple[str, Callable[[svmp.Model], Any], str]] = [
    ("no column", lambda m: m.data["Price"], "no column 'Price'; .* did you mean 'price'?"),
    ("no attribute", lambda m: m.data.prise, "did you mean 'price'?"),
    ("no observed column", lambda m: svmp.Normal("r", 0, 1, observed="x"), "no column 'x'"),
    ("text observed", lambda m: svmp.Normal("r", 0, 1, observed="store"), "not numbers, but 'y'"),
    ("missing observed", lambda m: svmp.Normal("r", 0, 1, observed="sales"), "missing=True"),
    ("missing covariate", lambda m: svmp.Normal("b", 0, 1) * m.data.sales, "'b': it holds NaN"),
    ("column for a label", lambda m: svmp.Normal("u", 0, 1, dims="store")["store"],
     r"the name of a column and no label; its values are model.data\['store'\]"),
    ("dim misspelled", lambda m: svmp.Normal("u", 0, 1, dims="stor"), "did you mean 'store'?"),
    ("dim with gaps", lambda m: svmp.Normal("u", 0, 1, dims="gaps"), "row 2: there is no 'gaps'"),
    ("text in a mean", lambda m: svmp.Normal("b", 0, 1) * m.data.store, "labels are keys"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "says"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_columns_are_refused_with_a_sentence(
    use: Callable[[svmp.Model], Any], says: str
) -> None:
    frame = pd.DataFrame({**TABLE, "gaps": ["a", None, "b", "c", "d"]})
    with svmp.Model(data=frame) as model, pytest.raises(svmp.ModelError, match=says):
        use(model)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (3, "must be a data frame in memory .* not 3"),
        (np.ones((2, 2)), "not an array of shape"),
        (pl.LazyFrame({"a": [1]}), "a LazyFrame; collect it first"),
        ({"a": [1, 2], "b": [1]}, "differ in length: 'a' 2, 'b' 1"),
        ({"a": 1}, r"'a' has shape \(\)"),
        ({"a": [[1], [1, 2]]}, "no array with one value a row"),
        (pd.DataFrame({1: [2]}), "must be a string, not 1"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns have the same name"),
    ],
    ids=["number", "array", "lazy", "lengths", "scalar", "ragged", "names", "twice"],
)
def test_what_is_no_table_is_refused(data: Any, says: str) -> None:
    with pytest.raises(svmp.ModelError, match=says):
        svmp.Model(data=data)


def test_a_model_without_data_says_how_to_give_some() -> None:
    with pytest.raises(svmp.ModelError, match=r"svmp.Model\(data=frame\)"):
        _ = svmp.Model().data


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1.0, None, 3.0]),
        pd.Series([True, None, True], dtype="boolean").astype(object) * np.array([1, 1, 3]),
        pl.Series([1, None, 3]),
        pl.Series(["1", None, "3"]).cast(pl.Decimal(5, 1)),
        pa.chunked_array([[1, None], [3]]),
    ],
    ids=["Int64", "pandas", "object", "polars", "decimal", "pyarrow"],
)
def test_series_of_every_library_are_observed_values(values: Any) -> None:
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("y", mu=mu, tau=1, observed=values, missing=True)
    assert svmp.fit(model).mean("mu") == pytest.approx(4 / 3)


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow"])
def test_times_keep_their_time_zone(form: str) -> None:
    """Midnight in Berlin is not the day before, on either side of the change of clocks."""
    times = pd.date_range("2024-03-30", periods=3, tz="Europe/Berlin").to_pydatetime().tolist()
    if form == "pyarrow":
        zoned: Any = pa.array(times, type=pa.timestamp("us", tz="Europe/Berlin"))
    else:
        zoned = times
    with svmp.Model(data=FRAMES[form]({"at": zoned, "y": [1.0, 2.0, 3.0]})) as model:
        level = svmp.Normal("level", mu=0, tau=1, dims="at")
        svmp.Normal("y", mu=level[model.data.at], tau=1, observed="y")
    labels = model.coords["at"]
    assert [t.isoformat() for t in labels] == [t.isoformat() for t in times]  # type: ignore[union-attr]
    assert svmp.fit(model).mean("level").tolist() == [0.5, 1.0, 1.5]


def test_numbers_of_any_kind_are_labels() -> None:
    """Doses are labels as ids are; whole numbers in floats are whole."""
    for dose, labels in (([0.1, 0.5, 0.1], [0.1, 0.5]), ([3.0, 1.0, 3.0], [1, 3])):
        with svmp.Model(data={"dose": dose, "y": [1.0, 2.0, 2.0]}) as model:
            level = svmp.Normal("level", mu=0, tau=1, dims="dose")
            svmp.Normal("y", mu=level[model.data.dose], tau=1, observed="y")
        assert model.coords["dose"] == labels
        np.testing.assert_allclose(svmp.fit(model).mean("level"), 1.0)  # 3 / (2 + 1), 2 / (1 + 1)


def test_a_frame_without_rows_is_refused() -> None:
    with pytest.raises(svmp.ModelError, match="the data have no rows"):
        svmp.Model(data=pd.DataFrame({"y": [], "g": []}))


def test_coords_of_a_column_are_known_before_a_variable_has_them() -> None:
    """So that an array by group can be put into the order of the groups."""
    with svmp.Model(data=pd.DataFrame(TABLE)) as model:
        assert model.coords["store"] == ["x", "y", "z"]
        assert list(model.coords) == []
        assert "store" not in model.coords
        with pytest.raises(KeyError, match="no dimension 'shop'"):
            model.coords["shop"]
