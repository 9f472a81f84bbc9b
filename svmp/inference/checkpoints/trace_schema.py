"""The trace of a run in files: the names of its columns, and its numbers."""

from __future__ import annotations

from typing import Any

from svmp.inference.trace import BUFFERS, COLUMNS, HELD_OUT
from svmp.saving.schema import Tensor, Tensors, finite, list_of, need, text


def trace_names(name: str, value: Any) -> list[str]:
    """Column names of a trace: none if it is empty, else those that a run writes."""
    found = [str(column) for column in list_of(text)(name, value)]
    more = found[len(COLUMNS) :]
    more = more[len(BUFFERS) :] if more[: len(BUFFERS)] == [*BUFFERS] else more
    known = not found or (found[: len(COLUMNS)] == [*COLUMNS] and more in ([], [HELD_OUT]))
    need(known, "damaged: the trace has other columns")
    return found


def trace_tensors(columns: list[str], tensors: Tensors) -> dict[str, Tensor]:
    """Declare the columns of a trace: finite numbers, the same count in each."""
    first = tensors.get(f"trace/{columns[0]}") if columns else None
    rows = 0 if first is None else first.size
    column = Tensor((rows,), finite, ("int64", "float64"))
    return {f"trace/{name}": column for name in columns}
