"""Tables of what is known about items: category, stock, year; to filter, boost and limit lists by.

A column has numbers, or text. Text with bars, as "comedy|drama", has several values. An item that
the table does not have, or without a value, has no value in the column.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ExtraError, ModelError, RatingsError, called
from svmp.ratings.table import Ids, keys_of
from svmp.recommend.side import Floats

NAMES = ("item", "item_id", "itemid", "id", "movieid", "movie_id", "book_id", "isbn")
"""Names of the column of ids; else it is the first."""
MOST = 1 << 34
"""Size limit of a Parquet file, in bytes."""
LIMITS = {"min", "max", "not"}
Where = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Column:
    """A column by the items of a model.

    Attributes
    ----------
    name
        Its name.
    numbers
        The numbers, NaN for none; None if it has text.
    texts
        The text of each item, "" for none; None if it has numbers.
    """

    name: str
    numbers: Floats | None
    texts: NDArray[Any] | None

    @cached_property
    def parts(self) -> tuple[NDArray[np.str_], NDArray[np.int32]]:
        """The distinct values of text, and their places for each item: -1 behind the last."""
        assert self.texts is not None
        whole, place = np.unique(self.texts, return_inverse=True)
        lists = [
            [part for one in dict.fromkeys(text.split("|")) if (part := one.strip())]
            for text in whole.tolist()
        ]
        values = np.array(sorted({part for one in lists for part in one}), np.str_)
        codes = np.full((len(whole), max(1, max(map(len, lists), default=1))), -1, np.int32)
        for row, one in enumerate(lists):
            codes[row, : len(one)] = np.searchsorted(values, one) if one else []
        return values, codes[place.ravel()]

    def equals(self, value: Any) -> NDArray[np.bool_]:
        """Return which items have a value."""
        if self.numbers is not None:
            return np.asarray(self.numbers == self._number(value))
        assert self.texts is not None
        values, codes = self.parts
        text = str(value)
        place = int(np.searchsorted(values, text)) if len(values) else 0
        there = place < len(values) and values[place] == text
        found = (codes == place).any(axis=1) if there else np.zeros(len(codes), bool)
        return np.asarray(found | ((self.texts == text) & (text != "")))

    def compares(self, value: Any, at_least: bool) -> NDArray[np.bool_]:
        """Return which items have at least, or at most, a value; text by its order."""
        if self.numbers is not None:
            own: Any = self.numbers
            limit: Any = self._number(value)
        else:
            own, limit = self.texts, str(value)
        there = own == own if self.numbers is not None else own != ""
        return np.asarray(there & ((own >= limit) if at_least else (own <= limit)))

    def _number(self, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ModelError(
                f"the column {self.name!r:.60} of the items has numbers, not {value!r:.60}"
            ) from None


class ItemTable:
    """Columns of items, from a CSV or Parquet file, a data frame, or a dict of columns.

    Parameters
    ----------
    data
        A path, a table of pandas, Polars or PyArrow, or a dict of columns.
    id
        The column of ids; by default "item", "id" or a similar name, or else the first.
    encoding
        Encoding of a text file.

    >>> table = ItemTable({"item": [7, 8, 9], "genre": ["comedy", "drama|comedy", None]})
    >>> table.matches(np.array([9, 8, 7, 6]), {"genre": "comedy"})
    array([False,  True,  True, False])
    """

    def __init__(self, data: Any, id: str | None = None, encoding: str = "utf-8") -> None:
        self.name = str(data) if isinstance(data, str | os.PathLike) else "items"
        frame = read_table(data, encoding)
        if not frame.width:
            raise RatingsError(f"{self.name}: the table has no columns")
        lower = {name.lower(): name for name in reversed(frame.columns)}
        known = next((lower[name] for name in NAMES if name in lower), frame.columns[0])
        self.id = known if id is None else id
        if self.id not in frame.columns:
            raise RatingsError(f"{self.name}: there is no column {self.id!r:.60}")
        self.frame = frame.filter(frame[self.id].is_not_null())
        if self.frame[self.id].is_duplicated().any():
            twice = self.frame[self.id].filter(self.frame[self.id].is_duplicated())[0]
            raise RatingsError(f"{self.name}: the item {twice!s:.60} is there twice")
        self._rows: tuple[Ids, NDArray[np.int64]] | None = None
        self._columns: dict[str, Column] = {}

    @property
    def columns(self) -> list[str]:
        """Names of the columns, without that of the ids."""
        return [name for name in self.frame.columns if name != self.id]

    def rows(self, ids: Ids) -> NDArray[np.int64]:
        """Return the row of each item, -1 if there is none."""
        if self._rows is None or self._rows[0] is not ids:
            import polars as pl

            kind = pl.String if ids.dtype.kind == "U" else pl.Int64
            column = self.frame[self.id].cast(kind, strict=False)
            there = np.flatnonzero(column.is_not_null().to_numpy())
            some = column.drop_nulls()
            own = np.array(some.to_list(), np.str_) if kind == pl.String else some.to_numpy()
            found = np.full(len(ids), -1)
            if len(own):
                place = keys_of(own, ids)
                found = np.where(place < 0, -1, there[np.maximum(place, 0)])
            if len(ids) and (found < 0).all():
                raise RatingsError(
                    f"{self.name}: no id in the column {self.id!r:.60} is that of an item of the "
                    "model"
                )
            self._rows, self._columns = (ids, found), {}
        return self._rows[1]

    def column(self, ids: Ids, name: str) -> Column:
        """Return a column by the items of a model."""
        rows = self.rows(ids)
        if name not in self._columns:
            self._columns[name] = self._read(rows, name)
        return self._columns[name]

    def _read(self, rows: NDArray[np.int64], name: str) -> Column:
        import polars as pl

        if name not in self.frame.columns:
            there = ", ".join(self.columns)
            raise ModelError(
                f"{called('items')}: there is no column {name!r:.60}, only {there:.200}"
            )
        column, absent = self.frame[name], rows < 0
        if column.dtype.is_numeric() or column.dtype == pl.Boolean:
            own = column.cast(pl.Float64).to_numpy()
            values = np.append(np.where(column.is_null().to_numpy(), np.nan, own), np.nan)
            return Column(name, np.where(absent, np.nan, values[rows]), None)
        if isinstance(column.dtype, pl.List):
            column = column.cast(pl.List(pl.String)).list.join("|")
        texts = np.array([*column.cast(pl.String).fill_null("").to_list(), ""], np.str_)
        return Column(name, None, np.where(absent, "", texts[rows]))

    def matches(self, ids: Ids, where: Where) -> NDArray[np.bool_]:
        """Return which items of a model fulfil all conditions.

        Parameters
        ----------
        ids
            Ids of the items.
        where
            By column: a value; a list, of which an item must have one; or a dict of "min", "max"
            and "not". Items without a value fulfil only "not".
        """
        found = np.ones(len(ids), bool)
        for name, condition in _dict("where", where).items():
            column = self.column(ids, name)
            if not isinstance(condition, Mapping):
                found &= _any(column, condition)
                continue
            if not condition or not set(condition) <= LIMITS:
                raise ModelError(
                    f"{called('where')}: the condition of {name!r:.60} must be a value, a list, or "
                    f"a dict of 'min', 'max' and 'not', not {dict(condition)!r:.60}"
                )
            for kind, value in condition.items():
                found &= (
                    ~_any(column, value) if kind == "not" else column.compares(value, kind == "min")
                )
        return found

    def boosts(self, ids: Ids, boosts: Mapping[str, Any]) -> Floats:
        """Return what is added to the score of each item.

        By column: for numbers, points for each unit; for values, a dict of points.
        """
        total = np.zeros(len(ids))
        for name, given in _dict("boost", boosts).items():
            column = self.column(ids, name)
            if isinstance(given, Mapping):
                for value, points in given.items():
                    total += _points("boost", points) * column.equals(value)
            elif column.numbers is None:
                raise ModelError(
                    f"{called('boost')}: the column {name!r:.60} has text; give points by value"
                )
            else:
                total += _points("boost", given) * np.nan_to_num(column.numbers)
        return total.astype(np.float32)

    def quotas(
        self, ids: Ids, quotas: Mapping[str, Any]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the limited values of each item, -1 behind the last, and the limit of each value.

        By column: the most items of any one value, or a dict of that by value.
        """
        codes: list[NDArray[np.int32]] = []
        limits: list[int] = []
        for name, given in _dict("quota", quotas).items():
            column = self.column(ids, name)
            if isinstance(given, Mapping):
                for value, most in given.items():
                    codes.append(
                        np.where(column.equals(value), len(limits), -1).astype(np.int32)[:, None]
                    )
                    limits.append(_whole(most))
                continue
            if column.numbers is None:
                values, own = column.parts
            else:
                values, place = np.unique(column.numbers, return_inverse=True)
                there = column.numbers == column.numbers
                own = np.where(there, place.ravel(), -1).astype(np.int32)[:, None]
            codes.append(np.where(own < 0, -1, own + len(limits)).astype(np.int32))
            limits += [_whole(given)] * max(len(values), 1)
        wide = np.hstack(codes) if codes else np.full((len(ids), 1), -1)
        return np.ascontiguousarray(wide, np.int32), np.array(limits or [0], np.int64)


