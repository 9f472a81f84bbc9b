"""Where parts come from: sequences of parts that are loaded when they are needed.

A `Source` can be sent to another process, which then loads parts by their number. What `load`
returns is passed to the function that declares the network of one part.
"""

from __future__ import annotations

import hashlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from svmp.errors import ModelError, SvmpError
from svmp.network.dims.data_columns import Columns
from svmp.network.validation import shown

DATA_FRAMES = ("pandas", "polars", "pyarrow", "cudf", "modin")
"""Packages whose tables `svmp.frames` divides."""


class Source(ABC):
    """A sequence of parts.

    Attributes
    ----------
    in_memory
        Whether all parts are in memory already, so that loading one costs nothing.
    """

    in_memory: bool = False

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of parts."""

    @abstractmethod
    def load(self, part: int) -> Any:
        """Return the rows of a part."""

    def name(self, part: int) -> str:
        """Return the name of a part in messages."""
        return f"part {part}"

    def rows(self, part: int) -> int | None:
        """Return the number of rows of a part; None if that is known only after loading."""
        return None

    @abstractmethod
    def fingerprint(self, part: int) -> str:
        """Return a short hash that differs for other data; "" if there is none."""


@dataclass(frozen=True)
class InMemory(Source):
    """Parts that are in memory: arrays, tuples or dicts of them, data frames, or anything else."""

    parts: Sequence[Any]
    in_memory = True

    def __len__(self) -> int:
        return len(self.parts)

    def load(self, part: int) -> Any:
        return self.parts[part]

    def name(self, part: int) -> str:
        payload = self.parts[part]
        return payload.name if isinstance(payload, Columns) else f"part {part}"

    def rows(self, part: int) -> int | None:
        payload = self.parts[part]
        is_table = isinstance(payload, Columns) or _package(payload) in DATA_FRAMES
        if is_table or (isinstance(payload, np.ndarray) and payload.ndim):
            return len(payload)
        return None

    def fingerprint(self, part: int) -> str:
        """Return a hash of the arrays and the values of a part; "" if it has other objects."""
        digest = hashlib.blake2b(digest_size=8)
        try:
            for piece in _pieces(self.parts[part]):
                digest.update(len(piece).to_bytes(8, "little"))
                digest.update(piece)
        except TypeError:
            return ""
        return digest.hexdigest()


@dataclass(frozen=True)
class DaskSource(Source):
    """The partitions of a Dask collection, each computed when it is loaded."""

    partitions: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.partitions)

    def load(self, part: int) -> Any:
        return self.partitions[part].compute()

    def name(self, part: int) -> str:
        return f"partition {part}"

    def fingerprint(self, part: int) -> str:
        """Return a hash of the key, which Dask derives from what the partition is computed from."""
        key = str(self.partitions[part].key).encode()
        return hashlib.blake2b(key, digest_size=8).hexdigest()


def from_dask(collection: Any) -> DaskSource:
    """Return the partitions of a Dask data frame, or a list of delayed values, as parts.

    Parameters
    ----------
    collection
        A `dask.dataframe.DataFrame`, whose partitions become pandas data frames; a delayed value,
        or a list of them.
    """
    try:
        from dask.base import is_dask_collection
        from dask.delayed import Delayed
    except ModuleNotFoundError:
        raise SvmpError('parts of a Dask collection need Dask: pip install "svmp[dask]"') from None
    if isinstance(collection, Delayed):
        return DaskSource((collection,))
    if isinstance(collection, list | tuple):
        partitions = tuple(collection)
    elif is_dask_collection(collection) and "dataframe" in type(collection).__module__:
        partitions = tuple(collection.to_delayed())
    else:
        raise ModelError(
            "from_dask takes a Dask data frame or a list of delayed values, not "
            f"{shown(collection)}; for other collections pass the list of their to_delayed()"
        )
    if not partitions or not all(isinstance(each, Delayed) for each in partitions):
        raise ModelError("from_dask takes a list of delayed values, at least one, and nothing else")
    return DaskSource(partitions)


def as_source(parts: Any) -> Source:
    """Return what a user passes as parts as a `Source`.

    >>> len(as_source([np.zeros(3), np.zeros(2)]))
    2
    >>> as_source("ratings/*.parquet")
    Traceback (most recent call last):
    svmp.errors.ModelError: parts are a path; use svmp.parquet('ratings/*.parquet')
    """
    if isinstance(parts, Source):
        found = parts
    elif isinstance(parts, str | os.PathLike):
        raise ModelError(f"parts are a path; use svmp.parquet({os.fspath(parts)!r:.80})")
    elif _is_dask(parts):
        found = from_dask(parts)
    elif isinstance(parts, list | tuple):
        found = from_dask(parts) if parts and all(map(_is_dask, parts)) else InMemory(tuple(parts))
    elif _package(parts) in DATA_FRAMES or isinstance(parts, Columns | Mapping):
        name = "svmp.frames" if _package(parts) in DATA_FRAMES else "svmp.split"
        raise ModelError(
            f"parts are one table, which must be divided first, as {name}(table, by='user', "
            "parts=8), or be a list of one"
        )
    else:
        raise ModelError(
            "parts must be a list, svmp.parquet(...), svmp.frames(...), or a Dask data frame, not "
            f"{shown(parts)}"
        )
    if not len(found):
        raise ModelError("there are no parts; give at least one")
    return found


def _is_dask(value: Any) -> bool:
    """Whether a value is a Dask collection; without Dask loaded there is none."""
    if "dask" not in sys.modules:
        return False
    from dask.base import is_dask_collection

    return bool(is_dask_collection(value))


def _package(value: Any) -> str:
    """Return the name of the package that defines the type of a value."""
    return type(value).__module__.partition(".")[0]


def _pieces(payload: Any) -> Iterator[bytes]:
    """Yield the bytes of a payload; raise TypeError if it holds objects without a stable form."""
    if isinstance(payload, Columns):
        payload = dict(payload.items())
    if _package(payload) in DATA_FRAMES:
        payload = _columns_of_frame(payload)
    if isinstance(payload, Mapping):
        for key, value in payload.items():
            yield from _pieces(key)
            yield from _pieces(value)
    elif isinstance(payload, list | tuple):
        yield f"{len(payload)}".encode()
        for value in payload:
            yield from _pieces(value)
    elif isinstance(payload, np.ndarray) and payload.dtype.kind != "O":
        yield f"{payload.dtype.str} {payload.shape}".encode()
        yield np.ascontiguousarray(payload).tobytes()
    elif isinstance(payload, np.ndarray):
        yield from _pieces(payload.tolist())
    elif payload is None or isinstance(payload, str | bytes | int | float | np.generic):
        yield f"{type(payload).__name__} {payload!r}".encode()
    else:
        raise TypeError(type(payload).__name__)


def _columns_of_frame(frame: Any) -> dict[str, Any]:
    try:
        import narwhals.stable.v1 as nw
    except ModuleNotFoundError:
        raise TypeError("narwhals is not installed") from None
    table = nw.from_native(frame, eager_only=True)
    return {name: table[name].to_numpy() for name in table.columns}
