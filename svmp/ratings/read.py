"""`read_ratings`: read a table of ratings from a file, a folder, or memory."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from svmp.errors import RatingsError, SvmpError, called
from svmp.ratings.columns import Columns, ColumnSelection
from svmp.ratings.lines import MOST, TextFile, refusing
from svmp.ratings.table import Duplicates, Ratings


def read_ratings(
    source: Any,
    *,
    columns: Columns | None = None,
    duplicates: Duplicates = "error",
    range: tuple[float, float] | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
    events: bool = False,
    max_unpacked: int = MOST,
    text_ids: Collection[str] = (),
) -> Ratings:
    """Read ratings from a file, a folder, or a table in memory.

    Parameters
    ----------
    source
        A path: text separated by commas, tabs, semicolons, bars, blanks or MovieLens's `::`,
        gzipped or not; Parquet; an `.npz` file; a text file of the Netflix Prize; or a folder or
        zip archive of MovieLens or of the Prize. Or a table in memory: pandas, Polars or PyArrow; a
        scipy.sparse matrix of users by items, in which every stored cell is a rating; a dict of
        columns; or the three arrays (users, items, ratings), or four with times.
    columns
        Columns of user, item, rating and optionally time: names or positions from 0 in this order,
        or a dict by these four words. By default they are found by their usual names, and without a
        header by their order.
    duplicates
        How to treat repeated ratings of an item by a user: raise ("error"), take the "last" by
        time, or by order if there are no times, or the "mean" or "sum" of all, at the last time.
    range
        The least and the greatest valid rating; others are errors.
    header
        Whether the first line of a text file is a header; by default this is detected.
    encoding
        Encoding of a text file.
    events
        Whether the rows are events, which need no column of ratings: each then counts 1.
    max_unpacked
        Limit of the unpacked size of compressed files, in bytes.
    text_ids
        "user", "item" or both: read these ids as strings, even if all are whole numbers.

    Returns
    -------
    Ratings
        The rows in their order, and sorted ids: int64 if all are whole numbers, else strings. A
        whole number that does not fit into 64 bits is an error. All users and items of a matrix,
        and of an `.npz` file with `user_ids` and `item_ids`, are kept in their order.

    Raises
    ------
    RatingsError
        One sentence, with the file and the line.

    >>> read_ratings((["ann", "bob", "ann"], [7, 7, 9], [4, 5, 3]))
    <Ratings: 3 of 2 items by 2 users>
    """
    if isinstance(source, Ratings):
        return source
    span = check_range(range)
    check_options(max_unpacked, text_ids)
    try:
        from svmp.ratings.build import build_table
    except ImportError:  # pragma: no cover
        raise SvmpError('ratings are read with Polars: pip install "svmp[recommend]"') from None
    if not isinstance(source, str | os.PathLike):
        from svmp.ratings import memory

        with refusing("ratings", _polars_errors()):
            found = memory.read(source, ColumnSelection(columns, events))
            return build_table(found, duplicates, span, text_ids)
    path = Path(source)
    with refusing(path, (OSError, _polars_errors())), files_at(path, max_unpacked) as paths:
        files = [TextFile(one, encoding, max_unpacked) for one in paths]
        found = _from_files(files, path, ColumnSelection(columns, events), header)
        return build_table(found, duplicates, span, text_ids)


@contextmanager
def files_at(path: Path, most: int) -> Iterator[list[Path]]:
    """Return the files of a path: itself, or those in a folder or an archive."""
    from svmp.ratings import packed

    if path.is_dir():
        yield packed.files_of(path)
    elif packed.is_archive(path):
        with packed.unpacked(path, most) as files:
            yield files
    else:
        yield [path]


def _from_files(
    files: list[TextFile], source: Path, choice: ColumnSelection, header: bool | None
) -> Any:
    from svmp.ratings import binary, netflix_prize, text

    path, most = files[0].path, files[0].most
    with refusing(path), path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1" or path.suffix == ".parquet":
        return binary.read_parquet(path, choice, most)
    if start == b"PK\x03\x04" or path.suffix == ".npz":
        return binary.read_npz(path, choice, most)
    first = next((x for x in islice(files[0].lines(), text.SAMPLE) if x.strip()), "")
    if len(files) > 1 or netflix_prize.is_movie(first):
        return netflix_prize.read(files, str(source))
    return text.read(files[0], choice, header)


def _polars_errors() -> type[Exception]:
    """Return the base class of the errors of Polars, except panics."""
    from polars.exceptions import PolarsError

    return PolarsError


def check_options(max_unpacked: int, text_ids: Collection[str]) -> None:
    """Raise unless these options of `read_ratings` are valid."""
    if type(max_unpacked) is not int or max_unpacked < 1:
        raise RatingsError(
            f"{called('max_unpacked')} must be a number of bytes, not {max_unpacked!r:.60}"
        )
    if isinstance(text_ids, str) or not set(text_ids) <= {"user", "item"}:
        raise RatingsError(
            f"{called('text_ids')} must be a list of 'user' and 'item', not {text_ids!r:.60}"
        )


def check_range(span: Any) -> tuple[float, float] | None:
    """Return a valid range of ratings as floats; None stays None."""
    if span is None:
        return None
    low, high = 1.0, 0.0
    with suppress(TypeError, ValueError, OverflowError):
        if not any(isinstance(one, str | bool) for one in span):
            low, high = map(float, span)
    if not -math.inf < low <= high < math.inf:
        raise RatingsError(f"range must be the least and the greatest rating, not {span!r:.60}")
    return low, high
