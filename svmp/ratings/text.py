"""Ratings in delimited text: CSV, TSV, semicolons, MovieLens's `::`, plain or gzipped.

Columns are read with the types that the first lines suggest; if that fails, as text, which is then
converted, or reported with its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors

from svmp.errors import RatingsError
from svmp.ratings.columns import ColumnSelection, is_usual
from svmp.ratings.convert import SourceColumns, is_number, kind_of, times_of
from svmp.ratings.csv_options import SHORT_FIRST_LINE
from svmp.ratings.lines import TextFile, records, refusing

SEPARATORS = ("::", "\t", ";", "|", ",", " ")
SAMPLE = 1000
"""Number of lines from which the layout of a file is detected."""


@dataclass(frozen=True)
class Layout:
    """The layout of a text file.

    Attributes
    ----------
    file
        The file.
    separator
        Separator of fields. `::` is read as `:`, with an empty field after each.
    names
        Names of the columns, from the header or by position.
    header
        Whether there is a header.
    skip
        Number of blank lines at the start.
    sample
        Fields of the first lines after the header.
    """

    file: TextFile
    separator: str
    names: list[str]
    header: bool
    skip: int
    sample: list[list[str]]

    def column(self, place: int) -> list[str]:
        """Return the sample of one column."""
        return [row[place] for row in self.sample if place < len(row) and row[place]]


@dataclass(frozen=True)
class Plan:
    """How to read a text file: its layout, and the position and type of each column by role."""

    layout: Layout
    roles: dict[str, int]
    kinds: dict[str, pl.DataType]

    def columns(self, source: Path | bytes, first: int | None = None) -> SourceColumns:
        """Read the whole file, or lines of it without the header, which begin with row `first`."""
        frame = self._frame(source, whole=first is None)
        before = first or 0
        path = self.layout.file.path

        def where(row: int) -> str:
            line = _line(self.layout, [*self.roles.values()], before + row)
            return f"{path}, line {line}" if line else f"{path}, row {before + row + 1}"

        return SourceColumns(str(path), {role: frame[role] for role in self.roles}, where)

    def _frame(self, source: Path | bytes, whole: bool) -> pl.DataFrame:
        layout, roles = self.layout, self.roles
        here = layout if whole else replace(layout, header=False, skip=0)
        try:
            frame = _frame(here, source, roles, self.kinds)
        except RatingsError:
            try:
                frame = _frame(here, source, roles, dict.fromkeys(roles, pl.String()))
            except RatingsError as error:
                raise _fault(layout, error) from None
        bare = selectors.string().str.strip_chars()
        frame = frame.with_columns(pl.when(bare != "").then(bare))
        if frame.null_count().sum_horizontal().item():
            frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines
        return frame


def read(file: TextFile, choice: ColumnSelection, header: bool | None) -> SourceColumns:
    """Read the columns of a text file."""
    return plan(file, choice, header).columns(file.path if file.is_plain else file.content())


def batches(
    file: TextFile, choice: ColumnSelection, header: bool | None, size: int
) -> Iterator[SourceColumns]:
    """Read the columns of a text file in batches of about `size` bytes."""
    how = plan(file, choice, header)
    first, skip = 0, how.layout.skip + how.layout.header
    for block in file.blocks(size, quoted=len(how.layout.separator) == 1):
        while skip and block:
            block, skip = block.partition(b"\n")[2], skip - 1
        if block.strip():
            found = how.columns(block, first)
            first += len(found.columns["user"])
            yield found


def plan(file: TextFile, choice: ColumnSelection, header: bool | None) -> Plan:
    """Decide how to read a text file, from its first lines."""
    layout = detect_layout(file, header)
    roles = choice.among(str(file.path), layout.names, layout.header)
    by_position = choice.columns is None and not layout.header
    if by_position and "time" in roles and not times_of(layout.column(roles["time"])):
        del roles["time"]
    kinds = {role: kind_of(role, layout.column(place)) for role, place in roles.items()}
    return Plan(layout, roles, kinds)


def detect_layout(file: TextFile, header: bool | None = None) -> Layout:
    """Detect the layout of a file from its first lines."""
    path, first = file.path, list(islice(file.lines(), SAMPLE))
    text = [line for line in first if line.strip()]
    if not text:
        raise RatingsError(f"{path}: the file is empty")
    least = 2 if any(text[0].count(s) >= 2 for s in SEPARATORS) else 1
    likely = [s for s in SEPARATORS if text[0].count(s) >= least] or [","]
    separator = next((s for s in likely if text[-1].count(s) >= least), likely[0])
    rows = [fields for _, fields in records(path, text, separator)]
    if header is None:
        words = len(rows) > 1 and not any(map(is_number, rows[0]))
        header = any(map(is_usual, rows[0])) or (words and any(map(is_number, rows[1])))
    names = rows[0] if header else [str(place) for place in range(len(rows[0]))]
    skip = next(n for n, line in enumerate(first) if line.strip())
    return Layout(file, separator, names, header, skip, rows[int(header) :])


def _frame(
    layout: Layout, source: Path | bytes, roles: dict[str, int], kinds: dict[str, pl.DataType]
) -> pl.DataFrame:
    """Read the columns that have a role."""
    stride = len(layout.separator)
    names = [f"column_{n}" for n in range(stride * (len(layout.names) - 1) + 1)]
    schema: dict[str, Any] = dict.fromkeys(names, pl.String())
    chosen = {role: names[stride * place] for role, place in roles.items()}
    for role, name in chosen.items():
        schema[name] = kinds[role]
    with refusing(layout.file.path):
        frame = pl.read_csv(
            source,
            has_header=False,
            skip_rows=layout.skip + layout.header,
            separator=layout.separator[0],
            quote_char='"' if stride == 1 else None,
            schema=schema,
            columns=sorted(set(chosen.values()), key=names.index),
            raise_if_empty=False,
            **SHORT_FIRST_LINE,
        )
    return frame.select(pl.col(name).alias(role) for role, name in chosen.items())


def _fault(layout: Layout, error: RatingsError) -> RatingsError:
    """Return the error of a file that is not a table, with the line if it is found."""
    width, path = len(layout.names), layout.file.path
    try:
        for number, fields in records(path, layout.file.lines(), layout.separator):
            if len(fields) > width:
                return RatingsError(
                    f"{path}, line {number}: there are {len(fields)} fields where the first "
                    f"line has {width}"
                )
    except RatingsError as fault:
        return fault
    return error


def _line(layout: Layout, places: list[int], row: int) -> int | None:
    """Return the first line of a row; records that are blank in all columns do not count.

    It may be None if Polars and Python split a damaged file differently.
    """
    found = records(layout.file.path, layout.file.lines(), layout.separator)
    filled = ((number, fields) for number, fields in found if any(fields))
    body = islice(filled, int(layout.header), None)
    rows = (n for n, fields in body if any(p < len(fields) and fields[p] for p in places))
    try:
        return next(islice(rows, row, None), None)
    except RatingsError:
        return None
