"""The best items of many users in a Parquet or CSV file, written block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ExtraError, FileError
from svmp.recommend.ranking import Block
from svmp.recommend.side import Floats
from svmp.writing import as_path, check_place, written_beside

ROWS = 500_000
"""Rows that are written at a time: a row group of Parquet."""
COLUMNS = ("user", "rank", "item", "score", "unclipped", "sd")
HEADER = ",".join(f'"{name}"' for name in COLUMNS).encode()
STARTS = {".parquet": b"PAR1", ".csv": HEADER}
"""The first bytes of files that may be replaced, by their suffix."""
Write = Callable[[dict[str, Any]], None]


class Exported(NamedTuple):
    """What `recommend_all` has written.

    Attributes
    ----------
    path
        The file.
    users, rows
        Numbers of users with recommendations, and of recommendations.
    skipped
        Ids of users that are not in the model, and were skipped.
    """

    path: Path
    users: int
    rows: int
    skipped: tuple[Any, ...]


def check_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file of recommendations; raise if it cannot be written."""
    target = as_path(path)
    start = STARTS.get(target.suffix)
    if start is None:
        raise FileError(
            f"{target}: recommendations are written to .parquet or .csv, not {target.suffix!r:.20}"
        )

    def ours(there: Path) -> bool:
        with there.open("rb") as file:
            return file.read(len(start)) in (b"", start)

    check_place(target, ours, "a table of recommendations")
    return target


def write_blocks(
    target: Path,
    user_ids: NDArray[Any],
    item_ids: NDArray[Any],
    blocks: Iterable[tuple[slice, Block]],
    on_scale: Callable[[Floats], Floats],
) -> tuple[int, int]:
    """Write blocks of users; return how many users have items, and the number of rows."""
    users = rows = 0
    pa = _pyarrow()
    labels = pa.array(user_ids.tolist()), pa.array(item_ids.tolist())
    waiting: list[tuple[NDArray[np.int64], Block]] = []
    with written_beside(target) as draft, _writer(draft) as write:
        for some, block in blocks:
            waiting.append((np.arange(some.start, some.start + len(block.items)), block))
            rows += int((block.items >= 0).sum())
            users += int((block.items >= 0).any(axis=1).sum())
            if sum(block.items.size for _, block in waiting) >= ROWS:
                write(_table(waiting, labels, on_scale))
                waiting = []
        if waiting or not rows:
            write(_table(waiting, labels, on_scale))
    return users, rows


def _table(
    waiting: list[tuple[NDArray[np.int64], Block]],
    labels: tuple[Any, Any],
    on_scale: Callable[[Floats], Floats],
) -> dict[str, Any]:
    """Return the rows of some blocks as columns."""
    pa = _pyarrow()
    user, rank, item = (np.zeros(0, np.int64) for _ in range(3))
    raw, stds = np.zeros((2, 0), np.float32)
    if waiting:
        item = np.concatenate([block.items.ravel() for _, block in waiting])
        raw, stds = (
            np.concatenate([x.ravel() for x in values]).astype(np.float32, copy=False)
            for values in zip(*((block.raw, block.stds) for _, block in waiting), strict=True)
        )
        n = waiting[0][1].items.shape[1]
        places = np.concatenate([places for places, _ in waiting])
        user, rank = np.repeat(places, n), np.tile(np.arange(1, n + 1), len(places))
    there = item >= 0
    numbers = {"rank": rank.astype(np.int32), "score": on_scale(raw), "unclipped": raw, "sd": stds}
    columns = {name: pa.array(values[there]) for name, values in numbers.items()}
    columns["user"] = labels[0].take(pa.array(user[there]))
    columns["item"] = labels[1].take(pa.array(item[there]))
    return {name: columns[name] for name in COLUMNS}


@contextmanager
def _writer(draft: Path) -> Iterator[Write]:
    """Yield a function that writes columns behind those that were written before."""
    pa = _pyarrow()
    kept: list[Any] = []

    def write(columns: dict[str, Any]) -> None:
        table = pa.table(columns)
        if not kept:
            make = pa.parquet.ParquetWriter if draft.suffix == ".parquet" else pa.csv.CSVWriter
            kept.append(make(str(draft), table.schema))
        kept[0].write_table(table)

    try:
        yield write
    finally:
        for one in kept:
            one.close()


def _pyarrow() -> Any:
    """Return PyArrow; raise with the pip command if it is not installed."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ExtraError(error, "parts") from None
    return pyarrow
