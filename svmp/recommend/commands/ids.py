"""Ids on the command line, as text or in files."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svmp.errors import FileError, ModelError, RatingsError

if TYPE_CHECKING:
    from svmp.recommend.side import EntityTable

WHOLE = r"0|-?[1-9][0-9]*"
LARGEST = 2**63 - 1
NAMED = 10
"""Maximum number of ids that a sentence names."""
HEADS = re.compile(r"(user|item|movie|book)?s?[ _]?(id|ids)?", re.IGNORECASE)
"""The first line of a file, if it is no id."""


def known_ids(known: EntityTable, flag: str, texts: list[str]) -> tuple[list[Any], list[Any]]:
    """Return the ids that are in a model, of its type, and those that are not.

    Raise if they are of another type, or if none is in the model.
    """
    ids: list[Any] = list(texts)
    if known.ids.dtype.kind != "U":
        for place, text in enumerate(texts):
            if not re.fullmatch(WHOLE, text):
                raise ModelError(
                    f"{flag}: the ids of this model are whole numbers, not {text!r:.60}"
                )
            ids[place] = int(text)
    small = [not isinstance(one, int) or abs(one) <= LARGEST for one in ids]
    keys = known.keys([one if fits else 0 for one, fits in zip(ids, small, strict=True)], "prior")
    there = [bool(fits and key >= 0) for fits, key in zip(small, keys, strict=True)]
    found = [one for one, is_there in zip(ids, there, strict=True) if is_there]
    unknown = [one for one, is_there in zip(ids, there, strict=True) if not is_there]
    if unknown and not found:
        raise ModelError(f"{flag}: there is no {known.what} {unknown[0]!s:.60} in the model")
    return found, unknown


def read_ids(path: Path, known: EntityTable) -> list[str]:
    """Return the ids in the first column of a file: Parquet, or text with one a line."""
    import polars as pl

    from svmp.ratings import parquet
    from svmp.ratings.library_errors import reading

    try:
        if path.suffix == ".parquet":
            with reading():
                column = parquet.read(path, 1 << 34).to_series(0)
            texts = column.cast(pl.String).drop_nulls().to_list()
        else:
            lines = path.read_text("utf-8-sig").splitlines()
            texts = [line.split(",")[0].strip().strip('"') for line in lines if line.strip()]
            numbers = known.ids.dtype.kind != "U"
            if texts and (HEADS.fullmatch(texts[0]) or (numbers and texts[0].isidentifier())):
                texts = texts[1:]
    except (OSError, UnicodeError, RatingsError, pl.exceptions.PolarsError) as error:
        raise FileError(f"{path}: the ids cannot be read ({error!s:.200})") from None
    if not texts:
        raise FileError(f"{path}: there are no ids")
    return list(texts)


def name_skipped(what: str, ids: Sequence[Any]) -> None:
    """Say on stderr which ids were skipped because they are not in the model."""
    if ids:
        more = f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
        named = ", ".join(f"{one!s:.60}" for one in ids[:NAMED])
        print(f"svmp: skipped, not in the model: {what} {named}{more}", file=sys.stderr)
