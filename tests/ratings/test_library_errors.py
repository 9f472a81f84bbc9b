"""Untrusted files: panics of libraries, decompression bombs, false sizes, other encodings."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from svmp.errors import FileError, RatingsError, naming
from svmp.ratings import parquet, read_ratings
from svmp.ratings.library_errors import reading
from svmp.ratings.lines import LONGEST, MOST
from tests.fuzz.reader_mutants import npy, zipped
from tests.ratings.tools import contents, expected, random_table
from tests.ratings.tools import parquet as parquet_file

GOOD = "user,item,rating\n1,2,3\n4,5,6\n"


class PanicException(BaseException):
    """A panic as Rust libraries raise it: not an Exception."""


def panic(*_: Any, **__: Any) -> Any:
    raise PanicException("called `Option::unwrap()` on a `None` value")


def refused(source: Any, **options: Any) -> str:
    with pytest.raises(RatingsError) as caught:
        read_ratings(source, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- panics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["read_parquet", "read_parquet_schema"])
def test_panic_becomes_one_sentence(
    function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet_file(random_table(1), tmp_path)
    monkeypatch.setattr(pl, function, panic)
    assert f"{path}: the file is damaged or cut short (called" in refused(path)


def test_panic_after_reading_becomes_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.csv"
    path.write_text(GOOD)
    monkeypatch.setattr(pl.Series, "unique", panic)
    assert f"{path}: the file is damaged" in refused(path)
    assert "ratings: the file is damaged" in refused(([1], [2], [3]))


def test_only_errors_of_readers_are_converted() -> None:
    for ours in (KeyboardInterrupt, SystemExit):
        with pytest.raises(ours), reading():
            raise ours
    with pytest.raises(ZeroDivisionError), reading(OSError):
        raise ZeroDivisionError
    with pytest.raises(FileError, match="memory"), reading(OSError):
        raise MemoryError


# --- Parquet that claims too much ----------------------------------------------------------------


def zigzag(value: int) -> bytes:
    value = 2 * value
    found = b""
    while value >= 128:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def claiming(path: Path, rows: int) -> None:
    """Replace every number of rows and of values in the footer of a file with 200 rows."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[-8:-4], "little")
    footer = raw[-8 - length : -8].replace(b"\x16" + zigzag(200), b"\x16" + zigzag(rows))
    head = raw[: -8 - length]
    path.write_bytes(head + footer + struct.pack("<I", len(footer)) + b"PAR1")


@pytest.mark.parametrize("rows", [201, 10**12, 2**58])
def test_numbers_of_rows_are_checked(rows: int, tmp_path: Path) -> None:
    """Polars would allocate memory for all of them, and the process might be killed."""
    path = parquet_file(random_table(1), tmp_path)
    claiming(path, 200)
    assert len(read_ratings(path)) == 200
    claiming(path, rows)
    said = refused(path)
    assert "damaged" in said or "unpacks to more than" in said


def test_highly_compressible_rows_count_by_their_size_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    pl.DataFrame(
        {"user": [1] * 100_000, "item": [2] * 100_000, "rating": [3] * 100_000}
    ).write_parquet(path)
    assert path.stat().st_size < 10_000
    assert "unpacks to more than 1,000,000 bytes" in refused(path, max_unpacked=1_000_000)
    assert "user 1 has rated item 2 already" in refused(path)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"data_page_version": "2.0", "compression": "zstd"},
        {"use_dictionary": False, "data_page_size": 100, "row_group_size": 70},
        {"use_dictionary": False, "column_encoding": {"user": "DELTA_BINARY_PACKED"}},
        {"compression": "none", "write_page_index": True},
    ],
)
def test_valid_files_pass(options: dict[str, Any], tmp_path: Path) -> None:
    """Files written by another library, with columns of lists and structures, and with nulls."""
    table = random_table(4)
    columns = {"user": table.user, "item": table.item, "rating": table.rating, "time": table.time}
    others = {"list": [[1, 2]] * 200, "pair": [{"a": 1, "b": None}] * 200, "null": [None] * 200}
    if "column_encoding" in options:
        others = {}
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({**columns, **others}), path, **options)
    assert contents(read_ratings(path)) == expected(table)
    assert parquet.read(path, MOST).equals(pl.read_parquet(path))


