"""The folder of a saved recommender: arrays in safetensors, ids in Parquet, the rest in JSON.

Arrays are memory-mapped, so that a model opens immediately and processes share it. Nothing in the
folder is executed, and everything is validated before it is used.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from svmp.errors import FileError
from svmp.ratings.folders import check_folder, drafted
from svmp.ratings.library_errors import reading
from svmp.ratings.table import Ids
from svmp.writing import as_path, draft_of, written_beside

FORMAT = 1
TYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}
MAKES_NO_SENSE = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
MOST = 1 << 34
"""Size limit of the ids, in bytes."""
LONGEST_ID = 1000
"""Length limit of an id, in characters."""
ABOUT, ARRAYS = "model.json", "arrays.safetensors"
Arrays = dict[str, NDArray[Any]]


def write(
    path: str | os.PathLike[str], about: dict[str, Any], arrays: Arrays, ids: dict[str, Ids]
) -> None:
    """Write a folder atomically; a model that svmp has saved there is replaced."""
    import polars as pl

    target = check_place(path)
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    try:
        with drafted(target, "the model is saved") as draft:
            whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
            with written_beside(draft / ARRAYS) as file:
                save_file(whole, file)
            for name, labels in ids.items():
                pl.DataFrame({"id": labels}).write_parquet(draft / f"{name}.parquet")
            text = json.dumps({"format": FORMAT, **about, "shapes": shapes}, indent=1)
            (draft / ABOUT).write_text(text + "\n", "utf-8")
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise FileError(f"{path}: the model cannot be written ({error})") from None


def check_place(path: str | os.PathLike[str]) -> Path:
    """Return a path to which a model can be written; raise if it holds anything but a model."""
    target = as_path(path)
    check_folder(target, _only_ours, "is not a model of svmp's", "the model cannot be written")
    return target


def _only_ours(folder: Path, whole: bool) -> bool:
    """Return whether a folder has no files that svmp does not write, and if `whole`, a model."""
    names = (ABOUT, ARRAYS, draft_of(Path(ARRAYS)).name, "users.parquet", "items.parquet")
    try:
        with os.scandir(folder) as entries:
            found = {e.name: e.is_file(follow_symlinks=False) for e in entries}
    except OSError:
        return False
    ours = all(name in names or name.startswith(".tmp") for name in found)  # as safetensors' drafts
    return ours and all(found.values()) and (not whole or {ABOUT, ARRAYS} <= found.keys())


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return the class name of a saved model."""
    try:
        return str(_get(_about(Path(path)), "kind", str))
    except FileError as error:
        raise FileError(f"{path}: {error}") from None


def read(
    path: str | os.PathLike[str], mapped: bool = True
) -> tuple[dict[str, Any], Arrays, dict[str, Ids]]:
    """Return the description, the arrays (mapped or in memory) and the ids of a folder."""
    folder = Path(path)
    try:
        about = _about(folder)
        arrays = _arrays(folder / ARRAYS, mapped)
        for name, shape in _get(about, "shapes", dict).items():
            need(name in arrays, f"damaged: there is no array {name!r:.60}")
            need(list(arrays[name].shape) == shape, f"damaged: {name!r:.60} has another shape")
        ids = {name: read_ids(folder / f"{name}.parquet") for name in ("users", "items")}
    except FileError as error:
        raise FileError(f"{path}: {error}") from None
    return about, arrays, ids


def need(holds: Any, otherwise: str) -> None:
    """Raise a FileError unless a condition holds."""
    if not holds:
        raise FileError(otherwise)


def _about(folder: Path) -> dict[str, Any]:
    need(folder.exists(), "there is no such model")
    need((folder / ABOUT).is_file(), f"not a model that svmp saved: there is no {ABOUT} in it")
    try:
        about = _json((folder / ABOUT).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"damaged: {ABOUT} cannot be read ({error!s:.200})") from None
    version = _get(about, "format", int)
    need(version <= FORMAT, f"format {version}, made by a newer version of svmp")
    return about


def _json(raw: bytes) -> Any:
    """Parse JSON, without the non-standard NaN and Infinity."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not a number")

    return json.loads(raw.decode("utf-8"), parse_constant=refuse)


def _arrays(path: Path, mapped: bool) -> Arrays:
    """Memory-map the arrays of a safetensors file, or read them."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            need(8 + length <= size, f"damaged: {path.name} is cut short")
            header = _json(file.read(length))
        arrays = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            kind, shape = np.dtype(TYPES[entry["dtype"]]), tuple(entry["shape"])
            offsets = entry["data_offsets"]
            whole = all(type(number) is int and number >= 0 for number in (*shape, *offsets))
            need(whole, f"damaged: {path.name} has invalid lengths")
            first, last = (8 + length + offset for offset in offsets)
            sound = first <= last <= size and first % kind.itemsize == 0
            sound = sound and last - first == kind.itemsize * int(np.prod(shape, dtype=object))
            need(sound, f"damaged: {path.name} is cut short")
            if not last > first:
                arrays[name] = np.zeros(shape, kind)
            elif mapped:
                arrays[name] = np.memmap(path, kind, "r", first, shape)
            else:
                count = (last - first) // kind.itemsize
                arrays[name] = np.fromfile(path, kind, count, offset=first).reshape(shape)
    except FileError:
        raise
    except (OSError, MemoryError, RecursionError, *MAKES_NO_SENSE) as error:
        raise FileError(f"damaged: {path.name} cannot be read ({error!s:.100})") from None
    return arrays


def read_ids(path: Path) -> Ids:
    """Return the ids in a Parquet file, checked."""
    import polars as pl

    from svmp.ratings import parquet

    wrong = f"damaged: the ids in {path.name} are invalid"
    try:
        with reading():
            column = parquet.read(path, MOST)["id"]
            need(not column.null_count(), wrong)
            if column.dtype == pl.String:
                need((column.str.len_chars() <= LONGEST_ID).all(), wrong)
                return np.array(column.to_list(), np.str_)
            need(column.dtype == pl.Int64, wrong)
            return column.to_numpy()
    except FileError as error:
        if str(error) == wrong:
            raise
        raise FileError(f"damaged: {path.name} cannot be read ({error!s:.200})") from None


def _get(about: Any, key: str, kind: type) -> Any:
    value = about.get(key) if isinstance(about, dict) else None
    need(type(value) is kind, f"damaged: its {key!r:.40} is not of type {kind.__name__}")
    return value