def read_table(data: Any, encoding: str = "utf-8") -> Any:
    """Return a table of items as a data frame of Polars."""
    try:
        import polars as pl
    except ModuleNotFoundError as error:
        raise ExtraError(error, "recommend") from None
    from svmp.ratings import parquet
    from svmp.ratings.library_errors import reading

    try:
        text = None
        if isinstance(data, str | os.PathLike) and Path(data).suffix != ".parquet":
            utf8 = encoding.lower() in ("utf-8", "utf8")
            text = Path(data).read_text("utf-8-sig" if utf8 else encoding)
        with reading():
            if text is not None:
                return pl.read_csv(text.encode(), infer_schema_length=None)
            if isinstance(data, str | os.PathLike):
                return parquet.read(Path(data), MOST)
            if isinstance(data, pl.LazyFrame):
                return data.collect()
            return data if isinstance(data, pl.DataFrame) else pl.DataFrame(data)
    except LookupError:
        raise RatingsError(f"{data}: there is no encoding {encoding!r:.60}") from None
    except UnicodeError:
        raise RatingsError(
            f"{data}: this is not {encoding} text; name its encoding, as latin-1"
        ) from None
    except (OSError, ValueError, TypeError, pl.exceptions.PolarsError) as error:
        if isinstance(error, RatingsError):
            raise
        name = data if isinstance(data, str | os.PathLike) else "items"
        raise RatingsError(f"{name}: the table cannot be read ({error!s:.200})") from None


def _any(column: Column, values: Any) -> NDArray[np.bool_]:
    """Return which items have one of some values, or a single one."""
    several = isinstance(values, list | tuple | set | frozenset | np.ndarray)
    found = [column.equals(value) for value in (values if several else [values])]
    return np.any(found, axis=0) if found else column.equals("") & False


def _dict(name: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise ModelError(f"{called(name)} must be a dict by column, not {given!r:.60}")
    return given


def _points(name: str, value: Any) -> float:
    real = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not real or not np.isfinite(value):
        raise ModelError(f"{called(name)} must have numbers of points, not {value!r:.60}")
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ModelError(f"{called('quota')} must have whole numbers from 0, not {value!r:.60}")
    return int(value)
