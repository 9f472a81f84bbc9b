"""A table written in any format is read back as the same ratings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from svmp.errors import RatingsError
from svmp.ratings import Ratings, read_ratings
from tests.ratings.tools import (
    FORMS,
    Plain,
    contents,
    dates,
    expected,
    matrix,
    netflix,
    random_table,
)

SHARED = Path(__file__).parents[3] / "shared" / "data"


def check_sound(ratings: Ratings) -> None:
    """Keys are of the right types and count from 0; ids are distinct."""
    assert ratings.user.dtype == ratings.item.dtype == np.int32
    assert ratings.rating.dtype == np.float32
    for keys, ids in [(ratings.user, ratings.user_ids), (ratings.item, ratings.item_ids)]:
        assert len(np.unique(ids)) == len(ids)
        assert keys.min() >= 0
        assert keys.max() < len(ids)
        assert not keys.flags.writeable


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (form, words)
        for form in FORMS
        for words in (False, True)
        if not (form == "blanks" and words)
    ],
)
def test_all_formats_give_the_same_ratings(form: str, words: bool, tmp_path: Path) -> None:
    table = random_table(1, words)
    ratings = read_ratings(FORMS[form](table, tmp_path))
    check_sound(ratings)
    assert contents(ratings) == expected(table)
    assert ratings.user_ids.tolist() == sorted(set(table.user))
    assert ratings.item_ids.tolist() == sorted(set(table.item))
    first = ratings.user_ids[ratings.user[0]], ratings.item_ids[ratings.item[0]]
    assert first == (table.user[0], table.item[0])  # the order of rows is kept


IDS = st.one_of(
    st.integers(-(2**53), 2**53),
    st.text("abcXYZ0129_-é", min_size=1, max_size=6).filter(lambda s: s.strip()),
)
LIST = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, unique=True)


@given(
    users=st.lists(IDS, min_size=5, max_size=5, unique_by=str),
    items=st.lists(IDS, min_size=5, max_size=5, unique_by=str),
    pairs=LIST,
    data=st.data(),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_text_round_trip(
    users: list[Any], items: list[Any], pairs: list[tuple[int, int]], data: Any, tmp_path: Path
) -> None:
    """Ids are read as whole numbers if all of them are, else as the strings in the file."""
    number = st.floats(-1e6, 1e6, width=32)
    rating = [data.draw(number) for _ in pairs]
    table = Plain(
        [users[u] for u, _ in pairs], [items[i] for _, i in pairs], rating, [0] * len(pairs)
    )
    form = data.draw(st.sampled_from(["csv", "semicolons", "gzipped", "quoted", "bars"]))
    ratings = read_ratings(FORMS[form](table, tmp_path))
    check_sound(ratings)

    def alike(ids: list[Any]) -> list[Any]:
        def whole(i: Any) -> bool:
            return (
                str(i).lstrip("-").isdigit() and str(i) == str(int(i))
                if str(i).isascii()
                else False
            )

        return [int(i) for i in ids] if all(map(whole, ids)) else [str(i) for i in ids]

    same = Plain(alike(table.user), alike(table.item), rating, table.time)
    assert contents(ratings) == expected(same)


@pytest.mark.parametrize("folder", [False, True])
def test_netflix_text_from_one_file_and_from_a_folder(folder: bool, tmp_path: Path) -> None:
    table = random_table(2)
    movies = sorted(set(table.item))
    if folder:
        for movie in movies:
            (tmp_path / f"mv_{movie:07}.txt").write_text(netflix(table, [movie]))
        ratings = read_ratings(tmp_path)
    else:
        (tmp_path / "combined_data_1.txt").write_text(netflix(table, movies))
        ratings = read_ratings(tmp_path / "combined_data_1.txt")
        assert contents(read_ratings(tmp_path)) == expected(table)
    check_sound(ratings)
    assert contents(ratings) == expected(table)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_matrix, sparse.csc_matrix])
def test_a_sparse_matrix_keeps_all_its_users_and_items(kind: Any) -> None:
    table = random_table(3)
    ratings = read_ratings(kind(matrix(table)))
    assert (ratings.users, ratings.items) == (50, 40_000)
    assert contents(ratings) == {pair: (r, 0.0) for pair, (r, _) in expected(table).items()}


@pytest.mark.parametrize(
    "columns",
    [
        ("what", "who", "stars"),
        ("What", "WHO", "stars"),
        [1, 2, 0],
        {"rating": "stars", "item": "who", "user": "what"},
    ],
)
def test_columns_by_name_and_by_position(columns: Any, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("stars,what,who,x\n4,b,c,1\n5,d,e,1\n")
    assert contents(read_ratings(path, columns=columns)) == {("b", "c"): (4, 0), ("d", "e"): (5, 0)}


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%SZ", "%Y/%m/%d"]
)
def test_dates_are_converted_to_seconds(form: str, tmp_path: Path) -> None:
    table = random_table(4)
    day = dates(table.time)
    shown = [np.datetime64(d).astype(object).strftime(form) for d in day]
    rows = zip(table.user, table.item, table.rating, shown, strict=True)
    path = tmp_path / "table.csv"
    path.write_text("user,item,rating,date\n" + "\n".join(",".join(map(str, r)) for r in rows))
    assert contents(read_ratings(path)) == expected(table)
    arrays = (table.user, table.item, table.rating, np.array(day, "datetime64[D]"))
    assert contents(read_ratings(arrays)) == expected(table)


def test_ids_with_leading_zeros_stay_strings(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("007,1,3\n7,1,4\n")
    assert contents(read_ratings(path)) == {("007", 1): (3, 0), ("7", 1): (4, 0)}


def test_fourth_column_without_times_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("1,1,3,good\n7,1,4,bad\n")
    assert read_ratings(path).time is None


EVENTS = {"users": list("aba"), "items": list("xyy")}


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("a.csv", "customer,product\na,x\nb,y\na,y\n", None),
        ("a.tsv", "a\tx\nb\ty\na\ty\n", None),
        ("a.txt", "a x\nb y\na y\n", None),
        ("a.csv", "day,who,what\n1,a,x\n2,b,y\n3,a,y\n", ("who", "what")),
        ("a.csv", "day,who,what\n1,a,x\n2,b,y\n3,a,y\n", {"item": "what", "user": "who"}),
    ],
)
def test_events_need_no_rating(name: str, text: str, columns: Any, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    events = read_ratings(path, columns=columns, events=True)
    assert contents(events) == contents(read_ratings((*EVENTS.values(), [1, 1, 1])))
    assert contents(events) == contents(read_ratings(tuple(EVENTS.values()), events=True))
    with pytest.raises(RatingsError, match=r"rating|three"):
        read_ratings(path, columns=columns)


def test_events_with_a_time_or_with_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item,date\na,x,1970-01-02\nb,y,1970-01-03\n")
    assert read_ratings(path, events=True).time.tolist() == [86400, 2 * 86400]
    path.write_text("user,item,plays\na,x,3\nb,y,4\n")
    assert read_ratings(path, events=True).rating.tolist() == [3, 4]


def test_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for encoding in ("latin-1", "utf-16", "utf-8-sig"):
        path.write_text("user,item,rating\né,ü,3\n", encoding=encoding)
        assert contents(read_ratings(path, encoding=encoding)) == {("é", "ü"): (3, 0)}
    path.write_text("user,item,rating\né,ü,3\n", encoding="utf-8-sig")
    assert contents(read_ratings(path)) == {("é", "ü"): (3, 0)}


ROWS = (["a", "b", "a", "a"], ["x", "x", "x", "y"], [1, 2, 4, 5])


def test_last_duplicate_has_the_greatest_time() -> None:
    assert contents(read_ratings(ROWS, duplicates="last"))["a", "x"] == (4, 0)
    late = (*ROWS, [9, 1, 3, 2])
    assert contents(read_ratings(late, duplicates="last"))["a", "x"] == (1, 9)
    assert contents(read_ratings(late, duplicates="mean"))["a", "x"] == (2.5, 9)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5)), min_size=1))
def test_duplicates_equal_a_plain_loop(rows: list[tuple[int, int, int]]) -> None:
    groups: dict[tuple[int, int], list[int]] = {}
    for u, i, r in rows:
        groups.setdefault((u, i), []).append(r)
    arrays = tuple(zip(*rows, strict=True))
    last, mean = (
        contents(read_ratings(list(map(list, arrays)), duplicates=d)) for d in ("last", "mean")
    )
    assert {p: r for p, (r, _) in last.items()} == {p: r[-1] for p, r in groups.items()}
    assert {p: r for p, (r, _) in mean.items()} == pytest.approx(
        {p: np.mean(r) for p, r in groups.items()}
    )


@pytest.mark.parametrize("name", ["goodbooks", "movietweetings"])
def test_real_files_of_ratings(name: str, tmp_path: Path) -> None:
    path = SHARED / name / "ratings.npz"
    if not path.exists():
        pytest.skip("the shared data are not here")
    ratings = read_ratings(path)
    with np.load(path) as file:
        for column in ("user", "item", "rating", "user_ids", "item_ids"):
            assert np.array_equal(getattr(ratings, column), file[column])
        rows = np.column_stack([file["user_ids"][file["user"]], file["item_ids"][file["item"]]])
        again = tmp_path / "ratings.csv"
        table = np.column_stack([rows, file["rating"].astype(int)])[:50_000]
        np.savetxt(again, table, "%d", ",", header="user_id,item_id,rating", comments="")
    read = read_ratings(again)
    assert np.array_equal(read.user_ids[read.user], table[:, 0])
    assert np.array_equal(read.item_ids[read.item], table[:, 1])
    assert np.array_equal(read.rating, table[:, 2])