def test_file_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    pl.DataFrame(schema={"user": pl.Int64, "item": pl.Int64, "rating": pl.Int64}).write_parquet(
        path
    )
    assert "there are no ratings" in refused(path)


# --- archives ------------------------------------------------------------------------------------


def test_endless_line_is_not_read_completely(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(20):
            file.write(bytes(LONGEST))
    assert "line 1: the line has more than 1,000,000 bytes" in refused(path)


def test_files_over_the_unpacked_size_limit_are_refused(tmp_path: Path) -> None:
    text = (GOOD + "".join(f"{n},7,3\n" for n in range(10_000))).encode()
    plain = tmp_path / "plain.csv"
    plain.write_bytes(text)
    assert len(read_ratings(plain, max_unpacked=1)) == 10_002  # it is not packed
    gz, zip = tmp_path / "r.csv.gz", tmp_path / "r.zip"
    gz.write_bytes(gzip.compress(text))
    zip.write_bytes(zipped({"ratings.csv": text}))
    prize = tmp_path / "prize"
    prize.mkdir()
    movie = b"7:\n" + b"".join(b"%d,3,2005-01-01\n" % n for n in range(2000))
    for name in ("mv_1.txt.gz", "mv_2.txt.gz"):
        (prize / name).write_bytes(gzip.compress(movie.replace(b"7:", name[3:4].encode() + b":")))
    for path, size in ((gz, len(text)), (zip, len(text)), (prize, 2 * len(movie))):
        said = refused(path, max_unpacked=size - 1)
        assert f"it unpacks to more than {size - 1:,} bytes" in said
        assert "read_ratings(..., max_unpacked=" in said
        with naming(flags=True):
            assert "--max-unpacked 10000000000" in refused(path, max_unpacked=size - 1)
        assert len(read_ratings(path, max_unpacked=size)) > 3000
    for wrong in (0, -1, 1.5, True, "many"):
        assert "max_unpacked must be a number of bytes" in refused(plain, max_unpacked=wrong)


def test_encrypted_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.zip"
    path.write_bytes(zipped({"ratings.csv": GOOD.encode()}, locked=True))
    assert "needs a password" in refused(path)


# --- arrays --------------------------------------------------------------------------------------


def arrays(**headers: str) -> bytes:
    """Return an .npz file of three rows with modified headers."""
    files = {}
    for name in ("user", "item", "rating"):
        header = (
            f"{{'descr': '<i8', 'fortran_order': False, 'shape': {headers.get(name, '(3,)')}, }}"
        )
        if name in headers and headers[name].startswith("{"):
            header = headers[name]
        files[f"{name}.npy"] = npy(header, np.arange(3).tobytes())
    return zipped(files)


@pytest.mark.parametrize(
    "header",
    [
        "(1000000000000,)",
        "(2, 3)",
        "(-3,)",
        "(4,)",
        "(10**30,)",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), ",
        "{",
    ],
)
def test_array_headers_are_checked_before_allocation(header: str, tmp_path: Path) -> None:
    path = tmp_path / "r.npz"
    path.write_bytes(arrays())
    assert len(read_ratings(path)) == 3
    path.write_bytes(arrays(user=header))
    assert "damaged" in refused(path)


def test_encrypted_or_oversized_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.npz"
    np.savez_compressed(path, user=np.arange(9999), item=np.ones(9999, int), rating=np.ones(9999))
    assert len(read_ratings(path)) == 9999
    assert "unpacks to more than 200,000 bytes" in refused(path, max_unpacked=200_000)
    found = io.BytesIO()
    with zipfile.ZipFile(path) as archive:
        found.write(zipped({n: archive.read(n) for n in archive.namelist()}, locked=True))
    path.write_bytes(found.getvalue())
    assert "needs a password" in refused(path)


# --- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("blank", ["", "   ", ",,", " , ,", "\t"])
def test_line_numbers_in_netflix_files_count_blank_lines(blank: str, tmp_path: Path) -> None:
    path = tmp_path / "mv_1.txt"
    path.write_text(f"7:\n1,3,2005-01-01\n{blank}\n2,4,2005-01-02\n")
    assert len(read_ratings(path)) == 2
    path.write_text(f"7:\n1,3,2005-01-01\n{blank}\n{blank}\n2,4,soon\n")
    assert f"{path}, line 5: the time is 'soon'" in refused(path)
    path.write_text(f"7:\n1,3,2005-01-01\n{blank}\n1,4,2005-01-02\n")
    assert f"{path}, line 4: user 1 has rated item 7 already ({path}, line 2)" in refused(path)


