"""`prediction.to_frame()`: a row for each entry, with a column for each dim and each statistic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from svmp.families.family import Array
from svmp.inference.output.entries import Dim
from svmp.inference.output.frames import entries_frame


def prediction_frame(
    name: str,
    dims: Sequence[str],
    labels: Mapping[str, Sequence[Any]],
    numbers: Mapping[str, Array],
    backend: str,
) -> Any:
    """Return the statistics of a prediction with their labels.

    Parameters
    ----------
    name, dims, labels
        The variable, its dims, and the labels along those that have them; the dims of a Categorical
        end with that of its categories.
    numbers
        By name, a statistic of each entry; that of a Categorical has its categories as last axis.
    backend
        "pandas", "polars" or "pyarrow".
    """
    shape = numbers["mean"].shape
    found: list[Dim] = []
    for dim, size in zip(dims, shape, strict=True):
        known = labels.get(dim)
        twice = any(other.name == dim for other in found)
        found.append(Dim(f"{dim}_2" if twice else dim, size, None if known is None else [*known]))
    return entries_frame(name, found, numbers, backend)
