"""Tables of items: conditions, boosts and quotas by their columns, for items of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import svmp
from svmp.recommend import ItemTable, RatingModel
from tests.recommend.tools import fitted

COLUMNS: dict[str, Any] = {
    "name": ["a", "b", "c", "d", "e"],
    "movieId": [0, 7, 14, 21, 10**6],
    "genre": ["comedy", "drama|comedy", None, "drama", "comedy"],
    "stock": [3, 0, 5, None, 9],
    "price": [1.5, 2.5, None, 4.0, 0.0],
    "new": [True, False, None, True, True],
    "since": ["2020-01-31", "2021-12-01", "2019-05-05", None, "2030-01-01"],
}
IDS = np.array([21, 14, 7, 0, 35])


def rows(table: Any, where: dict[str, Any]) -> list[int]:
    return sorted(IDS[ItemTable(table).matches(IDS, where)].tolist())


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ({"genre": "comedy"}, [0, 7]),
        ({"genre": ["comedy", "drama"]}, [0, 7, 21]),
        ({"genre": "drama|comedy"}, [7]),
        ({"genre": {"not": "comedy"}}, [14, 21, 35]),
        ({"genre": {"not": ["comedy", "drama"]}}, [14, 35]),
        ({"genre": "horror"}, []),
        ({"genre": []}, []),
        ({"stock": {"min": 1}}, [0, 14]),
        ({"stock": {"min": 0, "max": 3}}, [0, 7]),
        ({"stock": 5}, [14]),
        ({"stock": "5"}, [14]),
        ({"price": {"max": "2.5"}}, [0, 7]),
        ({"new": True}, [0, 21]),
        ({"new": {"not": True}}, [7, 14, 35]),
        ({"since": {"min": "2020-01-31"}}, [0, 7]),
        ({"genre": "comedy", "stock": {"min": 1}}, [0]),
        ({}, [0, 7, 14, 21, 35]),
    ],
)
def test_conditions(where: dict[str, Any], wanted: list[int]) -> None:
    assert rows(COLUMNS, where) == wanted


def test_sources_of_tables_are_equal(tmp_path: Path) -> None:
    frame = pl.DataFrame(COLUMNS)
    frame.write_csv(tmp_path / "items.csv")
    frame.write_parquet(tmp_path / "items.parquet")
    (tmp_path / "latin.csv").write_bytes("id,genre\n0,Comédie\n".encode("latin-1"))
    sources = [frame, frame.lazy(), pd.DataFrame(COLUMNS), pa.table(COLUMNS)]
    sources += [tmp_path / "items.csv", str(tmp_path / "items.parquet")]
    for source in sources:
        assert ItemTable(source).id == "movieId"
        assert rows(source, {"genre": "comedy", "stock": {"min": 1}}) == [0]
    lists = frame.with_columns(pl.col("genre").str.split("|"))
    assert rows(lists, {"genre": "comedy"}) == [0, 7]
    assert ItemTable(tmp_path / "latin.csv", encoding="latin-1").id == "id"
    with pytest.raises(svmp.RatingsError, match=r"latin\.csv: this is not utf-8 text"):
        ItemTable(tmp_path / "latin.csv")
    for wrong, says in [
        (tmp_path / "none.csv", r"none\.csv: the table cannot be read"),
        ({"id": [1, 1]}, "the item 1 is there twice"),
        ({"id": [1], "x": [1, 2]}, "cannot be read"),
        (3, "cannot be read"),
    ]:
        with pytest.raises(svmp.RatingsError, match=says):
            ItemTable(wrong)
    with pytest.raises(svmp.RatingsError, match="no column 'sku'"):
        ItemTable(frame, id="sku")
    with pytest.raises(svmp.RatingsError, match="no id in the column 'id'"):
        ItemTable({"id": [-5]}).rows(IDS)


def test_ids_of_numbers_and_of_text_match() -> None:
    words = np.array(["7", "x", "0"])
    assert ItemTable(COLUMNS).matches(words, {"genre": "comedy"}).tolist() == [True, False, True]
    table = {"id": ["7", "x", "21"], "genre": ["drama", "comedy", "comedy"]}
    assert rows(table, {"genre": "comedy"}) == [21]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"where": {"colour": "red"}}, "no column 'colour', only"),
        ({"where": {"stock": "many"}}, "the column 'stock' of the items has numbers, not 'many'"),
        ({"where": {"stock": {"above": 3}}}, "a dict of 'min', 'max' and 'not'"),
        ({"where": "comedy"}, "where must be a dict by column"),
        ({"boost": {"genre": 3}}, "the column 'genre' has text; give points by value"),
        ({"boost": {"stock": "3"}}, "boost must have numbers of points, not '3'"),
        ({"boost": {"stock": np.nan}}, "boost must have numbers"),
        ({"quota": {"genre": -1}}, "whole numbers from 0, not -1"),
        ({"quota": {"genre": {"comedy": 1.5}}}, "whole numbers from 0, not 1.5"),
        ({"where": {"stock": 1}, "items": None}, "where, boost and quota need items"),
        ({"diversity": -1}, "diversity must be a number of at least 0"),
    ],
)
def test_invalid_rules_are_refused(options: Any, says: str) -> None:
    with pytest.raises(svmp.SvmpError, match=says):
        fitted().recommend(1, **{"items": COLUMNS, **options})


def about(model: RatingModel) -> dict[str, Any]:
    """Columns of all items of a model."""
    rng = np.random.default_rng(1)
    ids = model.items_.ids[rng.permutation(len(model.items_))]
    kinds = np.array(["a", "b", "c", "a|b"])[rng.integers(0, 4, len(ids))]
    return {"item": ids, "kind": kinds, "age": rng.integers(0, 10, len(ids)).astype(float)}


@pytest.mark.parametrize("many", [False, True])
def test_rules_equal_a_plain_loop(many: bool) -> None:
    """Filter, boost, and take the best one after the other, from the scores of all items."""
    model = fitted()
    columns = about(model)
    frame = pl.DataFrame(columns)
    row = {item: place for place, item in enumerate(columns["item"].tolist())}
    users = model.users_.ids[:9] if many else model.users_.ids[:1]
    rules: Any = {
        "items": ItemTable(frame),
        "where": {"age": {"min": 2}},
        "boost": {"age": 0.1, "kind": {"c": -0.3}},
        "quota": {"kind": 2},
        "diversity": 0.5,
    }
    top = model.recommend(users, 6, **rules)
    likeness = model._similarity(model.items_, model.users_).unit
    every = model.recommend(users, 40, exclude_seen=False)
    for place in range(len(users)):
        seen = model.items_.ids[model.history_.item[model.history_.rows(place)]].tolist()
        raw = dict(zip(every.items[place].tolist(), every.raw[place].tolist(), strict=True))  # type: ignore[index]
        left = [i for i in raw if i not in seen and columns["age"][row[i]] >= 2]
        found: list[int] = []
        while len(found) < 6:
            used = [part for i in found for part in columns["kind"][row[i]].split("|")]
            values = {}
            for i in left:
                kind, age = columns["kind"][row[i]], columns["age"][row[i]]
                if i in found or any(used.count(part) >= 2 for part in kind.split("|")):
                    continue
                keys = model.items_.keys([i, *found])
                alike = likeness[keys[1:]] @ likeness[keys[0]]
                penalty = 0.5 * max([0.0, *alike.tolist()])
                values[i] = raw[i] + 0.1 * age - 0.3 * (kind == "c") - penalty
            if not values:
                break
            found.append(max(values, key=values.__getitem__))
        there = ~np.isnan(top.scores[place])
        assert top.items[place][there].tolist() == found
        assert top.raw is not None
        assert top.raw[place][there] == pytest.approx([raw[i] for i in found], rel=1e-4)


def test_rules_for_all_users_in_a_file(tmp_path: Path) -> None:
    model = fitted()
    pl.DataFrame(about(model)).write_csv(tmp_path / "items.csv")
    rules: Any = {"items": tmp_path / "items.csv", "quota": {"kind": {"a": 1}}, "diversity": 0.2}
    written = model.recommend_all(tmp_path / "top.parquet", 5, where={"kind": "a"}, **rules)
    assert (written.users, written.rows) == (60, 60)
    top = model.recommend(model.users_.ids, 5, where={"kind": "a"}, **rules)
    assert pl.read_parquet(written.path)["item"].to_list() == top.items[:, 0].tolist()
    none = model.recommend(model.users_.ids[:2], 5, items=about(model), where={"kind": "z"})
    assert none.items.shape == (2, 0)


def test_diversity_lowers_similarities_within_lists() -> None:
    model = fitted("full")
    users, unit = model.users_.ids, model._similarity(model.items_, model.users_).unit
    means = []
    for weight in (0.0, 0.3, 3.0):
        keys = model.items_.keys(model.recommend(users, 6, diversity=weight).items.ravel())
        some = unit[keys.reshape(60, 6)]
        means.append(float(np.einsum("uik,ujk->uij", some, some).mean()))
    assert means[0] > means[1] > means[2]
