"""The trace of a run: a table with a row for each bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.network.tables import Columns, first_and_last

COLUMNS = (
    "iteration",
    "accesses",
    "seconds",
    "bound",
    "bound_se",
    "moved",
    "step_min",
    "step_median",
    "step_max",
    "C",
    "rollbacks",
)
"""The columns of every run."""
BUFFERS = ("buffer", "buffer_left")
"""The columns of a run on subchains: rows of the longest buffer so far, and what it left untold."""
HELD_OUT = "held_out"
"""The column of a run with held-out values."""


class Trace(Columns):
    """A table of numbers with a row for each bound; iterating over it gives the names of columns.

    >>> trace = Trace()
    >>> trace.append(iteration=1, bound=-3.5)
    >>> trace.append(iteration=2, bound=-2.5)
    >>> trace["bound"]
    array([-3.5, -2.5])
    >>> list(trace), len(trace)
    (['iteration', 'bound'], 2)
    """

    def __init__(self, columns: dict[str, list[float]] | None = None) -> None:
        self._columns: dict[str, list[float]] = columns or {}

    def append(self, **values: float) -> None:
        """Add a row."""
        for name, value in values.items():
            self._columns.setdefault(name, []).append(value)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    def last(self, column: str) -> float:
        """Return the newest number of a column."""
        return self._columns[column][-1]

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in self._columns:
            raise KeyError(f"the trace has no column {column!r}; there are {self.columns}")
        return np.asarray(self._columns[column])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, column: object) -> bool:
        return column in self._columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), []))

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the columns as arrays, ready for a data frame."""
        return {name: self[name] for name in self._columns}

    def columns_by_name(self) -> dict[str, NDArray[Any]]:
        return self.to_dict()

    def __repr__(self) -> str:
        rows = first_and_last(self.to_dict(), digits=10)
        lines = (
            row if row[0].startswith("...") else "  ".join(f"{c:>14}" for c in row)
            for row in ([*self._columns], *rows)
        )
        return "\n".join(line if isinstance(line, str) else line[0] for line in lines)
