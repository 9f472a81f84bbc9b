"""Ratings in the files of the Netflix Prize: a line `movie:`, then `user,rating,date` for each.

One file may hold many movies (`combined_data_1.txt`) or one (`mv_0000001.txt`); a folder of
either is read as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from svmp.errors import RatingsError
from svmp.ratings.convert import Found
from svmp.ratings.lines import lines, opened, refusing

MOVIE = re.compile(r"\s*\d+:\s*")
FIELDS = {"user": pl.String, "rating": pl.Float32, "time": pl.String}
TOGETHER = 1 << 26
"""Files are read together until they have so many bytes."""
DATE = pl.col("time").str.strip_chars().str.to_date("%Y-%m-%d", strict=False)


def is_movie(line: str) -> bool:
    """Say whether a line is the head of a movie's ratings."""
    return MOVIE.fullmatch(line) is not None


def read(paths: list[Path], name: str) -> Found:
    """Read files, one after another."""
    groups = list(_groups(paths))
    frames = [_frame(files) for files in groups]
    ends = list(accumulate(frame.height for frame in frames))
    whole = pl.concat(frames, how="vertical_relaxed")

    def where(row: int) -> str:
        place = int(np.searchsorted(ends, row, side="right"))
        return _place(groups[place], row - (ends[place - 1] if place else 0))

    return Found(name, {role: whole[role] for role in ("user", "item", "rating", "time")}, where)


def _groups(paths: list[Path]) -> Iterator[list[Path]]:
    """Put small files together, which are read as one: the Prize has 17,770 of them."""
    group: list[Path] = []
    size = 0
    for path in paths:
        with refusing(path):
            size += path.stat().st_size
        group.append(path)
        if size > TOGETHER:
            yield group
            group, size = [], 0
    if group:
        yield group


def _frame(files: list[Path]) -> pl.DataFrame:
    """Read some files; what is no number or date stays to be refused with its line."""
    source = files[0] if len(files) == 1 else _joined(files)
    try:
        frame = _read(source, FIELDS)
    except pl.exceptions.PolarsError:
        try:
            frame = _read(source, dict.fromkeys(FIELDS, pl.String))
        except pl.exceptions.PolarsError as error:
            raise _fault(files, error) from None
    user = pl.col("user").str.strip_chars()
    head = user.str.ends_with(":") & pl.col("rating").is_null()
    item = pl.when(head).then(user.str.strip_suffix(":")).forward_fill()
    frame = frame.with_columns(user=user, item=pl.when(item != "").then(item)).filter(
        ~head.fill_null(False), ~pl.all_horizontal(pl.col(list(FIELDS)).is_null())
    )
    for better in (pl.col("user", "item").cast(pl.Int64, strict=False), DATE):
        if all(frame.select(better.is_not_null().all()).row(0)):
            frame = frame.with_columns(better)
    return frame.select("user", "item", "rating", "time")


def _joined(files: list[Path]) -> bytes:
    """Return what is in the files; between two of them, no movie is named yet."""
    parts = []
    for path in files:
        with refusing(path), opened(path) as file:
            parts.append(file.read())
    return b"\n:\n".join(parts)


def _read(source: Path | bytes, kinds: Mapping[str, Any]) -> pl.DataFrame:
    with refusing(source) if isinstance(source, Path) else nullcontext():
        return pl.read_csv(
            source,
            has_header=False,
            schema=dict(kinds),
            quote_char=None,
            missing_columns="insert",  # the first line has one field
        )


def _fault(files: list[Path], error: Exception) -> RatingsError:
    """Return what is wrong with files that cannot be read."""
    try:
        for path in files:
            for number, line in enumerate(lines(path, "utf-8"), 1):
                if line.count(",") > 2:
                    return RatingsError(f"{path}, line {number}: this is not user,rating,date")
    except RatingsError as fault:
        return fault
    return RatingsError(f"{files[0]}: the file cannot be read ({str(error).splitlines()[0]})")


def _place(files: list[Path], row: int) -> str:
    """Return the file and the line of a row."""
    text = ((path, *line) for path in files for line in enumerate(lines(path, "utf-8"), 1))
    rows = (f"{path}, line {n}" for path, n, line in text if line.strip() and not is_movie(line))
    return next(islice(rows, row, None))
