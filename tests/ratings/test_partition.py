"""A partitioned data set has the ratings that `read_ratings` finds in the same source."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from svmp.errors import FileError, ModelError, RatingsError
from svmp.parts.parquet_files import MARKER, ParquetSource, parquet
from svmp.ratings import partition, partitioning, read_ratings
from svmp.ratings.folders import drafted
from svmp.writing import draft_of
from tests.ratings.tools import FORMS, contents, expected, netflix, random_table

Contents = dict[tuple[Any, Any], tuple[float, float]]


def contents_of(folder: Path) -> Contents:
    """Return rating and time by pair of ids, read with Polars alone."""
    ids = {r: pl.read_parquet(folder / f"{r}s.parquet")["id"].to_list() for r in ("user", "item")}
    rows = pl.concat([pl.read_parquet(path) for path in sorted(folder.glob("part-*.parquet"))])
    assert rows.schema["user"] == rows.schema["item"] == pl.Int32
    assert rows.schema["rating"] == pl.Float32
    if "time" not in rows.columns:
        rows = rows.with_columns(time=pl.lit(0.0))
    found = {
        (ids["user"][u], ids["item"][i]): (r, t)
        for u, i, r, t in rows.select("user", "item", "rating", "time").iter_rows()
    }
    assert len(found) == rows.height
    return found


def check_parts(source: ParquetSource, by: str = "user") -> None:
    """No key is in two parts; each part is sorted, and has a contiguous range of keys."""
    other = "item" if by == "user" else "user"
    last = -1
    for n in range(len(source)):
        part = source.load(n)
        pair = part[by].astype(np.int64) * 2**31 + part[other]
        assert (np.diff(pair) > 0).all()
        assert part[by][0] > last
        last = part[by][-1]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few lines."""
    monkeypatch.setattr(partitioning, "BATCH", (200, 200))


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(
    ("form", "words"), [(f, w) for f in FORMS for w in (False, True) if not (f == "blanks" and w)]
)
def test_all_formats_are_partitioned_alike(form: str, words: bool, tmp_path: Path) -> None:
    table = random_table(1, words)
    source = partition(FORMS[form](table, tmp_path), tmp_path / "out", parts=4)
    assert len(source) == 4
    check_parts(source)
    assert contents_of(tmp_path / "out") == expected(table)
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        *(f"part-{n:05}.parquet" for n in range(4)),
        *("users.parquet", "items.parquet", MARKER),
    }


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings(encoding: str, tmp_path: Path) -> None:
    table = random_table(2, words=True)
    (tmp_path / "r.csv").write_bytes(table.csv().encode(encoding))
    partition(tmp_path / "r.csv", tmp_path / "out", parts=3, encoding=encoding)
    assert contents_of(tmp_path / "out") == expected(table)


@pytest.mark.usefixtures("small_batches")
def test_archives_and_the_netflix_prize(tmp_path: Path) -> None:
    table = random_table(3)
    items = sorted(set(table.item))
    (tmp_path / "one.txt").write_text(netflix(table, items))
    with zipfile.ZipFile(tmp_path / "ml.zip", "w") as archive:
        archive.writestr("ml/ratings.csv", table.csv())
    (tmp_path / "prize").mkdir()
    for n in range(3):
        text = netflix(table, items[n::3]).encode()
        (tmp_path / "prize" / f"combined_data_{n}.txt.gz").write_bytes(gzip.compress(text))
    (tmp_path / "movies").mkdir()
    for item in items:
        (tmp_path / "movies" / f"mv_{item:07}.txt").write_text(netflix(table, [item]))
    for name in ("one.txt", "ml.zip", "prize", "movies"):
        partition(tmp_path / name, tmp_path / "out", parts=3)
        assert contents_of(tmp_path / "out") == expected(table), name


def test_several_parquet_files(tmp_path: Path) -> None:
    table = random_table(4)
    (tmp_path / "in").mkdir()
    for n in range(3):
        table.frame()[n::3].write_parquet(tmp_path / "in" / f"{n}.parquet")
    for given in (tmp_path / "in", str(tmp_path / "in" / "*.parquet")):
        partition(given, tmp_path / "out", parts=3)
        assert contents_of(tmp_path / "out") == expected(table)
    with pytest.raises(RatingsError, match="out: this is a partitioned data set already"):
        partition(tmp_path / "out", tmp_path / "more")


def test_quoted_line_endings_do_not_end_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(f"a\n{n // 3}", f"b{n % 3}", n % 5) for n in range(60)]
    text = "user,item,rating\n" + "".join(f'"{u}",{i},{r}\n' for u, i, r in rows)
    (tmp_path / "r.csv").write_text(text)
    for size in range(20, 60, 5):
        monkeypatch.setattr(partitioning, "BATCH", (size, size))
        partition(tmp_path / "r.csv", tmp_path / "out", parts=2)
        assert contents_of(tmp_path / "out") == {(u, i): (float(r), 0.0) for u, i, r in rows}


