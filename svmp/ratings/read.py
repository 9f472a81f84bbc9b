"""`read_ratings`: a table of ratings from whatever holds one."""

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
        A path: text with fields between commas, tabs, semicolons, bars, blanks or MovieLens's
        `::`, gzipped or not; Parquet; an `.npz` file; a text file of the Netflix Prize; or a folder
        or zip archive of MovieLens or of the Prize. Or a table in memory: pandas, Polars or
        PyArrow; a scipy.sparse matrix of users by items, of which every stored cell is a rating; a
        dict of columns; or the three arrays (users, items, ratings), or four with times.
    columns
        Which columns are user, item, rating and, if you like, time: names or positions from 0 in
        this order, or a dict by these four words. By default they are found by their usual names,
        and without a header by their order.
    duplicates
        What if a user has rated an item twice: refuse it ("error"), take the "last" by time, or by
        order where there are no times, or the "mean" or "sum" of all, at the last time.
    range
        The least and the greatest rating that there can be; anything outside is refused.
    header
        Whether the first line of a text file has names; by default that is seen from it.
    encoding
        That of a text file.
    events
        Whether the rows are events, which may have no column of ratings: each then counts 1.
    max_unpacked
        How many bytes compressed files may unpack to.
    text_ids
        Of "user" and "item" those whose ids are strings, also where all are whole numbers.

    Returns
    -------
    Ratings
        The rows in their order, ids sorted. Ids that are all whole numbers are int64, else strings;
        a whole number that does not fit into 64 bits is refused. The users and items of a matrix,
        and of an `.npz` file with `user_ids` and `item_ids`, are all kept in the order that they
        have there.

    Raises
    ------
    RatingsError
        In one sentence, with the file and the line.

    >>> read_ratings((["ann", "bob", "ann"], [7, 7, 9], [4, 5, 3]))
    <Ratings: 3 of 2 items by 2 users>
    """
    if isinstance(source, Ratings):
        return source
    span = check_range(range)
    if type(max_unpacked) is not int or max_unpacked < 1:
        raise RatingsError(
            f"{called('max_unpacked')} must be a number of bytes, not {max_unpacked!r:.60}"
        )
    try:
        from svmp.ratings.build import build_table
    except ImportError:  # pragma: no cover
        raise SvmpError('ratings are read with Polars: pip install "svmp[recommend]"') from None
    if isinstance(text_ids, str) or not set(text_ids) <= {"user", "item"}:
        raise RatingsError(
            f"{called('text_ids')} must be of 'user' and 'item', not {text_ids!r:.60}"
        )
    if not isinstance(source, str | os.PathLike):
        from svmp.ratings import memory

        with refusing("ratings", _polars_errors()):
            found = memory.read(source, ColumnSelection(columns, events))
            return build_table(found, duplicates, span, text_ids)
    path = Path(source)
    with refusing(path, (OSError, _polars_errors())), _files(path, max_unpacked) as paths:
        files = [TextFile(one, encoding, max_unpacked) for one in paths]
        found = _from_files(files, path, ColumnSelection(columns, events), header)
        return build_table(found, duplicates, span, text_ids)


@contextmanager
def _files(path: Path, most: int) -> Iterator[list[Path]]:
    """Find the files that a path stands for: itself, or those in a folder or an archive."""
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
    first = next((x for x in islice(files[0].lines(), text.LOOK) if x.strip()), "")
    if len(files) > 1 or netflix_prize.is_movie(first):
        return netflix_prize.read(files, str(source))
    return text.read(files[0], choice, header)


def _polars_errors() -> type[Exception]:
    """Return the class of every error of Polars that is no panic."""
    from polars.exceptions import PolarsError

    return PolarsError


def check_range(span: Any) -> tuple[float, float] | None:
    """Return the least and the greatest rating, if that is what they are; None stays None."""
    if span is None:
        return None
    low, high = 1.0, 0.0
    with suppress(TypeError, ValueError, OverflowError):
        if not any(isinstance(one, str | bool) for one in span):
            low, high = map(float, span)
    if not -math.inf < low <= high < math.inf:
        raise RatingsError(f"range must be the least and the greatest rating, not {span!r:.60}")
    return low, high
