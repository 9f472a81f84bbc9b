"""Ratings in parts within a limit of memory: what is needed, and what is kept.

While the network is fitted, memory holds the program, q of all users and items (in three copies
while stages are compared), the sums for the items, and some parts. Afterwards it holds q and, if
they fit, all ratings, twice while they are saved.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from svmp.errors import FileError, ModelError, called
from svmp.inference.running.notebook import in_notebook, is_shown
from svmp.inference.running.progress import line_of_progress
from svmp.parts.parquet_files import files_of, needs_pyarrow, parquet
from svmp.parts.parts import BYTES_A_ROW
from svmp.parts.sources import Source, as_source
from svmp.ratings.columns import Columns, ColumnSelection
from svmp.recommend.history import History
from svmp.recommend.network import BIAS_AND_SLOPE, Form
from svmp.recommend.part_ratings import PartsSummary, RatingParts, Report

PROGRAM = 350_000_000
"""Memory of the program and its libraries."""
COPIES = 3
"""Copies of q while it is fitted."""
PARTS = 3
"""Fewest parts in memory: one to compute with, one to read, and one that is not yet released."""


@dataclass(frozen=True)
class MemoryNeeds:
    """Memory that a fit needs, in bytes.

    Attributes
    ----------
    of_q
        For q and for the sums of the items.
    of_part
        For the rows of the largest part.
    of_history
        After the fit: for the program, q and all ratings, twice while they are saved.
    about
        The ratings, for messages.
    """

    of_q: int
    of_part: int
    of_history: int
    about: PartsSummary

    @classmethod
    def of(cls, about: PartsSummary, factors: int, covariance: Form) -> MemoryNeeds:
        """Estimate the memory for these ratings."""
        width = factors + BIAS_AND_SLOPE
        each = width**2 + width if covariance == "full" else 2 * width
        elements = about.users + about.items
        sums = about.items * width * (width + 3) // 2
        of_q = 8 * (COPIES * elements * each + 4 * sums)
        row = 16 if about.timed else 8
        after = 4 * 2 * elements * each + 2 * row * about.ratings
        return cls(of_q, BYTES_A_ROW * about.largest, PROGRAM + after, about)

    def left(self, memory: int) -> int:
        """Return what is left for the rows of parts; raise if that is too little."""
        least = PROGRAM + self.of_q + PARTS * self.of_part
        if memory < least:
            raise ModelError(
                f"{called('memory')} is {_shown(memory)}, but about {_shown(least)} are needed for "
                f"{self.about.users:,} users, {self.about.items:,} items and parts of up to "
                f"{self.about.largest:,} ratings; allow more, or write smaller parts with "
                "`svmp recommend partition --rows-per-part` (svmp.ratings.partition)"
            )
        return memory - PROGRAM - self.of_q - self.of_part * (PARTS - 1)

    def without_history(self) -> str:
        """Return the warning that the ratings are not kept."""
        return (
            f"the model does not keep the {self.about.ratings:,} ratings, because that needs about "
            f"{_shown(self.of_history)} of {called('memory')}: recommendations may include items "
            "that a user has rated, and explanations have no ratings to refer to"
        )


def _shown(size: int) -> str:
    return f"{size / 1e9:.2g} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def parts_of(data: Any, columns: Columns | None) -> Source:
    """Return what a user passes as ratings in parts as a source.

    Of files only the columns of users, items, ratings and times are read.
    """
    if not isinstance(data, str | os.PathLike):
        return as_source(data)
    files = files_of(data)
    for file in files:
        if os.path.isfile(file) and not _is_parquet(file):
            raise FileError(
                f"{file}: ratings in parts are read from Parquet files, and this is none; "
                "`svmp recommend partition` (svmp.ratings.partition) writes them from any file of "
                "ratings"
            )
    try:
        with needs_pyarrow().ParquetFile(files[0]) as opened:
            names = opened.schema_arrow.names
    except (OSError, ValueError):
        return parquet(data)  # says what is wrong with the file
    choice = ColumnSelection(columns)
    choice.check()
    found = choice.among(files[0], names, header=True)
    return parquet(data, columns=[names[place] for place in found.values()])


def _is_parquet(file: str) -> bool:
    with open(file, "rb") as opened:
        return opened.read(4) == b"PAR1"


def history_of(parts: RatingParts, about: PartsSummary, report: Report) -> History:
    """Read the ratings of all parts again, by user."""
    begin = np.concatenate([[0], np.cumsum(about.counts)])
    item, rating = np.empty(begin[-1], np.int32), np.empty(begin[-1], np.float32)
    time = np.empty(begin[-1]) if about.timed else None
    for part in range(len(parts)):
        report(f"keeping the ratings of part {part + 1:,} of {len(parts):,}")
        table = parts.keyed(part)
        mine = slice(begin[parts.first[part]], begin[parts.first[part + 1]])
        order = np.argsort(table.user, kind="stable")
        item[mine], rating[mine] = table.item[order], table.rating[order]
        if time is not None and table.time is not None:
            time[mine] = table.time[order]
    return History(begin, item, rating, time)


@contextmanager
def reporting(progress: bool | None) -> Iterator[Report]:
    """Yield a function that shows a line, by default on a terminal or in a notebook."""
    if in_notebook() or not is_shown(progress):
        with line_of_progress(progress) as show:
            yield show
        return
    from rich.console import Console
    from rich.status import Status

    with Status("reading", console=Console(stderr=True)) as status:
        yield status.update
