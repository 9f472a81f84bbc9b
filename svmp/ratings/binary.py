"""Ratings in Parquet and in NumPy's `.npz`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from svmp.errors import RatingsError
from svmp.ratings.columns import Choice
from svmp.ratings.convert import Found
from svmp.ratings.lines import DAMAGED, refusing


def read_parquet(path: Path, choice: Choice) -> Found:
    """Read the columns of a Parquet file."""
    try:
        with refusing(path):
            names = list(pl.read_parquet_schema(path))
            places = choice.among(str(path), names, header=True)
            frame = pl.read_parquet(path, columns=sorted({names[p] for p in places.values()}))
    except pl.exceptions.PolarsError as error:
        raise _damaged(path, error) from None
    found = {role: frame[names[place]] for role, place in places.items()}
    return Found(str(path), found, lambda row: f"{path}, row {row + 1}")


def read_npz(path: Path, choice: Choice) -> Found:
    """Read the arrays of an `.npz` file; with `user_ids`, the users are places in it."""
    with refusing(path):
        try:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                names = [name for name in file.files if name not in ("user_ids", "item_ids")]
                places = choice.among(str(path), names, header=True)
                found = {role: file[names[place]] for role, place in places.items()}
                ids = {r: file[f"{r}_ids"] for r in ("user", "item") if f"{r}_ids" in file.files}
        except RatingsError:
            raise
        except DAMAGED as error:
            raise _damaged(path, error) from None
    if len({array.shape for array in found.values()}) > 1 or found["user"].ndim != 1:
        shapes = ", ".join(f"{role} {array.shape}" for role, array in found.items())
        raise RatingsError(f"{path}: the columns differ in length: {shapes}")
    for role, labels in ids.items():
        _check_keys(path, role, labels, found[role])
    series = {role: pl.Series(array) for role, array in found.items()}
    return Found(str(path), series, lambda row: f"{path}, row {row + 1}", ids)


def _check_keys(path: Path, role: str, ids: NDArray[Any], keys: NDArray[Any]) -> None:
    """Refuse ids that are none, or keys that are not places among them."""
    if ids.ndim != 1 or ids.dtype.kind not in "iuU" or len(np.unique(ids)) != len(ids):
        raise RatingsError(f"{path}: {role}_ids must be strings or whole numbers, each once")
    if keys.dtype.kind not in "iu":
        raise RatingsError(f"{path}: beside {role}_ids, {role} must be whole numbers from 0")
    outside = (keys < 0) | (keys >= len(ids))
    if outside.any():
        row = int(np.argmax(outside))
        raise RatingsError(
            f"{path}, row {row + 1}: the {role} is {keys[row]}, but there are {len(ids)} {role}_ids"
        )


def _damaged(path: Path, error: Exception) -> RatingsError:
    reason = " ".join(str(error).split())
    return RatingsError(f"{path}: the file is damaged or cut short ({reason:.200})")
