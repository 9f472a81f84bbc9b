"""`partition`: write ratings as a data set in parts, for data that do not fit into memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Unpack

from svmp.errors import ModelError, SvmpError, called
from svmp.network.validation import shown
from svmp.parts.memory import parse_memory
from svmp.parts.parquet_files import ParquetSource, needs_pyarrow, parquet
from svmp.ratings.lines import MOST
from svmp.ratings.read import check_options
from svmp.ratings.read_options import ReadOptions


def partition(
    source: Any,
    directory: str | os.PathLike[str],
    *,
    by: str = "user",
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
        Parquet are read in batches, so they may be larger than the memory; `.npz` files are not.
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
    for name in options.keys() - ReadOptions.__annotations__.keys():
        raise TypeError(f"partition() has no option '{name}'")
    if by not in ("user", "item"):
        raise ModelError(f"{called('by')} must be 'user' or 'item', not {shown(by)}")
    for name, number in {"parts": parts, "rows_per_part": rows_per_part}.items():
        if number is not None and (type(number) is not int or number < 1):
            raise ModelError(f"{called(name)} must be a whole number from 1, not {shown(number)}")
    size = parse_memory(memory)
    try:
        from svmp.ratings import build, part_folder, partitioning
    except ImportError:  # pragma: no cover
        raise SvmpError('ratings are read with Polars: pip install "svmp[recommend]"') from None
    needs_pyarrow()
    target = part_folder.check_place(directory)
    duplicates = options.get("duplicates", "error")
    build.check_duplicates(duplicates)
    check_options(options.get("max_unpacked", MOST), options.get("text_ids", ()))
    with partitioning.keyed(source, size, options, report) as rows:
        block = partitioning.assign(rows.counts[by], parts, rows_per_part, size)
        with part_folder.drafted_parts(target) as draft:
            partitioning.Partition(rows, by, block, duplicates).write(draft, report)
    return parquet(target, by=by)
