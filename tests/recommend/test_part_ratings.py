"""Ratings in parts: what is found in all of them, and how they are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.errors import FileError, RatingsError
from svmp.parts.sources import InMemory, as_source
from svmp.ratings import Ratings, partition
from svmp.recommend.commands.in_parts import is_in_parts
from svmp.recommend.out_of_core import history_of, parts_of
from svmp.recommend.part_ratings import RatingParts, held_table, is_held, summarise
from svmp.recommend.part_reader import PartReader
from tests.recommend.tools import drawn


def quiet(text: str) -> None:
    """Report nothing."""


def rows_of(table: Ratings, rows: Any) -> dict[str, Any]:
    return {
        "user": table.user_ids[table.user[rows]],
        "item": table.item_ids[table.item[rows]],
        "rating": table.rating[rows],
    }


def in_parts(table: Ratings, count: int = 3) -> InMemory:
    """Divide by the last digit of the key of the user."""
    pieces = [rows_of(table, table.user % count == part) for part in range(count)]
    return InMemory(tuple(pieces))


def opened(source: Any, share: float = 0.2, **options: Any) -> RatingParts:
    reader = PartReader(source, **options)
    return RatingParts.of(reader, summarise(reader, quiet), 0, share)


@pytest.mark.parametrize("words", [False, True])
def test_summary_is_that_of_all_ratings(words: bool) -> None:
    table = drawn(0, words=words)
    found = summarise(PartReader(in_parts(table)), quiet)
    assert (found.users, found.items, found.ratings) == (60, 40, 1200)
    assert found.item_ids.tolist() == table.item_ids.tolist()
    assert sorted(found.user_ids.tolist()) == table.user_ids.tolist()
    assert found.mean == pytest.approx(table.rating.mean(dtype=np.float64), rel=1e-12)
    assert found.std == pytest.approx(table.rating.std(dtype=np.float64), rel=1e-12)
    assert (found.low, found.high) == (table.rating.min(), table.rating.max())
    counts = dict(zip(table.user_ids.tolist(), np.bincount(table.user).tolist(), strict=True))
    assert dict(zip(found.user_ids.tolist(), found.counts.tolist(), strict=True)) == counts


@pytest.mark.parametrize("words", [False, True])
def test_history_of_partitioned_ratings_is_that_of_the_table(words: bool, tmp_path: Path) -> None:
    table = drawn(0, words=words)
    reader = PartReader(partition(table, tmp_path / "parts", parts=4))
    about = summarise(reader, quiet)
    history = history_of(RatingParts.of(reader, about, 0, 0.0), about, quiet)
    found = set(zip(history.user.tolist(), history.item.tolist(), history.rating, strict=True))
    assert found == set(zip(table.user.tolist(), table.item.tolist(), table.rating, strict=True))
    assert about.user_ids.tolist() == table.user_ids.tolist()
    assert about.item_ids.tolist() == table.item_ids.tolist()


def test_every_rating_is_either_held_out_or_not(tmp_path: Path) -> None:
    table = drawn(0)
    chosen = []
    for count in (2, 5):
        parts = opened(partition(table, tmp_path / str(count), parts=count))
        held, kept = held_table(parts, quiet), parts.only(False)
        assert 150 < len(held) < 330
        assert len(held) + sum(len(kept.load(part)) for part in range(count)) == 1200
        chosen.append(set(zip(held.user.tolist(), held.item.tolist(), strict=True)))
    assert chosen[0] == chosen[1]  # however the ratings are divided


def test_held_out_pairs_depend_on_the_seed_and_the_share() -> None:
    user, item = np.divmod(np.arange(100_000), 250)
    first, other = (is_held(user, item, seed, 0.1) for seed in (0, 1))
    assert abs(first.mean() - 0.1) < 0.005
    assert abs((first & other).mean() - 0.01) < 0.002
    assert not is_held(user, item, 0, 0.0).any()
    assert (is_held(user, item, 0, 0.2) >= first).all()


def test_user_in_two_parts_is_refused() -> None:
    rows = {"user": [1, 1, 2], "item": [1, 2, 1], "rating": [1.0, 2.0, 3.0]}
    more = {"user": [3, 2], "item": [1, 2], "rating": [1.0, 2.0]}
    with pytest.raises(RatingsError, match=r"user 2 is in part 0 and in part 1.*partition"):
        summarise(PartReader(as_source([rows, more])), quiet)


def test_repeated_pairs_follow_the_rule() -> None:
    rows = {"user": [1, 2, 1], "item": [7, 7, 7], "rating": [1.0, 2.0, 4.0]}
    with pytest.raises(RatingsError, match="part 0, row 3: user 1 has rated item 7 already"):
        opened(InMemory((rows,)))
    parts = opened(InMemory((rows,)), share=0.0, duplicates="mean")
    assert sorted(parts.keyed(0).rating.tolist()) == [2.0, 2.5]


@pytest.mark.parametrize(
    ("rating", "message"),
    [(np.nan, "part 0.*there is no rating"), (np.inf, "part 0.*inf"), (9.0, "part 0.*9")],
)
def test_invalid_ratings_are_refused_with_their_part(rating: float, message: str) -> None:
    rows = {"user": [1, 2], "item": [7, 7], "rating": [1.0, rating]}
    with pytest.raises(RatingsError, match=message):
        opened(InMemory((rows,)), span=(1, 5))


def test_ids_of_two_kinds_are_refused() -> None:
    numbers = {"user": [1], "item": [7], "rating": [1.0]}
    words = {"user": ["ann"], "item": [8], "rating": [1.0]}
    with pytest.raises(RatingsError, match="part 1: the users are not of the same kind"):
        summarise(PartReader(as_source([numbers, words])), quiet)


def test_empty_parts_have_no_users() -> None:
    none = {name: np.zeros(0, np.int64) for name in ("user", "item", "rating")}
    some = {"user": [4, 4], "item": [1, 2], "rating": [1.0, 2.0]}
    parts = opened(InMemory((none, some, none)), share=0.0)
    assert parts.first.tolist() == [0, 0, 1, 1]
    assert [parts.rows(part) for part in range(3)] == [0, None, 0]
    with pytest.raises(RatingsError, match="no ratings in any part"):
        summarise(PartReader(InMemory((none, none))), quiet)


def test_part_that_changes_is_refused() -> None:
    rows: dict[str, Any] = {"user": [4, 5], "item": [1, 2], "rating": [1.0, 2.0]}
    parts = opened(InMemory((rows,)))
    rows["item"] = [1, 3]
    with pytest.raises(FileError, match="part 0: the part has changed"):
        parts.keyed(0)
    rows["item"], rows["user"] = [1, 2], [4, 4]
    with pytest.raises(FileError, match="part 0: the part has changed"):
        parts.keyed(0)


def test_missing_ids_beside_the_parts_are_reported(tmp_path: Path) -> None:
    partition(drawn(0), tmp_path / "parts", parts=2)
    (tmp_path / "parts" / "items.parquet").unlink()
    with pytest.raises(FileError, match=r"items\.parquet"):
        summarise(PartReader(svmp.parquet(tmp_path / "parts")), quiet)


def test_only_needed_columns_are_read(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    rows = {"note": [["a"], ["b"]], "movieId": [7, 8], "userId": [1, 2], "stars": [1.0, 2.0]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    source = parts_of(tmp_path / "a.parquet", None)
    assert set(source.load(0).columns) == {"userId", "movieId", "stars"}
    chosen = parts_of(tmp_path, ("movieId", "userId", "stars"))
    about = summarise(PartReader(chosen, ("movieId", "userId", "stars")), quiet)
    assert about.user_ids.tolist() == [7, 8]
    with pytest.raises(RatingsError, match=r"a\.parquet: there is no column 'who'"):
        parts_of(tmp_path, ("who", "movieId", "stars"))


def test_hidden_files_do_not_make_a_folder_one_of_parts(tmp_path: Path) -> None:
    (tmp_path / ".draft.parquet").touch()
    assert not is_in_parts(tmp_path)
    (tmp_path / "0.parquet").touch()
    assert is_in_parts(tmp_path)


def test_unreadable_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(RatingsError, match=f"{tmp_path.name}: .*[Pp]ermission"):
        is_in_parts(tmp_path)
