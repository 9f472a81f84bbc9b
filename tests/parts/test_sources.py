"""Sources in memory and from Dask: they give the parts that were put in, and notice others."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svmp.errors import ModelError
from svmp.network.dims.data_columns import Columns
from svmp.parts.sources import InMemory, Source, as_source, from_dask
from svmp.parts.splitting import blocks, frames, split

PAYLOADS: list[Any] = [
    np.arange(3.0),
    (np.arange(3), np.ones(3)),
    {"user": np.array(["a", "b"]), "rating": [1.0, 2.0]},
    Columns({"user": [1, 2, 2]}),
    pd.DataFrame({"user": ["a", "b"]}),
    pl.DataFrame({"user": ["a", "b"]}),
    pa.table({"user": ["a", "b"]}),
]


def test_parts_in_memory_are_the_objects_themselves() -> None:
    source = as_source(PAYLOADS)
    assert isinstance(source, InMemory)
    assert source.in_memory
    assert all(source.load(n) is payload for n, payload in enumerate(PAYLOADS))
    assert [source.rows(n) for n in range(7)] == [3, None, None, 3, 2, 2, 2]
    assert as_source(source) is source


def test_fingerprints_in_memory_depend_on_the_content_alone() -> None:
    hashes = [InMemory(PAYLOADS).fingerprint(n) for n in range(7)]
    again = pickle.loads(pickle.dumps(InMemory(PAYLOADS)))
    assert hashes == [again.fingerprint(n) for n in range(7)]
    assert len(set(hashes[:4])) == 4
    assert all(hashes)
    changed = InMemory([np.array([0.0, 1.0, 2.5]), pd.DataFrame({"user": ["a", "c"]})])
    assert changed.fingerprint(0) != hashes[0]
    assert changed.fingerprint(1) != hashes[4]
    assert InMemory([object()]).fingerprint(0) == ""


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ("a/*.parquet", r"use svmp\.parquet\('a/\*\.parquet'\)"),
        (Path("a"), r"use svmp\.parquet\('a'\)"),
        ([], "there are no parts"),
        (pd.DataFrame({"user": [1]}), r"svmp\.frames\(table, by='user'"),
        ({"user": [1]}, r"svmp\.split\(table, by='user'"),
        (iter([1]), "parts must be a list"),
        (3, "parts must be a list.*not 3"),
    ],
)
def test_what_are_no_parts_is_refused_with_advice(parts: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        as_source(parts)


def rows_of(source: Source) -> list[tuple[Any, ...]]:
    parts = [source.load(n) for n in range(len(source))]
    return [row for p in parts for row in zip(*(a.tolist() for _, a in p.items()), strict=True)]


def test_splitting_keeps_every_row_once_and_values_together() -> None:
    rng = np.random.default_rng(0)
    table = {"user": rng.zipf(1.5, 5000) % 300, "row": np.arange(5000)}
    source = split(table, by="user", parts=8)
    assert len(source) == 8
    assert sorted(rows_of(source)) == sorted(zip(table["user"].tolist(), range(5000), strict=True))
    labels = [set(source.load(n).labels("user").tolist()) for n in range(8)]
    assert len(set().union(*labels)) == sum(map(len, labels))
    assert all((np.diff(source.load(n).row) > 0).all() for n in range(8))


def test_even_values_give_even_parts() -> None:
    source = split({"user": np.repeat(np.arange(80), 5)}, by="user", parts=8)
    assert [source.rows(n) for n in range(8)] == [50] * 8


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 50))
def test_blocks_are_consecutive_and_as_many_as_asked_for(counts: list[int], parts: int) -> None:
    block = blocks(np.array(counts), parts)
    assert block[0] == 0
    assert block[-1] == min(parts, len(counts)) - 1
    assert set(np.diff(block).tolist()) <= {0, 1}
    rows = np.bincount(block, counts)
    assert rows.max() <= sum(counts) / min(parts, len(counts)) + 2 * max(counts)


def test_fewer_values_than_parts() -> None:
    source = split({"user": ["b", "a", "b"]}, by="user", parts=5)
    assert [source.load(n).user.tolist() for n in range(len(source))] == [["a"], ["b", "b"]]


def test_unfit_splits_are_refused() -> None:
    with pytest.raises(ModelError, match="there is no column 'item'"):
        split({"user": [1]}, by="item", parts=2)
    with pytest.raises(ModelError, match="parts must be a whole number from 1, not 0"):
        split({"user": [1]}, by="user", parts=0)
    with pytest.raises(ModelError, match="no rows"):
        split({"user": []}, by="user", parts=2)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_every_library_split_alike(make: Any) -> None:
    table = {"user": ["b", "a", "c", "b"], "rating": [1.0, 2.0, 3.0, 4.0]}
    expected = rows_of(split({k: np.array(v) for k, v in table.items()}, by="user", parts=2))
    assert rows_of(frames(make(table), by="user", parts=2)) == expected
    with pytest.raises(ModelError, match="a data frame in memory"):
        frames([1, 2], by="user", parts=2)


def test_dask_partitions_are_parts() -> None:
    pytest.importorskip("dask")
    import dask
    import dask.dataframe as dd

    frame = pd.DataFrame({"user": np.arange(10), "rating": np.arange(10.0)})
    collection = dd.from_pandas(frame, npartitions=3)
    source = as_source(collection)
    assert not source.in_memory
    parts = [source.load(n) for n in range(len(source))]
    assert pd.concat(parts).equals(frame)
    assert len({source.fingerprint(n) for n in range(3)}) == 3
    again = from_dask(dd.from_pandas(frame, npartitions=3))
    assert again.fingerprint(1) == source.fingerprint(1)
    listed = as_source([dask.delayed(n) for n in range(4)])
    assert [listed.load(n) for n in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ModelError, match="list of delayed values"):
        from_dask([1, 2])
