"""Ratings in the files of the Netflix Prize: a line `movie:`, then `user,rating,date` for each.

One file may hold many movies (`combined_data_1.txt`) or one (`mv_0000001.txt`); a folder of
either is read as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from svmp.errors import RatingsError
from svmp.ratings.convert import Found
from svmp.ratings.lines import lines, refusing

MOVIE = re.compile(r"\s*\d+:\s*")
FIELDS = {"user": pl.String, "rating": pl.Float32, "time": pl.String}
DATE = pl.col("time").str.strip_chars().str.to_date("%Y-%m-%d", strict=False)


def is_movie(line: str) -> bool:
    """Say whether a line is the head of a movie's ratings."""
    return MOVIE.fullmatch(line) is not None


def read(paths: list[Path], name: str) -> Found:
    """Read files, one after another."""
    frames = [_frame(path) for path in paths]
    ends = list(accumulate(frame.height for frame in frames))
    whole = pl.concat(frames, how="vertical_relaxed")

    def where(row: int) -> str:
        place = int(np.searchsorted(ends, row, side="right"))
        first = ends[place - 1] if place else 0
        return f"{paths[place]}, line {_line(paths[place], row - first)}"

    return Found(name, {role: whole[role] for role in ("user", "item", "rating", "time")}, where)


def _frame(path: Path) -> pl.DataFrame:
    """Read one file; what is no number or date stays to be refused with its line."""
    try:
        frame = _read(path, FIELDS)
    except pl.exceptions.PolarsError:
        try:
            frame = _read(path, dict.fromkeys(FIELDS, pl.String))
        except pl.exceptions.PolarsError as error:
            raise _fault(path, error) from None
    user = pl.col("user").str.strip_chars()
    head = user.str.ends_with(":") & pl.col("rating").is_null()
    item = pl.when(head).then(user.str.strip_suffix(":")).forward_fill()
    frame = frame.with_columns(user=user, item=item).filter(
        ~head.fill_null(False), ~pl.all_horizontal(pl.col(list(FIELDS)).is_null())
    )
    for better in (pl.col("user", "item").cast(pl.Int64, strict=False), DATE):
        if all(frame.select(better.is_not_null().all()).row(0)):
            frame = frame.with_columns(better)
    return frame.select("user", "item", "rating", "time")


def _read(path: Path, kinds: Mapping[str, Any]) -> pl.DataFrame:
    with refusing(path):
        return pl.read_csv(
            path,
            has_header=False,
            schema=dict(kinds),
            quote_char=None,
            missing_columns="insert",  # the first line has one field
        )


def _fault(path: Path, error: Exception) -> RatingsError:
    """Return what is wrong with a file that cannot be read."""
    try:
        for number, line in enumerate(lines(path, "utf-8"), 1):
            if line.count(",") > 2:
                return RatingsError(f"{path}, line {number}: this is not user,rating,date")
    except RatingsError as fault:
        return fault
    return RatingsError(f"{path}: the file cannot be read ({str(error).splitlines()[0]})")


def _line(path: Path, row: int) -> int:
    """Return the line of a row."""
    text = enumerate(lines(path, "utf-8"), 1)
    rows = (number for number, line in text if line.strip() and not is_movie(line))
    return next(islice(rows, row, None))
