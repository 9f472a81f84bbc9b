"""The trace of a run: a table with a row for each bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
HELD_OUT = "held_out"
"""The column of a run with held-out values."""


class Trace:
    """A table of numbers with a row for each bound.

    >>> trace = Trace()
    >>> trace.append(iteration=1, bound=-3.5)
    >>> trace.append(iteration=2, bound=-2.5)
    >>> trace["bound"]
    array([-3.5, -2.5])
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
        return np.asarray(self._columns[column])

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), []))

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the columns as arrays, ready for a data frame."""
        return {name: self[name] for name in self._columns}

    def __repr__(self) -> str:
        head = "  ".join(f"{c:>14}" for c in self._columns)
        count = len(self)
        shown = range(count) if count <= 10 else [*range(5), *range(count - 5, count)]
        lines = ["  ".join(f"{self._columns[c][i]:>14,.10g}" for c in self._columns) for i in shown]
        if count > 10:
            lines.insert(5, f"... {count - 10} more")
        return "\n".join([head, *lines])
