"""Recommendations in a file equal those in memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import svmp
from svmp.recommend import export, top
from svmp.recommend.loading import load
from svmp.recommend.service import demo
from tests.recommend.tools import fitted


def read(path: Path) -> pl.DataFrame:
    return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"exclude_seen": False, "n": 50},
        {"explore": "thompson", "seed": 3},
        {"explore": "ucb", "width": 2},
    ],
)
def test_file_has_what_recommend_returns(
    suffix: str, words: bool, options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "ROWS", 200)  # several row groups
    monkeypatch.setattr(top, "BLOCK", 7)
    monkeypatch.setattr("svmp.recommend.ranking.BLOCK", 7)
    model = fitted(words=words)
    written = model.recommend_all(tmp_path / f"top{suffix}", **options)
    table = read(written.path)
    wanted = model.recommend(model.users_.ids, **options)
    frame = wanted.to_polars()
    assert table.columns == ["user", "rank", "item", "score", "unclipped", "sd"]
    for name in ("user", "rank", "item"):
        assert table[name].to_list() == frame[name].to_list()
    for name in ("score", "sd"):
        np.testing.assert_allclose(table[name], frame[name], rtol=1e-6)
    assert wanted.raw is not None
    np.testing.assert_allclose(table["unclipped"], wanted.raw[wanted.raw == wanted.raw], rtol=1e-6)
    assert (written.users, written.rows, written.skipped) == (60, len(table), ())


def test_some_users_with_candidates_of_their_own(tmp_path: Path) -> None:
    model = fitted()
    users = [model.users_.ids[5].item(), 99_999, model.users_.ids[2].item()]
    lists = [[7, 14], [21], []]
    options: Any = {"candidates": lists, "exclude_seen": False, "unknown": "skip"}
    written = model.recommend_all(tmp_path / "top.parquet", users=users, **options)
    assert (written.users, written.rows, written.skipped) == (1, 2, (99_999,))
    assert set(read(written.path)["item"]) == {7, 14}
    empty = model.recommend_all(tmp_path / "top.parquet", users=[])
    assert (empty.users, empty.rows) == (0, 0)
    assert read(empty.path).columns == list(export.COLUMNS)
    with pytest.raises(svmp.ModelError, match="no user 99999"):
        model.recommend_all(tmp_path / "top.parquet", users=users)
    with pytest.raises(svmp.ModelError, match="a list of ids"):
        model.recommend_all(tmp_path / "top.parquet", users=users[0])


def test_the_same_bits_on_any_threads(tmp_path: Path) -> None:
    files = []
    for threads in (1, 2):
        with svmp.kernels.machine.threads.use_threads(threads, tell=False):
            written = fitted().recommend_all(tmp_path / f"{threads}.parquet", explore="ucb")
        files.append(written.path.read_bytes())
    assert files[0] == files[1]


def test_other_files_are_left_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted()
    for name in ("letter.csv", "letter.parquet"):
        (tmp_path / name).write_text("Dear reader")
        with pytest.raises(svmp.FileError, match="not a table of recommendations"):
            model.recommend_all(tmp_path / name)
        assert (tmp_path / name).read_text() == "Dear reader"
    with pytest.raises(svmp.FileError, match=r"to \.parquet or \.csv, not '\.xls'"):
        model.recommend_all(tmp_path / "top.xls")
    for name in ("top.csv", "top.parquet"):
        model.recommend_all(tmp_path / name)
        before = (tmp_path / name).read_bytes()
        model.recommend_all(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(export, "_table", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.recommend_all(tmp_path / "top.parquet", n=1)
    assert (tmp_path / "top.parquet").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 4


def test_memory_does_not_grow_with_the_number_of_users(tmp_path: Path) -> None:
    model = load(demo.MODEL)
    most = []
    for times in (20, 200):
        users = np.tile(model.users_.ids[:500], times)
        tracemalloc.start()
        model.recommend_all(tmp_path / "top.parquet", n=2, users=users, progress=False)
        most.append(tracemalloc.get_traced_memory()[1] / len(users))
        tracemalloc.stop()
    assert most[1] * 100_000 < 60e6
    assert most[1] < most[0]
