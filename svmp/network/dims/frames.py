"""Data frames of pandas, Polars and PyArrow as `Columns`, through Narwhals.

column of the frame       array                      its labels
numbers                   numbers, NaN if missing    distinct values, ascending
strings                   objects, None if missing   distinct values, ascending
dates, times              datetime64, NaT            distinct values, ascending
times with a time zone    objects, None if missing   distinct values, ascending
categories                objects, None if missing   all categories, in their order
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svmp.errors import ModelError, SvmpError
from svmp.network.dims.data_columns import Columns
from svmp.network.dims.labels import object_array, plain_labels
from svmp.network.validation import as_array, shown


def columns_of(data: Any, name: str = "the data") -> Columns:
    """Return the columns of a data frame, or of a mapping from names to arrays.

    Parameters
    ----------
    data
        A data frame in memory, a mapping, or `Columns`, which are returned as they are.
    name
        Name of the table in messages.
    """
    if isinstance(data, Columns):
        return data
    if isinstance(data, Mapping):
        try:
            return Columns(data, name)
        except (TypeError, ValueError) as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(f"{name}: a column is no array with one value a row") from None
    try:
        import narwhals.stable.v1 as nw
    except ModuleNotFoundError:
        raise SvmpError('data frames are read with Narwhals: pip install "svmp[frames]"') from None
    try:
        frame = nw.from_native(data, eager_only=True)
    except TypeError:
        lazy = "; collect it first" if hasattr(data, "collect") else ""
        raise ModelError(
            f"{name} must be a data frame in memory (pandas, Polars, PyArrow), or arrays by name, "
            f"not {shown(data)}{lazy}"
        ) from None
    except nw.exceptions.DuplicateError:
        raise ModelError(f"{name}: two columns have the same name; rename one of them") from None
    for column in frame.columns:
        if not isinstance(column, str):
            raise ModelError(f"{name}: the name of a column must be a string, not {shown(column)}")
    levels = {
        column: plain_labels(frame[column].cat.get_categories().to_numpy())
        for column, kind in frame.schema.items()
        if isinstance(kind, nw.Categorical | nw.Enum)
    }
    zoned = {
        column
        for column, kind in frame.schema.items()
        if isinstance(kind, nw.Datetime) and kind.time_zone is not None
    }
    arrays = {
        column: object_array(plain_labels(frame[column].to_list()))
        if column in zoned
        else as_array(frame[column])
        for column in frame.columns
    }
    return Columns(arrays, name, levels)
