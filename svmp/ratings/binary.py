"""Ratings in Parquet and in NumPy's `.npz`."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.lib import format as npy
from numpy.typing import NDArray

from svmp.errors import RatingsError
from svmp.ratings import parquet
from svmp.ratings.columns import ColumnSelection
from svmp.ratings.convert import LARGEST, TOO_BIG, SourceColumns
from svmp.ratings.lines import refusing, too_much
from svmp.ratings.packed import check_members
from svmp.ratings.table import Ids

VERSIONS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
KINDS = "biufSUM"
"""Kinds of data types that are read: booleans, numbers, strings and dates."""


def read_parquet(path: Path, choice: ColumnSelection, most: int) -> SourceColumns:
    """Read the columns of a Parquet file."""
    with refusing(path):
        try:
            names = parquet.names(path, most)
            places = choice.among(str(path), names, header=True)
            frame = parquet.read(path, most, (names[place] for place in places.values()))
        except parquet.SizeLimitError:
            raise too_much(path, most) from None
    found = {role: frame[names[place]] for role, place in places.items()}
    return SourceColumns(str(path), found, lambda row: f"{path}, row {row + 1}")


def read_npz(path: Path, choice: ColumnSelection, most: int) -> SourceColumns:
    """Read the arrays of an `.npz` file; with `user_ids`, the users are indices into it."""
    with refusing(path), zipfile.ZipFile(path) as archive:
        stored = {name.removesuffix(".npy"): name for name in archive.namelist()}
        names = [name for name in stored if name not in ("user_ids", "item_ids")]
        places = choice.among(str(path), names, header=True)
        labels = {role: f"{role}_ids" for role in ("user", "item") if f"{role}_ids" in stored}
        needed = {names[place] for place in places.values()} | set(labels.values())
        check_members(path, [archive.getinfo(stored[name]) for name in sorted(needed)], most)
        arrays = {name: _array(path, archive, stored[name]) for name in needed}
    found = {role: arrays[names[place]] for role, place in places.items()}
    ids = {role: arrays[name] for role, name in labels.items()}
    if len({array.shape for array in found.values()}) > 1 or found["user"].ndim != 1:
        shapes = ", ".join(f"{role} {array.shape}" for role, array in found.items())
        raise RatingsError(f"{path}: the columns differ in length: {shapes}")
    for role, known in ids.items():
        _check_keys(path, role, known, found[role])
    with refusing(path):
        ids = {role: _labels(path, role, known) for role, known in ids.items()}
        series = {role: pl.Series(array) for role, array in found.items()}
    return SourceColumns(str(path), series, lambda row: f"{path}, row {row + 1}", ids)


def _array(path: Path, archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Return an array, after checking the size of the file against its header."""
    size = archive.getinfo(name).file_size
    with archive.open(name) as file:
        version = npy.read_magic(file)
        if version not in VERSIONS:
            raise RatingsError(f"{path}: damaged: {name:.60} is of an unknown version")
        shape, by_column, kind = VERSIONS[version](file)
        if kind.kind not in KINDS or not kind.itemsize:
            raise RatingsError(
                f"{path}: damaged, or no ratings: {name:.60} has neither numbers nor strings"
            )
        count = int(np.prod(shape, dtype=object))
        if min(shape, default=1) < 0 or count * kind.itemsize != size - file.tell():
            raise RatingsError(f"{path}: the file is damaged or cut short ({name:.60})")
        values = np.frombuffer(file.read(), kind)
    return values.reshape(shape, order="F" if by_column else "C")


def _labels(path: Path, role: str, ids: NDArray[Any]) -> Ids:
    """Return ids as int64 or strings."""
    if ids.dtype.kind == "U":
        return np.array(pl.Series(ids).to_list(), np.str_)  # raises if it is not valid Unicode
    if ids.max(initial=0) > LARGEST:
        raise RatingsError(f"{path}: the {role} is {ids.max()}, {TOO_BIG}")
    return ids.astype(np.int64)


def _check_keys(path: Path, role: str, ids: NDArray[Any], keys: NDArray[Any]) -> None:
    """Raise unless ids are valid, and keys are indices into them."""
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
