"""`Columns`: labels and keys reproduce the column, and missing keys are refused by row."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svmp.errors import ModelError
from svmp.network.dims.data_columns import Columns

WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)


@given(st.lists(WHOLE) | st.lists(st.text(max_size=3)) | st.lists(st.booleans()))
def test_labels_and_keys_reproduce_a_column(values: list[Any]) -> None:
    kind = object if values and isinstance(values[0], str) else None
    part = Columns({"id": np.array(values, kind)})
    labels, keys = part.labels("id").tolist(), part.keys("id")
    assert labels == sorted(set(values))
    assert [labels[key] for key in keys] == values


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint16, np.uint64, np.float32, "U5"])
def test_labels_of_every_type(kind: Any) -> None:
    part = Columns({"id": np.array([30, 5, 30, 100], kind)})
    assert part.labels("id")[part.keys("id")].tolist() == np.array([30, 5, 30, 100], kind).tolist()


def test_labels_above_the_range_of_int64() -> None:
    part = Columns({"id": np.array([2**64 - 1, 3], np.uint64)})
    assert part.labels("id").tolist() == [3, 2**64 - 1]


def test_columns_are_read_by_name_and_as_attributes() -> None:
    part = Columns({"user": [1, 2], "my rating": [0.5, 1.5], "keys": [7, 8]})
    assert part.user is part["user"]
    assert part["my rating"].tolist() == [0.5, 1.5]
    assert part["keys"].tolist() == [7, 8]  # the method keeps its name
    assert part.keys("user").tolist() == [0, 1]
    assert (len(part), "user" in part, list(part)) == (2, True, ["user", "my rating", "keys"])
    with pytest.raises(ModelError, match="there is no column 'item'; there are 'user', 'my rat"):
        part["item"]
    with pytest.raises(AttributeError, match="there is no column 'item'"):
        _ = part.item
    with pytest.raises(ValueError, match="read-only"):
        part.user[0] = 3


def test_columns_can_be_sent_to_another_process() -> None:
    part = Columns({"user": np.array(["b", "a"], object)}, "a.parquet")
    again = pickle.loads(pickle.dumps(part))
    assert (again.name, again.user.tolist()) == ("a.parquet", ["b", "a"])
    assert again.labels("user").tolist() == ["a", "b"]


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.0, 2.0, np.nan]),
        np.array(["a", "b", None], object),
        np.array(["2020-01-01", "2020-01-02", "NaT"], "M8[D]"),
    ],
)
def test_missing_keys_are_refused_with_their_row(values: Any) -> None:
    part = Columns({"user": values}, "a.parquet")
    with pytest.raises(ModelError, match=r"a\.parquet, row 3: there is no 'user'"):
        part.keys("user")


def test_unfit_columns_are_refused() -> None:
    with pytest.raises(ModelError, match="differ in length: 'a' 2, 'b' 1"):
        Columns({"a": [1, 2], "b": [1]})
    with pytest.raises(ModelError, match="'a' has shape"):
        Columns({"a": [[1, 2]]})
    with pytest.raises(ModelError, match="row 2: 'a' is inf; keys must be finite"):
        Columns({"a": [1.0, np.inf]}).labels("a")
    with pytest.raises(ModelError, match="mixed types: int, str"):
        Columns({"a": np.array([1, "x"], object)}).labels("a")