def test_netflix_files_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "mv_1.txt"
    path.write_text("7:\n1,3,2005-01-01\n", "utf-16")
    assert len(read_ratings(path, encoding="utf-16")) == 1


def test_encoding_advice_fits_the_interface(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes("user,item,rating\nJosé,2,3\n".encode("latin-1"))
    assert "as read_ratings(..., encoding='latin-1')" in refused(path)
    with naming(flags=True):
        assert "as --encoding latin-1" in refused(path)
    assert read_ratings(path, encoding="latin-1").user_ids.tolist() == ["José"]


# --- ids -----------------------------------------------------------------------------------------


def sources(ids: list[int], folder: Path) -> list[Any]:
    """One table of these users, in all kinds of typed and untyped sources."""
    count = len(ids)
    frame = pl.DataFrame(
        {"user": [str(i) for i in ids], "item": [1] * count, "rating": [3] * count}
    )
    frame.write_csv(folder / "a.csv")
    frame.write_csv(folder / "a.tsv", separator="\t", include_header=False)
    frame.write_parquet(folder / "text.parquet")
    text = "1:\n" + "".join(f"{i},3,2005-01-01\n" for i in ids)
    (folder / "mv_1.txt").write_text(text)
    found = [folder / name for name in ("a.csv", "a.tsv", "text.parquet", "mv_1.txt")]
    if min(ids) >= -(2**63) and max(ids) < 2**64:
        array = np.array(ids, np.uint64 if max(ids) >= 2**63 else np.int64)
        frame.with_columns(user=pl.Series(array)).write_parquet(folder / "whole.parquet")
        np.savez(folder / "a.npz", user=array, item=[1] * count, rating=[3] * count)
        keys = {"user": np.arange(count), "user_ids": array, "item": [0] * count, "item_ids": [1]}
        np.savez(folder / "keys.npz", **keys, rating=[3] * count)
        found += [folder / name for name in ("whole.parquet", "a.npz", "keys.npz")]
    return [*found, (ids, [1] * count, [3] * count), frame]


@pytest.mark.parametrize("largest", [7, 10**17, 10**18, 2**63 - 1])
def test_whole_numbers_are_int64(largest: int, tmp_path: Path) -> None:
    for source in sources([1, 2, largest], tmp_path):
        ratings = read_ratings(source)
        assert ratings.user_ids.dtype == np.int64, source
        assert sorted(ratings.user_ids.tolist()) == [1, 2, largest]


@pytest.mark.parametrize("largest", [2**63, 2**64 - 1, 10**25])
def test_too_large_whole_numbers_are_refused_in_all_formats(largest: int, tmp_path: Path) -> None:
    for source in sources([1, 2, largest], tmp_path):
        assert f"the user is {largest}, which is too big" in refused(source)
        if not str(source).endswith(".npz"):
            found = read_ratings(source, text_ids=["user"])
            assert sorted(found.user_ids.tolist()) == sorted(["1", "2", str(largest)])
            assert found.item_ids.tolist() == [1]
    assert "text_ids must be a list of" in refused(tmp_path / "a.csv", text_ids="user")
    assert "text_ids must be a list of" in refused(tmp_path / "a.csv", text_ids=["rating"])


@pytest.mark.parametrize("odd", ["007", "+7", "-0"])
def test_non_canonical_numbers_stay_distinct_ids(odd: str, tmp_path: Path) -> None:
    rows, path = range(1500), tmp_path / "r.csv"
    path.write_text("user,item,rating\n" + "".join(f"{n},1,3\n" for n in rows) + f"{odd},1,4")
    prize = tmp_path / "mv_1.txt"
    text = "1:\n" + "".join(f"{n},3,2005-01-01\n" for n in rows)
    prize.write_text(text + f"{odd},3,2005-01-01\n")
    for source in (path, prize):
        ratings = read_ratings(source)
        assert ratings.users == 1501
        assert ratings.user_ids[ratings.user[-1]] == odd


def test_ids_that_numpy_cannot_represent_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"user,item,rating\n{'x' * 1001},2,3\n")
    assert "line 2: the user has more than 1,000 characters" in refused(path)
    assert "has a zero byte" in refused((["a\0", "a"], [1, 2], [3, 4]))
