"""`partition`: write ratings as a data set in parts, for data that do not fit into memory.

The source is read twice. The first pass collects the ids and counts their rows; users (or items)
are then cut into blocks of about equal numbers of rows. The second pass appends each row, with
keys instead of ids, to the file of its block; each block is then sorted and written as a part. In
memory are the ids, one batch, and one part at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from svmp.errors import FileError, ModelError, RatingsError, called
from svmp.network.validation import shown
from svmp.parts.memory import parse_memory
from svmp.parts.parquet_files import ParquetSource, parquet
from svmp.parts.splitting import blocks
from svmp.ratings.batches import RatingsFiles
from svmp.ratings.build import check_duplicates, deduplicated, repeated_error
from svmp.ratings.columns import Columns, ColumnSelection
from svmp.ratings.keyed import KeyedFiles, KeyedRatings, KeyedTable, Records, changed
from svmp.ratings.lines import MOST, refusing
from svmp.ratings.part_folder import (
    check_place,
    drafted,
    part_name,
    write_ids,
    write_marker,
)
from svmp.ratings.read import check_options, check_range, read_ratings
from svmp.ratings.table import Duplicates, Ratings

PER_ROW = 100
"""Bytes that a row takes while its part is sorted and written, about."""
PER_BATCH = 16
"""Memory that a batch takes, in multiples of its bytes of text, about."""
BATCH = (1 << 16, 1 << 25)
"""The least and the greatest number of bytes of text in a batch."""
MOST_PARTS = 100_000
Arrays = dict[str, NDArray[Any]]


class ReadOptions(TypedDict, total=False):
    """Options of `read_ratings` that `partition` takes."""

    columns: Columns | None
    duplicates: Duplicates
    range: tuple[float, float] | None
    header: bool | None
    encoding: str
    events: bool
    max_unpacked: int
    text_ids: Collection[str]


def partition(
    source: Any,
    directory: str | os.PathLike[str],
    *,
    by: Literal["user", "item"] = "user",
    parts: int | None = None,
    rows_per_part: int = 1_000_000,
    memory: str | float = "1GB",
    report: Callable[[str], None] = lambda text: None,
    **options: Unpack[ReadOptions],
) -> ParquetSource:
    """Write ratings as Parquet parts, in which all ratings of a user are in the same part.

    Parameters
    ----------
    source
        Anything that `read_ratings` reads, or a folder or pattern of Parquet files. Text and
        Parquet are read in batches, so they may be larger than the memory.
    directory
        The folder to write; one that was written by this function is replaced.
    by
        "user" or "item": what the rows are divided by.
    parts
        Number of parts; by default as many as `rows_per_part` gives.
    rows_per_part
        Number of rows of a part, about.
    memory
        Memory to use, as "1GB", in addition to some 200 MB of the program and to the distinct ids.
    report
        Function that is called with a line of text as the work proceeds.
    **options
        Options of `read_ratings`: columns, duplicates, range, header, encoding, events,
        max_unpacked, text_ids.

    Returns
    -------
    ParquetSource
        The parts. Each has `user` and `item` (int32 keys), `rating` (float32) and, if the source
        has it, `time` (float64), sorted by keys. The ids by key are in `users.parquet` and
        `items.parquet` beside them.
    """
    if by not in ("user", "item"):
        raise ModelError(f"{called('by')} must be 'user' or 'item', not {shown(by)}")
    for name, number in {"parts": parts, "rows_per_part": rows_per_part}.items():
        if number is not None and (type(number) is not int or number < 1):
            raise ModelError(f"{called(name)} must be a whole number from 1, not {shown(number)}")
    size = parse_memory(memory)
    target = check_place(directory)
    duplicates = options.get("duplicates", "error")
    check_duplicates(duplicates)
    check_options(options.get("max_unpacked", MOST), options.get("text_ids", ()))
    files: Any = nullcontext()
    if isinstance(source, str | os.PathLike):
        files = _files(Path(source), size, options)
    with files:
        if files_in_batches := isinstance(files, RatingsFiles) and not files.is_array_file:
            span, text_ids = check_range(options.get("range")), options.get("text_ids", ())
            with refusing(files.source, OSError):
                rows: KeyedRatings = KeyedFiles(files, span, text_ids, report)
        else:
            rows = KeyedTable(read_ratings(source, **options))
        block = _assign(rows.counts[by], parts, rows_per_part, size)
        work = Partition(rows, by, block, duplicates if files_in_batches else "error")
        with drafted(target) as draft:
            work.write(draft, report)
    return parquet(target, by=by)


def _files(source: Path, memory: int, options: ReadOptions) -> RatingsFiles:
    least, most = BATCH
    return RatingsFiles(
        source,
        ColumnSelection(options.get("columns"), options.get("events", False)),
        options.get("header"),
        options.get("encoding", "utf-8"),
        options.get("max_unpacked", MOST),
        min(max(memory // (2 * PER_BATCH), least), most),
    )


def _assign(
    counts: NDArray[np.int64], parts: int | None, rows_per_part: int, memory: int
) -> NDArray[np.int32]:
    """Return the part of each key; raise if a part would not fit into memory."""
    rows, fits = int(counts.sum()), max(memory // PER_ROW, 1)
    if parts is None:
        parts = -(-rows // min(rows_per_part, fits))
    if parts > MOST_PARTS:
        raise ModelError(
            f"{parts:,} parts are too many; use fewer, with more {called('rows_per_part')} or "
            f"{called('memory')}"
        )
    block = blocks(counts, parts)
    largest = int(np.bincount(block, counts).max())
    if largest > max(2 * fits, 1000):
        raise ModelError(
            f"a part of {largest:,} rows needs about {PER_ROW * largest / 1e6:,.0f} MB; allow it "
            f"with {called('memory')}, or use more {called('parts')}"
        )
    return block


@dataclass(frozen=True, eq=False)
class Partition:
    """Writes rows into parts.

    Attributes
    ----------
    rows
        The rows.
    by
        "user" or "item".
    block
        The part of each user or item.
    duplicates
        How to treat repeated pairs.
    """

    rows: KeyedRatings
    by: Literal["user", "item"]
    block: NDArray[np.int32]
    duplicates: Duplicates

    @property
    def parts(self) -> int:
        """Return the number of parts."""
        return int(self.block[-1]) + 1

    def write(self, folder: Path, report: Callable[[str], None]) -> None:
        """Write all files of the folder."""
        self._spill(folder, report)
        written = 0
        for part in range(self.parts):
            written += self._write_part(folder, part)
            report(f"{part + 1:,} of {self.parts:,} parts written")
        write_ids(folder, self.rows.ids)
        about = {"by": self.by, "rows": written}
        write_marker(folder, self.parts, about)

    def _spill(self, folder: Path, report: Callable[[str], None]) -> None:
        """Append each row to the file of its part."""
        done = 0
        for batch in self.rows.batches():
            part = self.block[batch[self.by]]
            order = np.argsort(part, kind="stable")
            batch, part = batch[order], part[order]
            starts = np.flatnonzero(np.diff(part, prepend=-1))
            for first, end in zip(starts, [*starts[1:], len(part)], strict=True):
                with _spilled(folder, int(part[first])).open("ab") as file:
                    batch[first:end].tofile(file)
            done += len(batch)
            report(f"{done:,} of {self.rows.rows:,} ratings divided")

    def _write_part(self, folder: Path, part: int) -> int:
        """Sort and write a part, read it back, and return its number of rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        spilled, target = _spilled(folder, part), folder / part_name(part)
        spilled.touch()  # users without ratings may be alone in a part
        records = np.fromfile(spilled, self.rows.kind)
        if len(records) != int(self.rows.counts[self.by][self.block == part].sum()):
            raise changed(self.rows.name)
        spilled.unlink()
        columns = self._sorted(_columns(records))
        count = len(columns["user"])
        pq.write_table(
            pa.table(columns),
            target,
            compression="zstd",
            row_group_size=max(count, 1),
            write_page_checksum=True,
        )
        found = parquet(target).load(0)
        if any(not np.array_equal(found[name], array) for name, array in columns.items()):
            raise FileError(f"{target}: what was written is not what is read back")
        return count

    def _sorted(self, columns: Arrays) -> Arrays:
        """Return rows sorted by keys, one for each pair."""
        pair = self._pairs(columns)
        order = np.argsort(pair, kind="stable")
        repeated = np.flatnonzero(pair[order[1:]] == pair[order[:-1]])
        if len(repeated):
            if self.duplicates == "error":
                row = order[repeated[0]]
                raise self._repeated(int(columns["user"][row]), int(columns["item"][row]))
            columns = self._deduplicated(columns, pair)
            order = np.argsort(self._pairs(columns))
        return {name: array[order] for name, array in columns.items()}

    def _pairs(self, columns: Arrays) -> NDArray[np.int64]:
        """Return a number for each row that sorts by the keys of its pair."""
        other: Literal["user", "item"] = "item" if self.by == "user" else "user"
        return columns[self.by].astype(np.int64) * len(self.rows.ids[other]) + columns[other]

    def _deduplicated(self, columns: Arrays, pair: NDArray[np.int64]) -> Arrays:
        no_ids = np.zeros(0, np.int64)
        table = Ratings(user_ids=no_ids, item_ids=no_ids, **columns)
        kept = deduplicated(table, pair, self.duplicates)
        found: Arrays = {"user": kept.user, "item": kept.item, "rating": kept.rating}
        return found if kept.time is None else found | {"time": kept.time}

    def _repeated(self, user: int, item: int) -> RatingsError:
        """Return the error of a repeated pair, with the places of its first two rows."""
        ids = self.rows.ids["user"][user], self.rows.ids["item"][item]
        first, second, *_ = [*self.rows.places(user, item), "", ""]
        return repeated_error(first, second or self.rows.name, *ids)


def _columns(records: Records) -> Arrays:
    """Return the fields of rows as arrays of their own, which are faster to sort by."""
    return {name: np.ascontiguousarray(records[name]) for name in records.dtype.names or ()}


def _spilled(folder: Path, part: int) -> Path:
    return folder / f"rows-{part:05}.bin"
