"""Divide ratings into parts, for `partition`.

The source is read twice. The first pass collects the ids and counts their rows; users (or items)
are then cut into blocks of about equal numbers of rows. The second pass appends each row, with
keys instead of ids, to the file of its block; each block is then sorted and written as a part. In
memory are the ids, one batch, and one part at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import FileError, ModelError, RatingsError, called
from svmp.parts.parquet_files import parquet
from svmp.parts.splitting import blocks
from svmp.ratings.batches import RatingsFiles
from svmp.ratings.build import deduplicated, repeated_error
from svmp.ratings.columns import ColumnSelection
from svmp.ratings.keyed import KeyedFiles, KeyedRatings, KeyedTable, Records, Report, changed
from svmp.ratings.lines import MOST, refusing
from svmp.ratings.part_folder import part_name, write_ids, write_marker
from svmp.ratings.read import check_range, read_ratings
from svmp.ratings.read_options import ReadOptions
from svmp.ratings.table import Duplicates, Ratings

PER_ROW = 100
"""Bytes that a row takes while its part is sorted and written, about."""
PER_BATCH = 16
"""Memory that a batch takes, in multiples of its bytes of text, about."""
BATCH = (1 << 16, 1 << 25)
"""The least and the greatest number of bytes of text in a batch."""
MOST_PARTS = 100_000
Arrays = dict[str, NDArray[Any]]


@contextmanager
def keyed(source: Any, memory: int, options: ReadOptions, report: Report) -> Iterator[KeyedRatings]:
    """Yield the rows of a source, with keys instead of ids."""
    if not isinstance(source, str | os.PathLike):
        yield KeyedTable(read_ratings(source, **options))
        return
    with _files(Path(source), memory, options) as files:
        if files.is_array_file:
            yield KeyedTable(read_ratings(source, **options))
            return
        span, text_ids = check_range(options.get("range")), options.get("text_ids", ())
        with refusing(files.source, OSError):
            rows = KeyedFiles(files, span, text_ids, report)
        yield rows


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


def assign(
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
    by: str
    block: NDArray[np.int32]
    duplicates: Duplicates

    @property
    def parts(self) -> int:
        """Return the number of parts."""
        return int(self.block[-1]) + 1

    def write(self, folder: Path, report: Report) -> None:
        """Write all files of the folder."""
        self._spill(folder, report)
        written = 0
        for part in range(self.parts):
            written += self._write_part(folder, part)
            report(f"{part + 1:,} of {self.parts:,} parts written")
        write_ids(folder, self.rows.ids)
        about = {"by": self.by, "rows": written}
        write_marker(folder, self.parts, about)

    def _spill(self, folder: Path, report: Report) -> None:
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
        other = "item" if self.by == "user" else "user"
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