@pytest.mark.usefixtures("small_batches")
def test_one_word_among_numbers_makes_all_ids_text(tmp_path: Path) -> None:
    lines = [f"{n},{n % 7},3" for n in range(200)]
    (tmp_path / "r.csv").write_text("user,item,rating\n" + "\n".join([*lines, "x,y,2"]) + "\n")
    partition(tmp_path / "r.csv", tmp_path / "out", parts=3)
    assert contents_of(tmp_path / "out") == contents(read_ratings(tmp_path / "r.csv"))


@pytest.mark.parametrize("by", ["user", "item"])
def test_divided_by_users_or_items(by: Any, tmp_path: Path) -> None:
    table = random_table(5)
    (tmp_path / "r.csv").write_text(table.csv())
    source = partition(tmp_path / "r.csv", tmp_path / "out", by=by, rows_per_part=30)
    check_parts(source, by)
    assert len(source) == 7
    assert max(source.rows(n) for n in range(7)) < 60
    assert contents_of(tmp_path / "out") == expected(table)
    assert json.loads((tmp_path / "out" / MARKER).read_text())["by"] == by


def test_users_without_ratings_keep_their_keys(tmp_path: Path) -> None:
    matrix = sparse.csr_array(([5.0], ([1], [2])), shape=(9, 4))
    source = partition(matrix, tmp_path / "out", parts=9)
    assert [source.rows(n) for n in range(9)] == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert source.load(1).user.tolist() == [1]
    assert pl.read_parquet(tmp_path / "out" / "users.parquet")["id"].to_list() == [*range(9)]


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("rule", ["last", "mean", "sum"])
@pytest.mark.parametrize("timed", [False, True])
def test_repeated_pairs(rule: Any, timed: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    rows = zip(*(rng.integers(0, n, 300) for n in (12, 9, 5, 10_000)), strict=True)
    lines = [",".join(map(str, row if timed else row[:3])) for row in rows]
    head = "user,item,rating,time" if timed else "user,item,rating"
    (tmp_path / "r.csv").write_text("\n".join([head, *lines]) + "\n")
    partition(tmp_path / "r.csv", tmp_path / "out", parts=3, duplicates=rule)
    whole = read_ratings(tmp_path / "r.csv", duplicates=rule)
    assert contents_of(tmp_path / "out") == contents(whole)


def same_error(tmp_path: Path, text: str, **options: Any) -> str:
    """Return the message of a file, which is that of `read_ratings`; nothing is written."""
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(RatingsError) as whole:
        read_ratings(tmp_path / "r.csv", **options)
    with pytest.raises(RatingsError) as parts:
        partition(tmp_path / "r.csv", tmp_path / "out", parts=2, **options)
    assert str(parts.value) == str(whole.value)
    assert [path.name for path in tmp_path.iterdir()] == ["r.csv"]
    return str(parts.value)


@pytest.mark.usefixtures("small_batches")
def test_errors_name_the_line_as_in_a_whole_file(tmp_path: Path) -> None:
    lines = ["user,item,rating", *(f"{n},{n % 7},3" for n in range(200))]
    for row, wrong in [(150, "7,,3"), (151, "7,8,x"), (152, "7,8,inf"), (199, "8,1,4,4,4")]:
        changed = [*lines]
        changed[row] = wrong
        assert f"line {row + 1}" in same_error(tmp_path, "\n".join(changed))
    assert "line 202" in same_error(tmp_path, "\n".join([*lines, "5,5,1"]))
    assert "not in 1 to 2" in same_error(tmp_path, "\n".join(lines), range=(1, 2))
    same_error(tmp_path, "\n".join(lines), text_ids="user")


def test_files_without_ratings_are_refused(tmp_path: Path) -> None:
    for text in ("", "\n\n", "user,item,rating\n"):
        (tmp_path / "r.csv").write_text(text)
        with pytest.raises(RatingsError, match=r"empty|no ratings"):
            partition(tmp_path / "r.csv", tmp_path / "out")
    with pytest.raises(RatingsError, match="no such file"):
        partition(tmp_path / "x.csv", tmp_path / "out")


def test_invalid_arguments_are_refused(tmp_path: Path) -> None:
    table = random_table(7)
    (tmp_path / "r.csv").write_text(table.csv())
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"by": "rating"}, "by must be 'user' or 'item', not 'rating'"),
        ({"parts": 0}, "parts must be a whole number from 1, not 0"),
        ({"rows_per_part": 1.5}, r"rows_per_part must be a whole number from 1, not 1\.5"),
        ({"memory": "much"}, "memory must be an amount of memory"),
        ({"parts": 10**6}, "1,000,000 parts are too many"),
        ({"duplicates": "first"}, "duplicates must be"),
    ]
    for arguments, message in wrong:
        with pytest.raises((ModelError, RatingsError), match=message):
            partition(tmp_path / "r.csv", tmp_path / "out", **arguments)
    with pytest.raises(TypeError, match="no option 'colums'"):
        partition(tmp_path / "r.csv", tmp_path / "out", colums=[0, 1, 2])  # type: ignore[call-arg]
    assert not (tmp_path / "out").exists()


