"""`Columns`: the rows of a table or of one part of it, as NumPy arrays by column name.

A column of ids v becomes the pair (labels, keys), with `labels[keys] == v` and ascending labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svmp.errors import ModelError
from svmp.network.dims.labels import LabelIndex, missing_rows, object_array
from svmp.network.refusals import AttributeModelError
from svmp.network.validation import as_array, shown

LARGEST_WHOLE = 2**53
"""Floats below this number that are whole are exact."""
SPREAD = 4
"""Ids are looked up in a table, if it has at most this many places per row."""


class Columns:
    """An immutable table: `part["user"]` and `part.user` are the same array.

    Parameters
    ----------
    columns
        Arrays of equal length by name. They are not copied.
    name
        Name of the table in messages, as the path of its file.
    levels
        Labels of some columns in an order of their own, as the categories of a data frame.

    >>> part = Columns({"user": [30, 10, 30], "rating": [4.0, 5.0, 3.0]})
    >>> len(part), part.columns, part.rating
    (3, ('user', 'rating'), array([4., 5., 3.]))
    >>> part.labels("user"), part.keys("user")
    (array([10, 30]), array([1, 0, 1], dtype=int32))
    """

    def __init__(
        self,
        columns: Mapping[str, ArrayLike],
        name: str = "the part",
        levels: Mapping[str, list[Any]] | None = None,
    ) -> None:
        self._arrays = {column: _frozen(name, column, v) for column, v in columns.items()}
        self._ids: dict[str, tuple[NDArray[Any], NDArray[np.int32]]] = {}
        self.name, self._levels = name, dict(levels or {})
        lengths = {column: len(array) for column, array in self._arrays.items()}
        if len(set(lengths.values())) > 1:
            each = ", ".join(f"'{column}' {length}" for column, length in lengths.items())
            raise ModelError(f"{name}: the columns differ in length: {each}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._arrays)

    def labels(self, column: str) -> NDArray[Any]:
        """Return the distinct values of a column, ascending; of categories all, in their order."""
        return self._labels_and_keys(column)[0]

    def keys(self, column: str) -> NDArray[np.int32]:
        """Return the index of each row's value among the labels of its column."""
        return self._labels_and_keys(column)[1]

    def take(self, rows: Any, name: str | None = None) -> Columns:
        """Return some of the rows, by their numbers or by a slice.

        >>> Columns({"user": [30, 10, 30]}).take([2, 1]).user
        array([30, 10])
        """
        some = {column: array[rows] for column, array in self._arrays.items()}
        return Columns(some, self.name if name is None else name, self._levels)

    def items(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the names and the arrays of the columns."""
        yield from self._arrays.items()

    def __getitem__(self, column: Any) -> NDArray[Any]:
        """Return a column, or several side by side: `data[["age", "height"]]` is a design."""
        if isinstance(column, list):
            return np.column_stack([self[each] for each in column])
        if column not in self._arrays:
            raise ModelError(self._missing(column))
        return self._arrays[column]

    def __getattr__(self, column: str) -> NDArray[Any]:
        # Called for names that are no attributes. Private names are never columns: without this
        # line the lookup would call itself, if it is asked before `__init__` is done.
        if column.startswith("_"):
            raise AttributeError(column)
        if column not in self._arrays:
            raise AttributeModelError(self._missing(column))
        return self._arrays[column]

    def __contains__(self, column: object) -> bool:
        return column in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return next((len(array) for array in self._arrays.values()), 0)

    def __reduce__(self) -> tuple[type[Columns], tuple[Any, ...]]:
        return Columns, (self._arrays, self.name, self._levels)

    def __repr__(self) -> str:
        return f"<Columns: {len(self):,} rows of {', '.join(self._arrays)}>"

    def _missing(self, column: Any) -> str:
        there = ", ".join(f"'{known}'" for known in self._arrays) or "none"
        near = LabelIndex(list(self._arrays)).near(column)
        return f"{self.name}: there is no column {shown(column)}; there are {there}{near}"

    def _labels_and_keys(self, column: str) -> tuple[NDArray[Any], NDArray[np.int32]]:
        if column not in self._ids:
            labels, keys = label(self[column], column, self.name, self._levels.get(column))
            labels.flags.writeable = keys.flags.writeable = False
            self._ids[column] = labels, keys
        return self._ids[column]


def label(
    values: NDArray[Any], column: str, name: str, levels: list[Any] | None = None
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the distinct values, ascending, and the index of each value among them."""
    missing = missing_rows(values)
    if missing.any():
        row = int(np.argmax(missing))
        raise ModelError(f"{name}, row {row + 1}: there is no '{column}', which is needed as a key")
    if levels is not None:
        return object_array(levels), LabelIndex(levels).find(values).astype(np.int32)
    if values.dtype.kind == "f":
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise ModelError(
                f"{name}, row {row + 1}: '{column}' is {values[row]:g}; keys must be finite"
            )
        if ((values == np.floor(values)) & (np.abs(values) < LARGEST_WHOLE)).all():
            values = values.astype(np.int64)
    if values.dtype.kind in "OUT":
        return _label_objects(values, column, name)
    if values.dtype.kind in "iu":
        return _label_integers(values)
    labels, places = np.unique(values, return_inverse=True)
    return labels, places.astype(np.int32)


def _label_integers(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Label whole numbers, by a table over their range if that is short: it avoids a sort."""
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    low, high = int(values.min()), int(values.max())
    if high >= 2**63 or high - low >= SPREAD * len(values) + 1000:
        labels, places = np.unique(values, return_inverse=True)
        return labels.astype(np.int64 if high < 2**63 else np.uint64), places.astype(np.int32)
    offsets = values.astype(np.int64) - low
    there = np.zeros(high - low + 1, bool)
    there[offsets] = True
    place = np.cumsum(there, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(there) + low, place[offsets]


def _label_objects(
    values: NDArray[Any], column: str, name: str
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Label strings; a dict is several times faster than sorting all rows."""
    every = values.tolist()
    try:
        known = sorted(set(every))
    except TypeError:
        kinds = ", ".join(sorted({type(value).__name__ for value in every}))
        raise ModelError(f"{name}: the values of '{column}' are of mixed types: {kinds}") from None
    places = {value: place for place, value in enumerate(known)}
    keys = np.fromiter((places[value] for value in every), np.int32, len(every))
    return object_array(known), keys


def _frozen(name: str, column: Any, values: ArrayLike) -> NDArray[Any]:
    """Return a read-only view of a column."""
    if not isinstance(column, str):
        raise ModelError(f"{name}: the name of a column must be a string, not {column!r:.60}")
    array = as_array(values)
    if array.ndim != 1:
        raise ModelError(
            f"{name}: '{column}' has shape {array.shape}; a column has one value a row"
        )
    view = array.view()
    view.flags.writeable = False
    return view
