"""Files of pairs of users and items, and of predictions for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from svmp.errors import FileError, RatingsError
from svmp.writing import check_place, written_beside

if TYPE_CHECKING:
    from svmp.recommend.factor_model import FactorModel
    from svmp.recommend.side import EntityTable

STARTS = {".parquet": b"PAR1", ".csv": b"user,item,mean,std,low,high"}
"""The first bytes of files that may be replaced, by their suffix."""


def read_pairs(path: Path, model: FactorModel) -> tuple[Any, Any]:
    """Return the users and the items of a file: columns of these names, or else the first two."""
    from svmp.recommend.item_table import read_table

    table = read_table(path)
    lower = {name.lower(): name for name in reversed(table.columns)}
    if table.width < 2 or not len(table):
        raise RatingsError(f"{path}: there are no pairs, in two columns of users and items")
    found = []
    for place, known in enumerate((model.users_, model.items_)):
        named = [
            lower[x] for x in (known.what, f"{known.what}id", f"{known.what}_id") if x in lower
        ]
        found.append(_ids(path, table[(named or table.columns[place : place + 1])[0]], known))
    return found[0], found[1]


def _ids(path: Path, column: Any, known: EntityTable) -> Any:
    """Return ids of the type that a model has."""
    import polars as pl

    kind = pl.String if known.ids.dtype.kind == "U" else pl.Int64
    cast = column.cast(kind, strict=False)
    if cast.null_count():
        what = "text" if kind == pl.String else "whole numbers"
        wrong = column.filter(cast.is_null())[0]
        raise RatingsError(f"{path}: the {known.what}s of this model are {what}, not {wrong!r:.60}")
    return np.array(cast.to_list(), np.str_ if kind == pl.String else np.int64)


def check_out(path: Path) -> None:
    """Raise if predictions cannot be written to a path."""
    start = STARTS.get(path.suffix)
    if start is None:
        raise FileError(
            f"{path}: predictions are written to .parquet or .csv, not {path.suffix!r:.20}"
        )

    def ours(there: Path) -> bool:
        with there.open("rb") as file:
            return file.read(len(start)) in (b"", start)

    check_place(path, ours, "a table of predictions")


def write_rows(path: Path, columns: dict[str, Any]) -> None:
    """Write columns to a CSV or Parquet file."""
    import polars as pl

    first = {"user": [None] * len(columns["item"])} if "user" not in columns else {}
    table = pl.DataFrame({**first, **columns})
    with written_beside(path) as draft:
        if path.suffix == ".csv":
            table.write_csv(draft)
        else:
            table.write_parquet(draft)
