"""The folder of a saved recommender: arrays in safetensors, ids in Parquet, the rest in JSON.

    model.svmp/model.json                the description, which names the current version
    model.svmp/v7-1c30f2a9/              its arrays.safetensors, users.parquet and items.parquet

A version is written into a folder of its own, and then replaces the one before by replacing
model.json. So there is a whole model at any time, whatever ends a writer, and readers need no lock:
one whose version is replaced under it reads the next. Writers hold the lock of the folder. A model
that was loaded from the folder is refused if another version has replaced the one it was loaded
from, because the other's changes would be lost.

Arrays are memory-mapped, so that a model opens immediately and processes share it. Nothing in the
folder is executed, and everything is validated before it is used.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from svmp.errors import FileError, called
from svmp.inference.running.stopping import catch_interrupt
from svmp.locking import WAIT, locked
from svmp.ratings.folders import check_above, check_kind
from svmp.ratings.library_errors import reading
from svmp.ratings.table import Ids
from svmp.recommend.estimator import check_number
from svmp.writing import as_path, drafted_file, drafts_of

FORMAT = 2
"""2 has versions; in a folder of format 1 all files are beside model.json."""
TYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}
MAKES_NO_SENSE = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
MOST = 1 << 34
"""Size limit of the ids, in bytes."""
LONGEST_ID = 1000
"""Length limit of an id, in characters."""
ABOUT, ARRAYS, IDS = "model.json", "arrays.safetensors", ("users.parquet", "items.parquet")
VERSION = re.compile(r"v([1-9][0-9]{0,17})-[0-9a-f]{8}")
"""Name of the folder of a version: its number, and a random part."""
Arrays = dict[str, NDArray[Any]]


class Origin(NamedTuple):
    """The folder that a model was loaded from or saved to, and the version of it."""

    folder: str
    version: str


# --- writing -----------------------------------------------------------------------------------


def write(
    path: str | os.PathLike[str],
    about: dict[str, Any],
    arrays: Arrays,
    ids: dict[str, Ids],
    origin: Origin | None = None,
    wait: float = WAIT,
) -> Origin:
    """Write the next version of a model, and return what is there now.

    A model that svmp has saved there is replaced; if that is the `origin`, only the version of the
    origin is.
    """
    target = check_place(path)
    with lock(target, wait):
        check_place(target)
        place, before = os.path.realpath(target), version_at(target)
        if origin is not None and origin.folder == place and before not in ("", origin.version):
            raise FileError(
                f"{path}: another process has saved a newer version of this model since it was "
                "loaded, and it would be lost; load it again, and repeat the update"
            )
        number = int(VERSION.fullmatch(before)[1]) if VERSION.fullmatch(before) else 0  # type: ignore[index]
        version = f"v{number + 1}-{secrets.token_hex(4)}"
        shapes = {name: list(array.shape) for name, array in arrays.items()}
        about = {"format": FORMAT, "version": version, **about, "shapes": shapes}
        new = not target.exists()
        try:
            target.mkdir(parents=True, exist_ok=True)
            _clean(target)
            _write_version(target / version, arrays, ids)
            with catch_interrupt() as interrupt:
                with drafted_file(target / ABOUT) as draft:
                    draft.write_text(json.dumps(about, indent=1) + "\n", "utf-8")
                _clean(target)
            if interrupt.pressed:
                raise KeyboardInterrupt("the model is saved")
        except BaseException as error:
            if version_at(target) != version:
                shutil.rmtree(target / version, ignore_errors=True)
                with suppress(OSError):
                    target.rmdir() if new else None
            if isinstance(error, SafetensorError | OSError | ValueError | TypeError):
                raise FileError(f"{path}: the model cannot be written ({error})") from None
            raise
    return Origin(place, version)


def lock(path: str | os.PathLike[str], wait: float = WAIT) -> AbstractContextManager[bool]:
    """Hold the only right to write to the folder of a model, within a `with` block.

    Other processes that save a model there, or hold its lock, wait until the block ends, or until
    this process does. Reading needs no lock. `save` takes the lock itself; it is needed around work
    that ends with a `save` and must not be done twice at a time: load a model, update it, save it.

    Parameters
    ----------
    path
        The folder of the model, which need not exist yet.
    wait
        Seconds to wait for another process; then a FileError is raised.

    >>> import svmp.recommend, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, svmp.recommend.lock(f"{folder}/model.svmp"):
    ...     pass  # model = svmp.recommend.load(...); model.update(...); model.save(...)
    """
    check_number("wait", wait, 0)
    target = as_path(path)
    check_above(target, "the model cannot be written")
    target.parent.mkdir(parents=True, exist_ok=True)
    return locked(target, wait, f"raise {called('wait')}")


def _write_version(folder: Path, arrays: Arrays, ids: dict[str, Ids]) -> None:
    """Write the arrays and the ids of a version into a new folder."""
    import polars as pl

    folder.mkdir()
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with drafted_file(folder / ARRAYS) as file:
        save_file(whole, file)
    for name, labels in ids.items():
        pl.DataFrame({"id": labels}).write_parquet(folder / f"{name}.parquet")


def _clean(target: Path) -> None:
    """Remove what no reader needs: other versions, and what killed processes have left.

    On Windows files that are in use stay until a later version is written. If it cannot be known
    which version is the current one, all stay.
    """
    described = os.path.lexists(target / ABOUT)
    try:
        version = version_of(_about(target)) if described else ""
    except FileError:
        return
    for name in os.listdir(target):
        if VERSION.fullmatch(name) and name != version:
            shutil.rmtree(target / name, ignore_errors=True)
    flat = [target / name for name in (ARRAYS, *IDS)] if version else []
    for left in (*drafts_of(target / ABOUT), *flat):
        with suppress(OSError):
            left.unlink()


def check_place(path: str | os.PathLike[str]) -> Path:
    """Return a path to which a model can be written; raise if it holds anything but a model."""
    target = as_path(path)
    check_kind(target, _only_ours, True, "is not a model of svmp's")
    check_above(target, "the model cannot be written")
    return target


def _only_ours(folder: Path, whole: bool) -> bool:
    """Return whether a folder has nothing that svmp does not write there.

    A process that was killed may have left an empty folder, or one without model.json.
    """
    try:
        files, folders = _content(folder)
        versions = {name for name in folders if VERSION.fullmatch(name)}
        inside = [_content(folder / name) for name in versions]
        drafts = [draft for name in versions for draft in drafts_of(folder / name / ARRAYS)]
    except OSError:
        return False
    known = {ABOUT, ARRAYS, *IDS, *(draft.name for draft in drafts_of(folder / ABOUT))}
    of_version = {ARRAYS, *IDS, *(draft.name for draft in drafts)}
    sound = all(
        not below and all(name in of_version or name.startswith(".tmp") for name in own)
        for own, below in inside  # .tmp: drafts of safetensors
    )
    if not sound or folders != versions or not files <= known:
        return False
    return bool(versions) or not files or {ABOUT, ARRAYS} <= files


def _content(folder: Path) -> tuple[set[str], set[str]]:
    """Return the names of files, and of everything else, in a folder; a link is not a file."""
    files: set[str] = set()
    others: set[str] = set()
    with os.scandir(folder) as entries:
        for entry in entries:
            (files if entry.is_file(follow_symlinks=False) else others).add(entry.name)
    return files, others


# --- reading -----------------------------------------------------------------------------------


def version_at(path: str | os.PathLike[str]) -> str:
    """Return the name of the current version; "" if there is none, or no model."""
    try:
        return version_of(_about(Path(path)))
    except FileError:
        return ""


def version_of(about: dict[str, Any]) -> str:
    """Return the name of the version that a description is of; "" in format 1."""
    if _get(about, "format", int) < 2:
        return ""
    version: str = _get(about, "version", str)
    need(VERSION.fullmatch(version), "damaged: its 'version' is invalid")
    return version


def folder_of(path: str | os.PathLike[str]) -> Path:
    """Return the folder that has the arrays and the ids of the current version."""
    return Path(path) / version_at(path)


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
        while True:
            about = _about(folder)
            version = version_of(about)
            try:
                return about, *_read_version(folder / version, about, mapped)
            except FileError:
                if version_at(folder) == version:
                    raise  # else it was replaced, and removed, in the meantime
    except FileError as error:
        raise FileError(f"{path}: {error}") from None


def _read_version(
    folder: Path, about: dict[str, Any], mapped: bool
) -> tuple[Arrays, dict[str, Ids]]:
    arrays = _arrays(folder / ARRAYS, mapped)
    for name, shape in _get(about, "shapes", dict).items():
        need(name in arrays, f"damaged: there is no array {name!r:.60}")
        need(list(arrays[name].shape) == shape, f"damaged: {name!r:.60} has another shape")
    return arrays, {name: read_ids(folder / f"{name}.parquet") for name in ("users", "items")}


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
