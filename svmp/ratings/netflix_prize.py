"""Ratings in the format of the Netflix Prize: a line `movie:`, then lines `user,rating,date`.

A file has many movies (`combined_data_1.txt`) or one (`mv_0000001.txt`); a folder of either is read
as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars import selectors

from svmp.errors import RatingsError
from svmp.ratings.convert import WHOLE, SourceColumns
from svmp.ratings.csv_options import SHORT_FIRST_LINE
from svmp.ratings.lines import TextFile, refusing

MOVIE = re.compile(r"\s*\d+:\s*")
FIELDS = {"user": pl.String, "rating": pl.Float32, "time": pl.String}
TOGETHER = 1 << 26
"""Small files are read together, up to this number of bytes."""
DATE = pl.col("time").str.strip_chars().str.to_date("%Y-%m-%d", strict=False)


def is_movie(line: str) -> bool:
    """Whether a line is the header of a movie's ratings."""
    return MOVIE.fullmatch(line) is not None


def read(files: list[TextFile], name: str) -> SourceColumns:
    """Read files, which share one limit of the unpacked size."""
    groups = list(_groups(files))
    frames = []
    held = 0
    for group in groups:
        frame, size = _frame([replace(file, held=held) for file in group])
        frames.append(frame)
        held += size
    ends = list(accumulate(frame.height for frame in frames))
    whole = pl.concat(frames, how="vertical_relaxed")

    def where(row: int) -> str:
        place = int(np.searchsorted(ends, row, side="right"))
        return _place(groups[place], row - (ends[place - 1] if place else 0))

    return SourceColumns(
        name, {role: whole[role] for role in ("user", "item", "rating", "time")}, where
    )


def batches(files: list[TextFile], name: str, size: int) -> Iterator[SourceColumns]:
    """Read files in batches of about a number of bytes."""
    held = 0
    for group in _groups(files, size):
        first = 0
        sharing = [replace(file, held=held) for file in group]
        for source in _blocks(sharing, size):
            held += 0 if files[0].is_plain else len(source)
            frame = _parse(sharing, source)
            where = partial(_place_after, group, first)
            first += frame.height
            columns = {role: frame[role] for role in ("user", "item", "rating", "time")}
            yield SourceColumns(name, columns, where)


def _blocks(files: list[TextFile], size: int) -> Iterator[bytes]:
    """Yield the content of a group of files; each block begins with the header of a movie."""
    if len(files) > 1:
        yield _joined(files)
        return
    header = b""
    for block in files[0].blocks(size):
        yield header + block
        header = _last_header(block) or header


def _last_header(block: bytes) -> bytes:
    r"""Return the last header of a movie's ratings, b"" if there is none.

    >>> _last_header(b"1:\n7,3,2005-01-01\n2:\n8,3,2005-01-01\n")
    b'2:\n'
    """
    end = len(block)
    while (end := block.rfind(b":", 0, end)) >= 0:
        first = block.rfind(b"\n", 0, end) + 1
        last = block.find(b"\n", end)
        line = block[first : last if last >= 0 else len(block)]
        if b"," not in line.rstrip(b", \t\r") and line.rstrip(b", \t\r").endswith(b":"):
            return line + b"\n"
    return b""


def _groups(files: list[TextFile], together: int = TOGETHER) -> Iterator[list[TextFile]]:
    """Group small files, which are read as one: the Prize has 17,770 of them."""
    group: list[TextFile] = []
    size = 0
    for file in files:
        with refusing(file.path):
            length = file.path.stat().st_size
        if group and size + length > together:
            yield group
            group, size = [], 0
        group.append(file)
        size += length
    if group:
        yield group


def _frame(files: list[TextFile]) -> tuple[pl.DataFrame, int]:
    """Read a group of files, and return the rows and the number of bytes held in memory."""
    plain = len(files) == 1 and files[0].is_plain
    source: Path | bytes = files[0].path if plain else _joined(files)
    return _parse(files, source), len(source) if isinstance(source, bytes) else 0


def _parse(files: list[TextFile], source: Path | bytes) -> pl.DataFrame:
    """Return the rows of a group of files, or of a block of one.

    Invalid numbers and dates stay strings, to be reported later with their line.
    """
    path = files[0].path
    try:
        frame = _read(path, source, FIELDS)
    except RatingsError:
        try:
            frame = _read(path, source, dict.fromkeys(FIELDS, pl.String))
        except RatingsError as error:
            raise _fault(files, error) from None
    bare = selectors.string().str.strip_chars()
    frame = frame.with_columns(pl.when(bare != "").then(bare))
    user = pl.col("user")
    head = user.str.ends_with(":") & pl.col("rating").is_null()
    item = pl.when(head).then(user.str.strip_suffix(":")).forward_fill()
    frame = frame.with_columns(item=pl.when(item != "").then(item)).filter(
        ~head.fill_null(False), ~pl.all_horizontal(pl.col(list(FIELDS)).is_null())
    )
    whole = pl.col("user", "item").str.contains(WHOLE)
    number = pl.when(whole).then(pl.col("user", "item")).cast(pl.Int64, strict=False)
    for better in (number, DATE):
        if all(frame.select(better.is_not_null().all()).row(0)):
            frame = frame.with_columns(better)
    return frame.select("user", "item", "rating", "time")


def _joined(files: list[TextFile]) -> bytes:
    """Return the content of files; an empty header between them ends the last movie."""
    parts: list[bytes] = []
    held = files[0].held
    for file in files:
        parts.append(replace(file, held=held).content())
        held += len(parts[-1])
    return b"\n:\n".join(parts)


def _read(path: Path, source: Path | bytes, kinds: Mapping[str, Any]) -> pl.DataFrame:
    with refusing(path):
        return pl.read_csv(
            source,
            has_header=False,
            schema=dict(kinds),
            quote_char=None,
            **SHORT_FIRST_LINE,  # it has one field
        )


def _fault(files: list[TextFile], error: RatingsError) -> RatingsError:
    """Return the error of files that cannot be read, with the line if it is found."""
    try:
        for file in files:
            for number, line in enumerate(file.lines(), 1):
                if line.count(",") > 2:
                    return RatingsError(f"{file.path}, line {number}: this is not user,rating,date")
    except RatingsError as fault:
        return fault
    return error


def _place(files: list[TextFile], row: int) -> str:
    """Return the file and the line of a row."""
    text = ((file.path, *line) for file in files for line in enumerate(file.lines(), 1))
    rows = (f"{path}, line {n}" for path, n, line in text if _is_row(line))
    return next(islice(rows, row, None), str(files[0].path))


def _place_after(files: list[TextFile], first: int, row: int) -> str:
    """Return the file and the line of a row of a block that begins with row `first`."""
    return _place(files, first + row)


def _is_row(line: str) -> bool:
    """Whether a line is neither blank nor the header of a movie's ratings.

    >>> [_is_row(line) for line in ("7,3,2005-01-01", "12:", " 12: ,,", " ", ",,", ":,3")]
    [True, False, False, False, False, True]
    """
    user, *others = (field.strip() for field in line.split(","))
    return any(others[:2]) or bool(user and not user.endswith(":"))
