"""Convert columns to ids, ratings and times; errors name the row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from svmp.errors import RatingsError
from svmp.ratings.table import LARGEST_RATING

WHOLE = r"^(0|-?[1-9][0-9]*)$"
"""A whole number in canonical form: '007' and '7' are different ids."""
LARGEST = 2**63 - 1
TOO_BIG = "which is too big: whole numbers must fit into 64 bits, unless ids are read as text"
LONGEST = 1000
"""Length limit of an id, in characters."""
DATES = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%Y/%m/%d")


@dataclass(frozen=True)
class SourceColumns:
    """The columns of a source, before conversion.

    Attributes
    ----------
    name
        Name of the table in messages.
    columns
        Columns of equal length by role: user, item, rating and optionally time.
    where
        Function that names a row, as "ratings.csv, line 3".
    ids
        Ids of users or items, if their column has indices into these instead of ids.
    """

    name: str
    columns: dict[str, pl.Series]
    where: Callable[[int], str]
    ids: dict[str, Any] = field(default_factory=dict)


def is_number(text: str) -> bool:
    """Whether a field is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def kind_of(role: str, sample: Sequence[str]) -> pl.DataType:
    """Return the type of a column of text, judging by its first fields."""
    if role == "rating":
        return pl.Float32()
    if role == "time":
        return pl.Float64() if all(map(is_number, sample)) else pl.String()
    return pl.String()  # so that '007' and '7' stay different


def times_of(sample: Sequence[str]) -> bool:
    """Whether at least half of the fields are numbers or dates."""
    values = pl.Series(sample, dtype=pl.String)
    return 2 * _dates(values).null_count() <= len(sample) > 0


def ids(found: SourceColumns, role: str, text: bool = False) -> pl.Series:
    """Return the ids of users or items, as Int64 if all are whole numbers, else as String.

    With `text` they are always String.
    """
    values = found.columns[role]
    _all_there(found, role, values)
    if isinstance(values.dtype, pl.Categorical | pl.Enum):
        values = values.cast(pl.String)
    if values.dtype == pl.String and (text or not values.str.contains(WHOLE).all()):
        short = values.str.len_chars() <= LONGEST
        _all(found, short, lambda row: f"the {role} has more than {LONGEST:,} characters")
        zero = values.str.contains("\0", literal=True)  # NumPy would strip it at the end
        _all(found, ~zero, lambda row: f"the {role} {values[row]!r:.60} has a zero byte")
        return values
    if values.dtype.is_float():
        whole = values.is_finite() & (values == values.floor()) & (values.abs() < 2**53)
        _all(found, whole, lambda row: f"the {role} is {values[row]}, not a whole number")
    elif not (values.dtype == pl.String or values.dtype.is_integer()):
        raise RatingsError(
            f"{found.name}: the {role}s are of type {values.dtype}, not strings or whole numbers"
        )
    if text and values.dtype.is_integer():
        return values.cast(pl.String)
    numbers = values.cast(pl.Int64, strict=False)
    small = numbers.is_not_null()
    _all(found, small, lambda row: f"the {role} is {values[row]!s:.60}, {TOO_BIG}")
    return numbers.cast(pl.String) if text else numbers


def numbers(found: SourceColumns, span: tuple[float, float] | None) -> pl.Series:
    """Return the ratings as Float32, all finite and in the given range."""
    values = found.columns["rating"]
    _all_there(found, "rating", values)
    if values.dtype == pl.String:
        parsed = values.cast(pl.Float32, strict=False)
        _all(
            found, parsed.is_not_null(), lambda r: f"the rating is {values[r]!r:.60}, not a number"
        )
        values = parsed
    if not values.dtype.is_numeric() or values.dtype.is_nested():
        raise RatingsError(f"{found.name}: the ratings are of type {values.dtype}, not numbers")
    _all(found, values.cast(pl.Float64).is_finite(), lambda r: f"the rating is {values[r]}")
    ratings = values.cast(pl.Float32)
    sized = ratings.abs() <= LARGEST_RATING
    _all(found, sized, lambda r: f"the rating is {values[r]}, beyond {LARGEST_RATING:g}")
    if span is not None:
        low, high = span
        inside = (ratings >= low) & (ratings <= high)
        _all(found, inside, lambda r: f"the rating is {ratings[r]:g}, not in {low:g} to {high:g}")
    return ratings


def times(found: SourceColumns) -> pl.Series:
    """Return the times as Float64: seconds since 1970 for dates, else the numbers."""
    values = found.columns["time"]
    _all_there(found, "time", values)
    if values.dtype == pl.String:
        values = _dates(values)
        given = found.columns["time"]
        _all(found, values.is_not_null(), lambda r: f"the time is {given[r]!r:.60}, not a date")
    if values.dtype.is_temporal() and not isinstance(values.dtype, pl.Time | pl.Duration):
        return values.cast(pl.Datetime("us")).dt.timestamp("us").cast(pl.Float64) / 1e6
    if not values.dtype.is_numeric():
        raise RatingsError(f"{found.name}: the times are of type {values.dtype}, not numbers")
    seconds = values.cast(pl.Float64)
    _all(found, seconds.is_finite(), lambda r: f"the time is {seconds[r]}")
    return seconds


def _dates(values: pl.Series) -> pl.Series:
    """Parse numbers or dates in the format that fits most values; null where it does not fit."""
    best = values.cast(pl.Float64, strict=False)
    bare = values.str.strip_suffix("Z")
    for form in DATES:
        if best.null_count() == 0:
            break
        parsed = bare.str.to_datetime(form, strict=False, time_unit="us")
        best = parsed if parsed.null_count() < best.null_count() else best
    return best


def _all_there(found: SourceColumns, role: str, values: pl.Series) -> None:
    _all(found, values.is_not_null(), lambda row: f"there is no {role}")


def _all(found: SourceColumns, holds: pl.Series, otherwise: Callable[[int], str]) -> None:
    """Raise for the first row in which a condition does not hold."""
    if not holds.all():
        row = int(np.argmin(holds.to_numpy()))
        raise RatingsError(f"{found.where(row)}: {otherwise(row)}")
