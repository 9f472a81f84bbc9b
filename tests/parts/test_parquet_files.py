"""Parquet parts: what was written is loaded; missing, damaged and changed files are named."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from svmp.errors import FileError, ModelError
from svmp.parts.parquet_files import MARKER, parquet


def write(folder: Path, file: str, groups: int = 1, **columns: Any) -> Path:
    path = folder / file
    table = pa.table(columns)
    size = max(1, -(-len(table) // groups))
    pq.write_table(table, path, row_group_size=size, write_page_checksum=True)
    return path


@pytest.fixture
def three(tmp_path: Path) -> Path:
    for n in range(3):
        user = np.arange(4) + 4 * n
        write(tmp_path, f"{n}.parquet", 2, user=user, rating=user / 2, name=list("abcd"))
    return tmp_path


def users(source: Any) -> list[list[int]]:
    return [source.load(n).user.tolist() for n in range(len(source))]


FILES = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_files_folders_patterns_and_lists(three: Path) -> None:
    paths = [three / f"{n}.parquet" for n in (2, 0, 1)]
    for given in (three, str(three), three / "*.parquet", f"{three}/?.parquet", paths):
        source = parquet(given, by="user")
        assert users(source) == FILES
        assert [source.rows(n) for n in range(3)] == [4, 4, 4]
    assert users(parquet(paths[0])) == FILES[2:]
    assert [source.name(n) for n in range(3)] == [str(p) for p in sorted(paths)]


def test_row_groups_are_parts(three: Path) -> None:
    source = parquet(three, row_groups=True)
    assert users(source) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
    assert source.name(3) == f"{three}/1.parquet, row group 1"
    assert len({source.fingerprint(n) for n in range(6)}) == 6


def test_chosen_columns_and_the_one_divided_by(three: Path) -> None:
    assert parquet(three).load(0).columns == ("user", "rating", "name")
    assert parquet(three, columns=["rating"], by="user").load(0).columns == ("rating", "user")
    for arguments in ({"by": "item"}, {"columns": ["user", "item"]}):
        with pytest.raises(FileError, match=r"0\.parquet: there is no column 'item'; there are 'u"):
            parquet(three, **arguments)
    with pytest.raises(ModelError, match="columns must be a list of names, not 'user'"):
        parquet(three, columns="user")


def test_types_and_missing_values(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "a.parquet",
        i=pa.array([1, None], pa.int32()),
        f=pa.array([None, 2.5], pa.float32()),
        s=["a", None],
        d=pa.array(["x", "x"]).dictionary_encode(),
        b=[True, None],
        t=pa.array([0, 86_400], pa.timestamp("s")),
        n=pa.nulls(2),
    )
    part = parquet(path).load(0)
    np.testing.assert_equal(part.i, [1.0, np.nan])
    np.testing.assert_equal(part.f, [np.nan, 2.5])
    np.testing.assert_equal(part.b, [1.0, np.nan])
    np.testing.assert_equal(part.n, [np.nan, np.nan])
    assert part.s.tolist() == ["a", None]
    assert part.labels("d").tolist() == ["x"]
    assert part.t[1] - part.t[0] == np.timedelta64(1, "D")
    with pytest.raises(ModelError, match=r"a\.parquet, row 2: there is no 's'"):
        part.keys("s")
    with pytest.raises(FileError, match=r"a\.parquet, row 2: there is no 'i', which the parts are"):
        parquet(path, by="i").load(0)


def test_unfit_columns_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", user=[1], more=[[1, 2]])
    with pytest.raises(FileError, match=r"a\.parquet: column 'more' is of type list"):
        parquet(tmp_path)
    assert parquet(tmp_path, columns=["user"]).load(0).user.tolist() == [1]
    write(tmp_path, "b.parquet", user=["x"])
    with pytest.raises(FileError, match=r"b\.parquet: column 'user' has strings, but numbers in"):
        parquet(tmp_path, columns=["user"])


def test_missing_files_are_named(three: Path) -> None:
    with pytest.raises(FileError, match=r"x\.parquet: there is no such file"):
        parquet(three / "x.parquet")
    with pytest.raises(FileError, match=r"x\*\.parquet: there are no such files"):
        parquet(three / "x*.parquet")
    (three / "empty").mkdir()
    with pytest.raises(FileError, match="empty: there are no Parquet files"):
        parquet(three / "empty")
    with pytest.raises(FileError, match="the list is empty"):
        parquet([])
    with pytest.raises(FileError, match=r"0\.parquet: the file is named twice"):
        parquet([three / "0.parquet", three])
    with pytest.raises(ModelError, match="paths must be a path"):
        parquet(3)  # type: ignore[arg-type]
    source = parquet(three)
    (three / "1.parquet").unlink()
    for ask in (source.load, source.fingerprint):
        with pytest.raises(FileError, match=r"1\.parquet: there is no such file"):
            ask(1)
    assert source.load(2).user.tolist() == FILES[2]


def test_damaged_files_are_named(three: Path) -> None:
    path = three / "1.parquet"
    whole = path.read_bytes()
    source = parquet(three)
    for cut in (
        b"",
        b"PAR1",
        whole[:10],
        whole[:-1],
        whole[: len(whole) // 2],
        b"user,item\n1,2\n",
    ):
        path.write_bytes(cut)
        with pytest.raises(FileError, match=r"1\.parquet: "):
            parquet(three)
        with pytest.raises(FileError, match=r"1\.parquet: "):
            source.load(1)


def test_a_changed_byte_is_an_error_or_changes_no_value(three: Path) -> None:
    path = three / "1.parquet"
    whole = path.read_bytes()
    source = parquet(three)
    expected = {column: array.tolist() for column, array in source.load(1).items()}
    refused = 0
    for place in range(4, len(whole) - 8):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with suppress(FileError):
            refused += 1
            found = source.load(1)
            refused -= 1
            assert {column: array.tolist() for column, array in found.items()} == expected
    assert refused > 0.9 * len(whole)


def test_files_that_change_are_noticed(three: Path) -> None:
    source = parquet(three)
    before = source.fingerprint(1), source.fingerprint(0)
    write(three, "1.parquet", 2, user=np.arange(4), rating=np.ones(4), name=list("abcd"))
    with pytest.raises(FileError, match=r"1\.parquet: the file has changed"):
        source.load(1)
    assert parquet(three).fingerprint(1) != before[0]
    assert parquet(three).fingerprint(0) == before[1]


def test_fingerprints_do_not_depend_on_the_folder(three: Path, tmp_path: Path) -> None:
    before = [parquet(three).fingerprint(n) for n in range(3)]
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in three.glob("*.parquet"):
        path.rename(moved / path.name)
    assert [parquet(moved).fingerprint(n) for n in range(3)] == before


def test_a_source_can_be_sent_to_a_process_elsewhere(
    three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(three)
    sent = pickle.dumps(parquet("*.parquet"))
    monkeypatch.chdir("/")
    assert users(pickle.loads(sent)) == FILES


def test_an_empty_part(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", user=pa.array([], pa.int32()))
    part = parquet(tmp_path, by="user").load(0)
    assert (len(part), part.labels("user").tolist()) == (0, [])


def test_a_marker_lists_the_parts(three: Path) -> None:
    names = ["0.parquet", "2.parquet"]
    (three / MARKER).write_text(json.dumps({"format": 1, "parts": names}))
    for given in (three, three / "*.parquet"):
        assert users(parquet(given)) == [FILES[0], FILES[2]]
    (three / "2.parquet").unlink()
    with pytest.raises(FileError, match=r"2\.parquet: there is no such file"):
        parquet(three)
    for damaged in ("{", "[]", '{"format": 9, "parts": []}', '{"format": 1, "parts": ["../x"]}'):
        (three / MARKER).write_text(damaged)
        with pytest.raises(FileError, match=MARKER):
            parquet(three)


def test_columns_with_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.table([[1, 2], [3, 4], [0.5, 1.0]], names=["user", "user", "rating"])
    pq.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(FileError, match="2 columns are named 'user'"):
        parquet(tmp_path / "twice.parquet")
    assert parquet(tmp_path / "twice.parquet", columns=["rating"]).load(0)["rating"].sum() == 1.5
