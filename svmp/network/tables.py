"""Tables: of strings, for a terminal and a notebook; and of columns, for other libraries too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import SvmpError

Row = Sequence[str]
ENDS = 5
"""Rows that are shown at each end of a long table."""


def text_table(heads: Row, rows: Sequence[Row]) -> str:
    """Return a table with a line for each row, and columns of equal width.

    >>> print(text_table(("name", "mean"), [("mu", "0.5"), ("sigma", "1")]))
    name   mean
    -----  ----
    mu     0.5
    sigma  1
    """
    lines = [heads, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    text = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
    text.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(line.rstrip() for line in text)


def html_table(heads: Row, rows: Sequence[Row], caption: str = "") -> str:
    """Return a table in HTML, with all text escaped.

    >>> html_table(("name",), [("a<b",)])
    '<table><thead><tr><th>name</th></tr></thead><tbody><tr><td>a&lt;b</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def first_and_last(columns: Mapping[str, NDArray[Any]], digits: int = 4) -> list[list[str]]:
    """Return the rows of a table as text; of a long one its ends, and a row with what is between.

    >>> first_and_last({"place": np.arange(3), "mean": np.array([0.5, 1 / 3, 2])})
    [['0', '0.5'], ['1', '0.3333'], ['2', '2']]
    """
    count = max(map(len, columns.values()), default=0)
    long = count > 2 * ENDS
    shown = [*range(ENDS), *range(count - ENDS, count)] if long else range(count)
    rows = [[_cell(values[i], digits) for values in columns.values()] for i in shown]
    if long:
        between = f"... {count - 2 * ENDS:,} more"
        rows.insert(ENDS, [between, *[""] * (len(columns) - 1)])
    return rows


def _cell(value: Any, digits: int) -> str:
    return f"{value:,.{digits}g}" if isinstance(value, float | np.floating) else str(value)


class Columns:
    """What has columns of equal length: a table in a notebook, and a stream of Arrow's.

    So `polars.DataFrame(x)` and `pyarrow.table(x)` read it.
    """

    @abstractmethod
    def columns_by_name(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the table as a stream of Arrow's C interface, made by PyArrow or Polars."""
        columns = {
            name: values.tolist() if values.dtype.kind in "OU" else np.ascontiguousarray(values)
            for name, values in self.columns_by_name().items()
        }
        for library, make in (("pyarrow", "table"), ("polars", "DataFrame")):
            try:
                table = getattr(import_module(library), make)(columns)
            except ModuleNotFoundError:
                continue
            return table.__arrow_c_stream__(requested_schema)
        raise SvmpError("a table for Arrow needs PyArrow or Polars: pip install pyarrow")

    def to_pandas(self) -> Any:
        """Return the table as a data frame of pandas."""
        return _library("pandas").DataFrame(dict(self.columns_by_name()))

    def to_arrow(self) -> Any:
        """Return the table as a table of PyArrow."""
        return _library("pyarrow").table(self)

    def to_polars(self) -> Any:
        """Return the table as a data frame of Polars."""
        return _library("polars").DataFrame(self)

    def _caption(self) -> str:
        return ""

    def _repr_html_(self) -> str:
        columns = self.columns_by_name()
        return html_table(list(columns), first_and_last(columns), self._caption())


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise SvmpError(f"this needs {name}: pip install {name}") from None
