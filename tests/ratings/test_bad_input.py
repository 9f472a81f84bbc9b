"""Ratings that cannot be read are refused in one sentence, with the file and the line."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from svmp.errors import RatingsError
from svmp.ratings import read_ratings
from tests.ratings.tools import FORMS, netflix, random_table

GOOD = "user,item,rating\n1,2,3\n4,5,6\n"


def refused(source: Any, **options: Any) -> str:
    """Return the message of the error."""
    with pytest.raises(RatingsError) as caught:
        read_ratings(source, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("user,item,rating\n", "there are no ratings"),
        ("1,2\n3,4\n", "a row has 2 columns"),
        ("a,b,c\n1,2,3\n", "which column is the user?"),
        (GOOD + "7,8,good\n", "line 4: the rating is 'good', not a number"),
        (GOOD + "7,8,3,5\n", "line 4: the rating is '3,5'"),
        (GOOD + "\n\n7,8,x\n", "line 6: the rating is 'x'"),
        (GOOD + "7,8\n9,9,9\n", "line 4: there is no rating"),
        (GOOD + "7,,3\n", "line 4: there is no item"),
        (GOOD + '7," ",3\n', "line 4: there is no item"),
        (GOOD + "7,8,NaN\n", "line 4: the rating is nan"),
        (GOOD + "7,8,-inf\n", "line 4: the rating is -inf"),
        (GOOD + "7,8,1e99\n", "line 4: the rating is inf"),
        (GOOD + "4,5,1\n", "line 4: user 4 has rated item 5 already"),
        ('user,item,rating\n"a\nb",2,3\nc,d,bad\n', "line 4: the rating is 'bad'"),
        ("1::2::3::4\n5::6::x::8\n", "line 2: the rating is 'x'"),
        ("1::2::3::4\n5::6::7\n", "line 2: there is no time"),
        ("1::2::3::4\n5:6:7:8\n", "line 2"),
        ("1\t2\t3\n4\t5\t6\t7\n", "line 2: there are 4 fields where the first line has 3"),
        ("1,2,3,2005-01-01\n1,3,3,2005-13-01\n", "line 2: the time is '2005-13-01', not a date"),
        ("user,item,rating,time\n1,2,3\n4,5,6,7\n", "line 2: there is no time"),
    ],
)
def test_errors_in_text_name_the_line(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    for name, raw in (("ratings.csv", text.encode()), ("r.csv.gz", gzip.compress(text.encode()))):
        path = tmp_path / name
        path.write_bytes(raw)
        sentence = refused(path)
        assert str(path) in sentence
        assert says in sentence or (
            says.endswith("'3,5'") and "line 4: there are 4 fields" in sentence
        )


@pytest.mark.parametrize("line", [2, 3, 57, 1500, 2000])
@pytest.mark.parametrize("form", ["csv", "csv without header", "tsv", "movielens", "gzipped"])
def test_line_number_is_right_anywhere_in_the_file(form: str, line: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(line)
    lines = [f"{u}\x01{u % 97}\x01{r}\x01{u}" for u, r in enumerate(rng.integers(1, 6, 2000))]
    separator = {"tsv": "\t", "movielens": "::"}.get(form, ",")
    if form in ("csv", "gzipped"):
        lines[0] = "user\x01item\x01rating\x01time"
    lines[line - 1] = "7\x012\x01oops\x014"
    text = "\n".join(lines).replace("\x01", separator).encode()
    path = tmp_path / "ratings"
    path.write_bytes(gzip.compress(text) if form == "gzipped" else text)
    assert f"line {line}: the rating is 'oops', not a number" in refused(path)


def test_rating_outside_the_range_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(GOOD)
    assert "line 3: the rating is 6, not in 1 to 5" in refused(path, range=(1, 5))
    assert len(read_ratings(path, range=(1, 6))) == 2
    assert "range must be" in refused(path, range=(5, 1))
    assert "range must be" in refused(path, range=3)


def test_wrong_encoding_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_bytes((GOOD + "ü,8,3\n").encode("latin-1"))
    assert "line 4: this is not utf-8 text" in refused(path)
    lines = ["user,item,rating"] + [f"u{n},8,3" for n in range(3000)]
    path.write_bytes("\n".join([*lines, "ü,8,3", ""]).encode("latin-1"))
    assert "line 3002: this is not utf-8 text" in refused(path)
    path.write_text(GOOD, "utf-16")
    assert "this is not utf-8 text" in refused(path)
    assert "no encoding 'klingon'" in refused(path, encoding="klingon")


def test_missing_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(GOOD)
    for columns, says in [
        (
            ("user", "item", "stars"),
            "there is no column 'stars'; there are 'user', 'item', 'rating'",
        ),
        ((0, 1, 3), "there is no column 3; positions are 0 to 2"),
        ((0, 1, True), "there is no column True"),
        (("user", "item"), "columns must be three or four"),
        ({"user": 0, "item": 1}, "it needs user, item, rating"),
    ]:
        assert says in refused(path, columns=columns)
    assert "it has no header" in refused(path, columns=("user", "item", "rating"), header=False)
    assert "duplicates must be" in refused(path, duplicates="first")


def test_errors_in_netflix_files_name_the_line(tmp_path: Path) -> None:
    table = random_table(5)
    movies = sorted(set(table.item))
    text = netflix(table, movies).splitlines()
    path = tmp_path / "mv_1.txt"
    for line, broken, says in [
        (57, "12,x,2005-01-01", "the rating is 'x', not a number"),
        (90, "12,3", "there is no time"),
        (30, "12", "there is no rating"),
        (44, "ann,3,2005-01-01,7", "this is not user,rating,date"),
        (44, "12,3,last year", "the time is 'last year', not a date"),
    ]:
        if text[line - 1].endswith(":"):
            line += 1
        bad = [*text[: line - 1], broken, *text[line - 1 :]]
        path.write_text("\n".join(bad))
        assert f"{path}, line {line}: " in (sentence := refused(path))
        assert says in sentence
    again = next(n for n in range(99, len(text)) if "," in text[n])
    path.write_text("\n".join([*text[: again + 1], *text[again:]]))
    assert f"{path}, line {again + 2}: user" in (sentence := refused(path))
    assert f"already ({path}, line {again + 1})" in sentence
    path.write_text("\n".join(text))
    (tmp_path / "mv_2.txt").write_text("5:\n1,3,2005-01-01\n\n2,4,soon\n")
    assert f"{tmp_path / 'mv_2.txt'}, line 4: the time is 'soon'" in refused(tmp_path)
    path.write_text("5:\n")
    assert "there are no ratings" in refused(path)


def test_invalid_files_are_refused(tmp_path: Path) -> None:
    assert "there is no such file" in refused(tmp_path / "absent.csv")
    assert "a folder without" in refused(tmp_path)


@pytest.mark.parametrize("form", ["parquet", "npz", "gzipped"])
def test_truncated_files_are_refused(form: str, tmp_path: Path) -> None:
    path = FORMS[form](random_table(6, count=1000), tmp_path)
    whole = path.read_bytes()
    for share in (0.02, 0.3, 0.9, 0.99):
        path.write_bytes(whole[: int(share * len(whole))])
        sentence = refused(path)
        assert str(path) in sentence
        assert any(word in sentence for word in ("cut short", "cannot be read", "empty"))


def test_arrays_that_would_run_code_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ratings.npz"
    np.savez(path, user=np.array([{}, 1], object), item=[1, 2], rating=[3, 4])
    assert "damaged" in refused(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"user": [0, 5]}, "row 2: the user is 5, but there are 2 user_ids"),
        ({"user": [0, -1]}, "row 2: the user is -1"),
        ({"user": [0.0, 1.0]}, "must be whole numbers from 0"),
        ({"user_ids": [4, 4]}, "each once"),
        ({"rating": [1.0, np.nan]}, "row 2: the rating is nan"),
        ({"rating": [1.0]}, "differ in length"),
        ({"rating": [["a"], ["b"]]}, "differ in length"),
    ],
)
def test_invalid_npz_files_are_refused(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    good = {"user": [0, 1], "item": [0, 0], "rating": [3, 4], "user_ids": [7, 8], "item_ids": [9]}
    np.savez(tmp_path / "r.npz", **good)
    assert len(read_ratings(tmp_path / "r.npz")) == 2
    np.savez(tmp_path / "r.npz", **{**good, **change})
    assert says in refused(tmp_path / "r.npz")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (([1, 2], [3, 4], ["a", "b"]), "row 0: the rating is 'a'"),
        (([1, "b"], [3, 4], [1, 2]), "the users are of mixed types: int, str"),
        (([1, None], [3, 4], [1, 2]), "row 1: there is no user"),
        (([1.5, 2], [3, 4], [1, 2]), "row 0: the user is 1.5, not a whole number"),
        (([True, False], [3, 4], [1, 2]), "not strings or whole numbers"),
        (([1, 2], [3, 4], [1, None]), "row 1: there is no rating"),
        (([1, 2], [3, 4], [1, np.inf]), "row 1: the rating is inf"),
        (([1, 2], [3, 4], [1, -2e13]), "row 1: the rating is -20000000000000.0, beyond 1e+13"),
        (([1, 2], [3, 4], [1]), "differ in length: user 2, item 2, rating 1"),
        (([1, 2], [3, 4]), "ratings must be a path"),
        ([], "ratings must be a path"),
        (([], [], []), "there are no ratings"),
        (3, "ratings must be a path"),
        (None, "ratings must be a path"),
        (np.ones((3, 3)), "ratings must be a path"),
        (([np.array([1]), 2], [3, 4], [1, 2]), "ratings"),
        ({"user": [1], "item": [2]}, "which column is the rating?"),
        (pl.DataFrame({"user": [1], "item": [[2]], "rating": [1]}), "the items are of type"),
        (pl.DataFrame({"user": [1], "item": [2], "rating": [[1]]}), "the ratings are of type"),
        (sparse.csr_array([[0, np.nan], [1, 2]]), "cell 0: the rating is nan"),
        (sparse.csr_array((3, 4)), "there are no ratings"),
        ((np.array([2**63], np.uint64), [1], [1]), "which is too big"),
    ],
)
def test_invalid_tables_in_memory_are_refused(source: Any, says: str) -> None:
    assert says in refused(source)


@pytest.mark.parametrize(
    "make", [lambda p: p.write_bytes(b"\x00\xff" * 400), lambda p: p.write_bytes(b"\x00" * 999)]
)
def test_random_bytes_are_refused(make: Callable[[Path], Any], tmp_path: Path) -> None:
    for name in ("r.csv", "r.parquet", "r.npz", "r"):
        make(tmp_path / name)
        refused(tmp_path / name)