def test_parts_that_do_not_fit_into_memory_are_refused(tmp_path: Path) -> None:
    rows = np.arange(5000)
    with pytest.raises(ModelError, match=r"a part of 5,000 rows needs about .*memory.* more parts"):
        partition((rows * 0, rows, rows % 5), tmp_path / "out", memory="10KB")


def test_what_is_not_ours_is_not_replaced(tmp_path: Path) -> None:
    table = random_table(8)
    (tmp_path / "r.csv").write_text(table.csv())
    out = tmp_path / "out"
    partition(tmp_path / "r.csv", out, parts=5)
    assert len(partition(tmp_path / "r.csv", out, parts=2)) == len(parquet(out)) == 2
    (out / "notes.txt").write_text("mine")
    for place in (out, tmp_path / "r.csv"):
        with pytest.raises(FileError, match=r"something else.*left as it is"):
            partition(tmp_path / "r.csv", place, parts=3)
    assert (out / "notes.txt").read_text() == "mine"
    (tmp_path / "new.part").mkdir()
    (tmp_path / "new.part" / "notes.txt").write_text("mine")
    partition(tmp_path / "r.csv", tmp_path / "new")
    assert (tmp_path / "new.part" / "notes.txt").read_text() == "mine"
    (tmp_path / "new.before").mkdir()
    (tmp_path / "new.before" / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match=r"new\.before: there is something else"):
        partition(tmp_path / "r.csv", tmp_path / "new")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match="a link, not a folder"):
        partition(tmp_path / "r.csv", tmp_path / "link")


def test_a_draft_left_by_a_killed_process_is_replaced(tmp_path: Path) -> None:
    table = random_table(9)
    (tmp_path / "r.csv").write_text(table.csv())
    draft = draft_of(tmp_path / "out")
    draft.mkdir()
    (draft / "rows-00000.bin").write_bytes(b"left behind")
    partition(tmp_path / "r.csv", tmp_path / "out", parts=2)
    assert contents_of(tmp_path / "out") == expected(table)
    assert not draft.exists()


def test_a_process_killed_between_the_two_renames_loses_nothing(tmp_path: Path) -> None:
    table = random_table(9)
    (tmp_path / "r.csv").write_text(table.csv())
    partition(tmp_path / "r.csv", tmp_path / "out", parts=2)
    (tmp_path / "out").rename(tmp_path / "out.before")
    (tmp_path / "bad.csv").write_text("user,item,rating\n1,2,x\n")
    with pytest.raises(RatingsError):
        partition(tmp_path / "bad.csv", tmp_path / "out")
    with drafted(tmp_path / "out", "written") as draft:
        assert contents_of(tmp_path / "out") == expected(table)
        (draft / "new").touch()
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["new"]


def test_a_file_that_changes_between_the_passes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(random_table(10).csv())

    def change(text: str) -> None:
        if "counted" in text:
            path.write_text(random_table(11).csv())

    with pytest.raises(RatingsError, match="the file has changed while it was read"):
        partition(path, tmp_path / "out", parts=2, report=change)
    assert not (tmp_path / "out").exists()


CHILD = """
import re, sys
from svmp.ratings import partition
import pyarrow.parquet
source = partition(sys.argv[1], sys.argv[2], parts=int(sys.argv[3]), memory="100MB")
status = open("/proc/self/status").read()  # getrusage counts what the parent had, too
print(int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Five million rows take hardly more memory than half a million."""
    peak = {}
    for millions in (0.5, 5):
        rows = np.arange(int(millions * 1e6))
        user = rows // 100 + 1_000_000
        frame = pl.DataFrame({"user": user, "item": rows * 7919 % 10_007, "rating": rows % 5 + 1})
        frame = frame.sample(fraction=1, shuffle=True, seed=0)
        frame.write_csv(tmp_path / "r.csv")
        arguments = [str(tmp_path / "r.csv"), str(tmp_path / "out"), str(round(4 * millions))]
        done = subprocess.run(
            [sys.executable, "-c", CHILD, *arguments], capture_output=True, text=True, check=True
        )
        peak[millions] = int(done.stdout)
        source = parquet(tmp_path / "out", by="user")
        assert sum(source.rows(n) for n in range(len(source))) == len(rows)
        found = pl.concat([pl.read_parquet(p) for p in (tmp_path / "out").glob("part-*.parquet")])
        ids = {
            r: pl.read_parquet(tmp_path / "out" / f"{r}s.parquet")["id"] for r in ("user", "item")
        }
        back = pl.DataFrame(
            {
                "user": ids["user"].gather(found["user"]),
                "item": ids["item"].gather(found["item"]),
                "rating": found["rating"].cast(pl.Int64),
            }
        )
        assert back.sort("user", "item").equals(frame.sort("user", "item"))
    assert peak[5] < peak[0.5] + 60
