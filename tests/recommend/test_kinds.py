"""All functions of ratings accept all kinds of sources: a path, a data frame, arrays, a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from svmp.errors import RatingsError
from svmp.ratings import Ratings, read_ratings
from svmp.recommend import EventModel, RatingModel, evaluate, split
from svmp.recommend.baselines import Popularity, biases
from svmp.study.netflix import beginning, matrix_factorization
from tests.recommend.tools import drawn, fitted, parts

KINDS = ("table", "tuple", "pandas", "polars", "dict", "csv", "text path", "parquet")


def as_kind(kind: str, table: Ratings, folder: Path) -> Any:
    columns: dict[str, Any] = {
        "user": table.user_ids[table.user],
        "item": table.item_ids[table.item],
        "rating": table.rating,
        "time": np.arange(len(table)),
    }
    frame = pl.DataFrame(columns)
    frame.write_csv(folder / "r.csv")
    frame.write_parquet(folder / "r.parquet")
    found: dict[str, Any] = {
        "table": read_ratings(frame),
        "tuple": tuple(columns.values()),
        "pandas": pd.DataFrame(columns),
        "polars": frame,
        "dict": columns,
        "csv": folder / "r.csv",
        "text path": str(folder / "r.csv"),
        "parquet": folder / "r.parquet",
    }
    return found[kind]


def same(mine: Ratings, its: Ratings) -> bool:
    names = ("user", "item", "rating", "user_ids", "item_ids", "time")
    return all(np.array_equal(getattr(mine, n), getattr(its, n)) for n in names)


SPLITS: dict[str, Callable[[Any], split.Split]] = {
    "random": split.random,
    "by_time": split.by_time,
    "last_out": split.last_out,
    "cold_users": split.cold_users,
    "cold_items": split.cold_items,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_split(kind: str, tmp_path: Path) -> None:
    data = as_kind(kind, drawn(0), tmp_path)
    for name, way in SPLITS.items():
        for mine, its in zip(way(data), way(as_kind("table", drawn(0), tmp_path)), strict=True):
            assert same(mine, its), name


@pytest.mark.parametrize("kind", KINDS)
def test_evaluate(kind: str, tmp_path: Path) -> None:
    test = as_kind(kind, parts().test, tmp_path)
    found = evaluate(fitted(), test, draws=5)
    assert found.to_dict() == evaluate(fitted(), parts().test, draws=5).to_dict()


def test_evaluate_of_events_and_of_baselines(tmp_path: Path) -> None:
    train, test = parts()
    model = EventModel(2, iterations=1, progress=False, threads=1).fit(train)
    for one in (model, Popularity().fit(train), biases(train)):
        frame = as_kind("pandas", test, tmp_path)
        assert evaluate(one, frame, draws=5).to_dict() == evaluate(one, test, draws=5).to_dict()
    with pytest.raises(RatingsError, match="ratings must be a path"):
        evaluate(model, 3)


@pytest.mark.parametrize("kind", ["pandas", "csv"])
def test_baselines_and_the_model_of_the_paper(kind: str, tmp_path: Path) -> None:
    data = as_kind(kind, drawn(0), tmp_path)
    assert np.array_equal(Popularity().fit(data).items_.ids, Popularity().fit(drawn(0)).items_.ids)
    assert len(biases(data).users_) == 60
    assert matrix_factorization(data).variables.keys() == {"u", "v", "r"}
    assert beginning(data, 2)["u"]["mu"].shape == (60, 2)  # type: ignore[attr-defined]


def test_ids_in_files_are_read_as_the_type_of_the_model(tmp_path: Path) -> None:
    """If the ids of a model are text, those of a file are read as text even if all are numbers."""
    users, items = ["007", "x", "12"], ["5", "6", "b"]
    model = RatingModel(0, range=(1, 5), progress=False, threads=1, max_sweeps=3)
    model.fit((users, items, [1.0, 2.0, 3.0]))
    path = tmp_path / "more.csv"
    path.write_text("user,item,rating\n12,5,4\n13,6,5\n")
    assert len(evaluate(model, path, draws=2).scores) == 3
    model.update(path)
    assert model.users_.ids.tolist() == ["007", "12", "x", "13"]
    assert len(model.items_) == 3
    numbers = RatingModel(0, progress=False, threads=1, max_sweeps=3)
    numbers.fit(([1, 2], [3, 4], [1.0, 2.0]))
    path.write_text("user,item,rating\nann,3,2\n")
    with pytest.raises(RatingsError, match="the ids are whole numbers, and 'ann' is not"):
        numbers.update(path)
