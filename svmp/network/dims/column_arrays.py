"""Columns of a model's data that remember where they are from, for `model.with_data`.

`model.data.days` is an array of NumPy. It knows its column, and an array that is computed from it
row by row, as `np.log(model.data.days)`, knows how. `with_data(days=...)` computes both anew. A
mean over rows, as in `x - x.mean()`, is a plain number, and stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.network.dims.data_columns import Columns

ROW_BY_ROW = (np.where, np.column_stack, np.clip, np.digitize, np.nan_to_num, np.isin)
"""Functions of NumPy, beside ufuncs, that compute each row from that row of their arguments."""


class Source(str):
    """The name of an array of `svmp.data`, or of a column or of what was computed from columns."""

    __slots__ = ()

    @property
    def columns(self) -> frozenset[str]:
        """The columns from which it was computed; none if it is named itself."""
        return frozenset()

    def compute(self, data: Mapping[str, Any]) -> Any:
        """Return its values, from the columns."""
        return data[self]


class Computed(Source):
    """An array that was computed from columns.

    Attributes
    ----------
    function, arguments, options
        How it was computed. The function is None if it cannot be computed anew.
    """

    function: Callable[..., Any] | None
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]

    def __new__(
        cls,
        function: Callable[..., Any] | None,
        arguments: tuple[Any, ...],
        options: Mapping[str, Any] | None = None,
    ) -> Computed:
        names = dict.fromkeys(f"'{c}'" for s in sources_of(arguments) for c in s.columns or {s})
        self = super().__new__(cls, f"an array computed from {', '.join(sorted(names))}")
        self.function, self.arguments, self.options = function, arguments, options or {}
        return self

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(c for s in sources_of(self.arguments) for c in s.columns or {str(s)})

    def compute(self, data: Mapping[str, Any]) -> Any:
        if self.function is None:
            raise ModelError(
                f"with_data: {self} cannot be computed anew; name it in the declaration, as "
                "svmp.data(..., name='x'), and give x= new values"
            )
        arguments = replaced(self.arguments, lambda array: array.source.compute(data))
        return self.function(*arguments, **self.options)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other


class ColumnArray(np.ndarray[Any, Any]):
    """A column of a model's data, or an array that was computed from columns.

    Attributes
    ----------
    source
        Where it is from.
    """

    source: Source

    @classmethod
    def of(cls, values: NDArray[Any], source: Source) -> ColumnArray:
        """Return a view of an array that knows where it is from."""
        found = values.view(cls)
        found.source = source
        return found

    def __array_finalize__(self, other: Any) -> None:
        if isinstance(other, ColumnArray):
            self.source = Computed(None, (other,))

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        if not all(isinstance(x, ColumnArray) or not _overrides(x) for x in inputs):
            return NotImplemented  # expressions and other libraries' arrays decide
        options = {name: replaced(value, np.asarray) for name, value in kwargs.items()}
        found = getattr(ufunc, method)(*replaced(inputs, np.asarray), **options)
        known = method == "__call__" and not options
        return _remembered(found, ufunc if known else None, inputs, {})

    def __array_function__(
        self, func: Any, types: Iterable[Any], args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        if not all(issubclass(t, ColumnArray) or t is np.ndarray for t in types):
            return NotImplemented
        given = tuple(args)
        options = {name: replaced(value, np.asarray) for name, value in kwargs.items()}
        found = func(*replaced(given, np.asarray), **options)
        if func in ROW_BY_ROW and not list(sources_of(tuple(kwargs.values()))):
            return _remembered(found, func, given, kwargs)
        return _remembered(found, None, (*given, *kwargs.values()), {})

    def astype(self, *args: Any, **options: Any) -> Any:
        found = np.asarray(self).astype(*args, **options)
        return ColumnArray.of(found, Computed(_astype, (self, *args), options))

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()


def _astype(values: Any, *args: Any, **options: Any) -> Any:
    return np.asarray(values).astype(*args, **options)


def _overrides(value: Any) -> bool:
    """Whether a value has ufuncs of its own, as an expression or a Series has."""
    return type(value) is not np.ndarray and (
        getattr(type(value), "__array_ufunc__", np.ndarray.__array_ufunc__)
        is not np.ndarray.__array_ufunc__
    )


def _remembered(
    found: Any, function: Callable[..., Any] | None, arguments: Any, options: Mapping[str, Any]
) -> Any:
    """Return what was computed from columns, with its source if it is an array."""
    if type(found) is np.ndarray and found.ndim:
        return ColumnArray.of(found, Computed(function, tuple(arguments), options))
    return found


def replaced(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested lists and tuples with every column array in them changed."""
    if isinstance(value, ColumnArray):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)([replaced(each, change) for each in value])
    return value


def sources_of(value: Any) -> Iterator[Source]:
    """Yield the sources of all column arrays in nested lists and tuples."""
    if isinstance(value, ColumnArray):
        yield value.source
    elif isinstance(value, list | tuple):
        for each in value:
            yield from sources_of(each)


def source_of(value: Any) -> str | None:
    """Return the source of a column array, None for anything else."""
    return value.source if isinstance(value, ColumnArray) else None


class ModelColumns(Columns):
    """The columns of a model's data, as arrays that remember where they are from."""

    @classmethod
    def of(cls, columns: Columns) -> ModelColumns:
        """Return the same columns."""
        found = cls.__new__(cls)
        found.__dict__.update(columns.__dict__)
        return found

    def __getitem__(self, column: Any) -> NDArray[Any]:
        found = super().__getitem__(column)
        return found if isinstance(column, list) else ColumnArray.of(found, Source(column))

    def __getattr__(self, column: str) -> NDArray[Any]:
        return ColumnArray.of(super().__getattr__(column), Source(column))

    def keys(self, column: str) -> NDArray[np.int32]:
        whole = ColumnArray.of(super().keys(column), Source(column))
        return ColumnArray.of(super().keys(column), Computed(None, (whole,)))
