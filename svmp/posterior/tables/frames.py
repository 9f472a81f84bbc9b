"""`fit.to_frame("u")`: posteriors as data frames, with a column for each dim and each statistic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError, SvmpError
from svmp.network.dims.labels import object_array
from svmp.network.validation import shown
from svmp.posterior.marginals.posterior import tails
from svmp.posterior.marginals.rows import entry_names
from svmp.posterior.record.kinds import kind_of, kind_of_variable
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.tables.entries import Dim, checked_names, dims_of, statistics

BACKENDS = ("pandas", "polars", "pyarrow")
SIMPLE = (str, int, float, bool)


def to_frame(
    fit: RunRecord, name: str | None = None, prob: float = 0.9, backend: str = "pandas"
) -> Any:
    """Return one variable entry by entry, or all variables that are single numbers.

    Parameters
    ----------
    fit, name
        The fit, and the variable.
    prob
        Probability of the intervals.
    backend
        "pandas", "polars" or "pyarrow".
    """
    tails(prob)
    if name is None:
        single = [n for n, q in fit.posteriors.items() if np.ndim(q.mean) == 0]
        return frame_of(_named(fit, single, prob), backend, kind_of(fit))
    if not isinstance(name, str):
        raise ModelError(f"to_frame needs the name of a variable, not {shown(name)}")
    (name,) = checked_names(fit, name)
    q = fit.posteriors[name]
    sds = kind_of_variable(fit, name)
    return entries_frame(name, dims_of(fit, q), statistics(q, prob), backend, sds)


def entries_frame(
    name: str, dims: list[Dim], numbers: Mapping[str, NDArray[Any]], backend: str, sds: str
) -> Any:
    """Return a data frame with a row for each entry: its labels, then its numbers.

    Parameters
    ----------
    name, dims, numbers, backend
        The variable, its dims, the numbers of its entries, and the library of the frame.
    sds
        What the sds are those of.
    """
    for dim in dims:
        if dim.name in numbers:
            raise ModelError(
                f"the dimension '{dim.name}' of '{name}' has the name of a statistic; rename it"
            )
    columns = dict(zip([d.name for d in dims], index_of(dims, backend), strict=True))
    return frame_of({**columns, **{k: np.ravel(v) for k, v in numbers.items()}}, backend, sds)


def summary_frame(fit: RunRecord, names: list[str], prob: float, backend: str) -> Any:
    """Return a row for each entry of some variables, as `u[alice, 0]`."""
    return frame_of(_named(fit, names, prob), backend, kind_of(fit))


def _named(fit: RunRecord, names: list[str], prob: float) -> dict[str, Any]:
    """Return the columns of a table of entries of several variables."""
    labels: list[str] = []
    pieces: dict[str, list[NDArray[Any]]] = {c: [] for c in ("mean", "sd", "lower", "upper")}
    for name in names:
        q = fit.posteriors[name]
        dims, numbers = dims_of(fit, q), statistics(q, prob)
        size = np.size(numbers["mean"])
        labels += entry_names(name, [[dim.text(i) for i in range(dim.size)] for dim in dims])
        for column, piece in pieces.items():
            piece.append(np.ravel(numbers.get(column, np.full(size, np.nan))))
    joined = {c: np.concatenate(p) if p else np.zeros(0) for c, p in pieces.items()}
    return {"variable": labels, **joined}


def index_of(dims: list[Dim], backend: str) -> list[Any]:
    """Return the label of each entry along each dim."""
    if not dims:
        return []
    places = np.unravel_index(np.arange(np.prod([d.size for d in dims])), [d.size for d in dims])
    found = []
    for dim, at in zip(dims, places, strict=True):
        values = dim.values
        if values.dtype == object and backend != "pandas" and not _uniform(values):
            values = object_array([str(value) for value in values])  # Arrow needs one type
        found.append(values[at])
    return found


def _uniform(values: NDArray[Any]) -> bool:
    types = set(map(type, values.tolist()))
    return len(types) <= 1 and types <= set(SIMPLE)


def frame_of(columns: Mapping[str, Any], backend: str, sds: str) -> Any:
    """Return columns as a data frame of a library, which says what its sds are those of.

    Polars has no place for that.
    """
    if backend not in BACKENDS:
        raise ModelError(f'backend must be "pandas", "polars" or "pyarrow", not {shown(backend)}')
    try:
        if backend == "pandas":
            import pandas as pd

            frame = pd.DataFrame(dict(columns))
            frame.attrs["covariances"] = sds
            return frame
        listed = {
            name: values.tolist() if np.asarray(values).dtype.kind == "O" else values
            for name, values in columns.items()
        }
        if backend == "polars":
            import polars as pl

            return pl.DataFrame(listed)
        import pyarrow as pa

        return pa.table(listed).replace_schema_metadata({"covariances": sds})
    except ModuleNotFoundError:
        raise SvmpError(
            f"this data frame needs {backend}: pip install {backend}, or say another backend="
        ) from None
