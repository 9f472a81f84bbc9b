"""Ratings in memory: data frames, Arrow tables, sparse matrices, arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from svmp.errors import RatingsError
from svmp.ratings.columns import ROLES, ColumnSelection
from svmp.ratings.convert import SourceColumns

KINDS = (
    "a path; a table of pandas, Polars or PyArrow; a scipy.sparse matrix; or the three arrays "
    "(users, items, ratings), or four with times"
)


def read(source: Any, choice: ColumnSelection) -> SourceColumns:
    """Return the columns of a table in memory."""
    if sparse.issparse(source):
        return _cells(source)
    if isinstance(source, tuple | list):
        enough = len(choice.needed) <= len(source) <= len(ROLES)
        if not enough or not all(map(_is_column, source)):
            raise RatingsError(f"ratings must be {KINDS}; this is a {type(source).__name__}")
        return _found("ratings", dict(zip(ROLES, source, strict=False)))
    if type(source).__module__.split(".")[0] == "pyarrow":
        source = pl.from_arrow(source)
    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    names = getattr(source, "columns", list(source) if isinstance(source, Mapping) else None)
    if names is None or isinstance(source, pl.Series):
        raise RatingsError(f"ratings must be {KINDS}; this is a {type(source).__name__}")
    names = list(names)
    places = choice.among("ratings", [str(name) for name in names], header=True)
    return _found("ratings", {role: source[names[place]] for role, place in places.items()})


def _cells(matrix: Any) -> SourceColumns:
    """Return the stored cells of a sparse matrix of users by items; ids are its indices."""
    cells = sparse.coo_array(matrix)
    columns = {"user": cells.row, "item": cells.col, "rating": cells.data}
    ids = {role: np.arange(size) for role, size in zip(ROLES, cells.shape, strict=False)}
    series = {role: pl.Series(array) for role, array in columns.items()}
    return SourceColumns("ratings", series, lambda cell: f"ratings, cell {cell}", ids)


def _found(name: str, columns: Mapping[str, Any]) -> SourceColumns:
    series = {role: _series(name, role, column) for role, column in columns.items()}
    lengths = {role: len(column) for role, column in series.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{role} {length}" for role, length in lengths.items())
        raise RatingsError(f"{name}: the columns differ in length: {shown}")
    return SourceColumns(name, series, lambda row: f"{name}, row {row}")


def _series(name: str, role: str, column: Any) -> pl.Series:
    """Convert a column to a Polars Series."""
    if isinstance(column, pl.Series):
        return column
    values = column if isinstance(column, list) else np.asarray(column)
    if isinstance(values, np.ndarray) and values.dtype.kind == "S":
        values = np.char.decode(values)
    if isinstance(values, list) or values.dtype.kind == "O":
        values = [None if _is_missing(value) else value for value in values]
        kinds = sorted({type(value).__name__ for value in values if value is not None})
        if len(kinds) > 1 and not set(kinds) <= {"int", "float"}:
            raise RatingsError(f"{name}: the {role}s are of mixed types: {', '.join(kinds)}")
    try:
        return pl.Series(values, strict=False)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        raise RatingsError(f"{name}: the {role}s are neither numbers nor strings") from None


def _is_column(column: Any) -> bool:
    try:
        return np.ndim(column) == 1
    except ValueError:  # rows of different lengths
        return False


def _is_missing(value: Any) -> bool:
    return value is None or value != value or type(value).__name__ in ("NAType", "NaTType")
