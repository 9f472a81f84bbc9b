"""Read files of ratings in batches, so that memory does not grow with their size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import polars as pl

from svmp.errors import RatingsError
from svmp.parts.parquet_files import MARKER, WILD, files_of
from svmp.ratings import netflix_prize, packed, parquet, text
from svmp.ratings.columns import ColumnSelection
from svmp.ratings.convert import SourceColumns
from svmp.ratings.lines import TextFile, refusing, too_much
from svmp.ratings.read import files_at

PACKING = 1000
"""A Parquet file may unpack to this many times its size."""
ROW = 40
"""Bytes of a row of a Parquet file in memory, about."""


@dataclass
class RatingsFiles:
    """The files of a source of ratings, to be read in batches, as often as needed.

    Use it in a `with` block: an archive is unpacked into a temporary folder until its end.

    Attributes
    ----------
    source
        A file, a folder, an archive, or a pattern of Parquet files.
    choice
        Which columns to read.
    header
        Whether text has a header, None if this is to be detected.
    encoding, most
        Encoding of text, and limit of the unpacked size.
    size
        Number of bytes of text in a batch.
    """

    source: Path
    choice: ColumnSelection
    header: bool | None
    encoding: str
    most: int
    size: int

    def __enter__(self) -> RatingsFiles:
        self._open = ExitStack()
        self.paths = self._parquet_files() or self._open.enter_context(
            files_at(self.source, self.most)
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._open.__exit__(kind, error, trace)

    def _parquet_files(self) -> list[Path]:
        """Return the files of a pattern, or of a folder of Parquet files and nothing known."""
        pattern = any(sign in str(self.source) for sign in WILD) and not self.source.exists()
        if not pattern and not self.source.is_dir():
            return []
        if not pattern:
            with refusing(self.source):
                names = os.listdir(self.source)
            if packed.parts(names) or not any(name.endswith(".parquet") for name in names):
                return []
        found = [Path(path) for path in files_of(self.source)]
        for path in found:
            if (path.parent / MARKER).exists():
                raise RatingsError(
                    f"{path.parent}: this is a partitioned data set already, with keys instead of "
                    "ids; name the file that it was made of"
                )
        return found

    @property
    def is_array_file(self) -> bool:
        """Whether this is an `.npz` file, which cannot be read in batches."""
        return len(self.paths) == 1 and not _is_parquet(self.paths[0]) and _is_npz(self.paths[0])

    def batches(self) -> Iterator[SourceColumns]:
        """Yield the columns of some rows after the other."""
        if all(map(_is_parquet, self.paths)):
            for path in self.paths:
                yield from _parquet_batches(path, self.choice, self.size // ROW)
            return
        files = [TextFile(path, self.encoding, self.most) for path in self.paths]
        first = next((x for x in islice(files[0].lines(), text.SAMPLE) if x.strip()), "")
        if len(files) > 1 or netflix_prize.is_movie(first):
            yield from netflix_prize.batches(files, str(self.source), self.size)
        else:
            yield from text.batches(files[0], self.choice, self.header, self.size)


def _parquet_batches(path: Path, choice: ColumnSelection, rows: int) -> Iterator[SourceColumns]:
    import pyarrow.parquet as pq

    with refusing(path):
        most = PACKING * path.stat().st_size
        try:
            names = parquet.names(path, most)
            places = choice.among(str(path), names, header=True)
            chosen = {role: names[place] for role, place in places.items()}
            parquet.check_file(path, most, set(chosen.values()))
        except parquet.SizeLimitError:
            raise too_much(path, most) from None
        first = 0
        with pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False) as file:
            wanted = sorted(set(chosen.values()))
            for batch in file.iter_batches(rows, columns=wanted, use_threads=False):
                frame: Any = pl.from_arrow(batch)
                found = {role: frame[name] for role, name in chosen.items()}
                yield SourceColumns(str(path), found, partial(_row, path, first))
                first += len(batch)


def _row(path: Path, first: int, row: int) -> str:
    return f"{path}, row {first + row + 1}"


def _start(path: Path) -> bytes:
    with refusing(path), path.open("rb") as file:
        return file.read(4)


def _is_parquet(path: Path) -> bool:
    return path.suffix == ".parquet" or _start(path) == b"PAR1"


def _is_npz(path: Path) -> bool:
    return path.suffix == ".npz" or _start(path) == b"PK\x03\x04"


def no_ratings(name: str) -> RatingsError:
    """Return the error of a source without rows."""
    return RatingsError(f"{name}: there are no ratings")
