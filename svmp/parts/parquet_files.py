"""Parts from Parquet files: one for each file, or for each row group of a file.

The metadata of all files is read at once, so that a missing or damaged file, or a missing column,
is reported before a fit begins; rows are read when a part is loaded. A folder written by
`svmp.ratings.partition` names its parts in a marker file, so that a missing one is noticed.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import FileError, ModelError, SvmpError
from svmp.network.dims.data_columns import Columns
from svmp.network.dims.labels import missing_rows
from svmp.network.keywords import known_keywords
from svmp.network.validation import shown
from svmp.parts.sources import Source

MARKER = "svmp-parts.json"
"""The file that names the parts in a folder written by svmp."""
FORMAT = 1
WILD = "*?["
READING = {"page_checksum_verification": True, "pre_buffer": False}
"""How files are opened. They are not mapped: a file cut short would end the process."""
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class FilePart:
    """A part of a Parquet data set.

    Attributes
    ----------
    path
        The file as the user named it, for messages.
    place
        Its absolute path.
    size
        Number of bytes of the file.
    rows
        Number of rows of the part.
    group
        The row group, or None if the part is the whole file.
    footer
        Hash of the metadata of the file, which has sizes and ranges of all its columns.
    """

    path: str
    place: str
    size: int
    rows: int
    group: int | None
    footer: str


@dataclass(frozen=True)
class ParquetSource(Source):
    """Parts from Parquet files; made by `parquet`.

    Attributes
    ----------
    parts
        The parts.
    columns
        The columns to read, None for all.
    by
        Column that the rows are divided by, if it is declared: no value is in two parts.
    """

    parts: tuple[FilePart, ...]
    columns: tuple[str, ...] | None = None
    by: str | None = None

    def __len__(self) -> int:
        return len(self.parts)

    def load(self, part: int) -> Columns:
        """Read the rows of a part."""
        pq = needs_pyarrow()
        here = self.parts[part]
        with _refusing(here.path), pq.ParquetFile(here.place, **READING) as file:
            if os.path.getsize(here.place) != here.size or _footer(here.place) != here.footer:
                raise FileError(f"{here.path}: the file has changed since it was opened")
            wanted = None if self.columns is None else list(self.columns)
            options = {"columns": wanted, "use_threads": False}
            table = (
                file.read(**options)
                if here.group is None
                else file.read_row_group(here.group, **options)
            )
            if table.num_rows != here.rows:
                raise FileError(f"{here.path}: the file is damaged (rows are missing)")
            arrays = {name: _array(table[name]) for name in table.column_names}
        found = Columns(arrays, self.name(part))
        if self.by is not None:
            _check_all_there(found, self.by)
        return found

    def name(self, part: int) -> str:
        here = self.parts[part]
        return here.path if here.group is None else f"{here.path}, row group {here.group}"

    def rows(self, part: int) -> int:
        return self.parts[part].rows

    def fingerprint(self, part: int) -> str:
        """Return a hash of the file's name, size and metadata, as they are now."""
        here = self.parts[part]
        with _refusing(here.path):
            size, footer = os.path.getsize(here.place), _footer(here.place)
        about = (os.path.basename(here.place), size, here.group, footer)
        return hashlib.blake2b(repr(about).encode(), digest_size=8).hexdigest()


@known_keywords
def parquet(
    paths: Paths,
    *,
    by: str | None = None,
    columns: Sequence[str] | None = None,
    row_groups: bool = False,
) -> ParquetSource:
    """Return the rows of Parquet files as parts, to be read when they are needed.

    Parameters
    ----------
    paths
        A file, a folder, a pattern as `"ratings/*.parquet"`, or a list of these. The files are
        sorted by name.
    by
        Column that the rows are divided by: all rows with the same value are in the same part.
    columns
        The columns to read, by default all.
    row_groups
        Whether each row group of a file is a part, instead of each file.

    Returns
    -------
    ParquetSource
        The parts; each is loaded as a `Columns`.

    Raises
    ------
    FileError
        If a file is missing or damaged, or has no such columns; the message has its path.
    """
    if columns is not None and (isinstance(columns, str) or not all_strings(columns)):
        raise ModelError(f"columns must be a list of names, not {shown(columns)}")
    if by is not None and not isinstance(by, str):
        raise ModelError(f"by must be the name of a column, not {shown(by)}")
    wanted = None if columns is None else tuple(dict.fromkeys([*columns, *([by] if by else [])]))
    needs_pyarrow()
    found: list[FilePart] = []
    kinds: dict[str, str] = {}
    for path in files_of(paths):
        found += _parts_of(path, wanted, by, row_groups, kinds)
    return ParquetSource(tuple(found), wanted, by)


def all_strings(names: Sequence[Any]) -> bool:
    """Whether these are strings, at least one."""
    return len(names) > 0 and all(isinstance(name, str) for name in names)


def files_of(paths: Paths) -> list[str]:
    """Return the files of paths, patterns and folders, sorted by name."""
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(given, list | tuple) or not all(
        isinstance(each, str | os.PathLike) for each in given
    ):
        raise ModelError(f"paths must be a path, a pattern, or a list of these, not {shown(paths)}")
    found = sorted(file for each in given for file in _files_of_one(os.fspath(each)))
    if not found:
        raise FileError("there are no files: the list is empty")
    places = Counter(map(os.path.abspath, found))
    for file in found:
        if places[os.path.abspath(file)] > 1:
            raise FileError(f"{file}: the file is named twice")
    return found


def _files_of_one(path: str) -> list[str]:
    if os.path.isdir(path):
        found = _files_in(path)
        if not found:
            raise FileError(f"{path}: there are no Parquet files in this folder")
    elif any(sign in path for sign in WILD) and not os.path.exists(path):
        found = [file for file in glob.glob(path, recursive=True) if not _is_other(file)]
        if not found:
            raise FileError(f"{path}: there are no such files")
    else:
        found = [path]
    return found


def _files_in(folder: str) -> list[str]:
    """Return the Parquet files in a folder: those its marker names, or all visible ones."""
    listed = listed_parts(folder)
    if listed is not None:
        return [os.path.join(folder, name) for name in listed]
    with _refusing(folder):
        names = os.listdir(folder)
    return [
        os.path.join(folder, name)
        for name in names
        if name.endswith((".parquet", ".pq")) and not name.startswith(("_", "."))
    ]


def _is_other(file: str) -> bool:
    """Whether a file lies in a folder written by svmp, and is not one of its parts."""
    listed = listed_parts(os.path.dirname(file) or ".")
    return os.path.isdir(file) or (listed is not None and os.path.basename(file) not in listed)


def listed_parts(folder: str) -> list[str] | None:
    """Return the names of the parts in a folder written by svmp; None if it is another folder."""
    place = Path(folder) / MARKER
    if not place.is_file():
        return None
    with _refusing(str(place)):
        about = json.loads(place.read_bytes())
    if not isinstance(about, dict) or type(about.get("format")) is not int:
        raise FileError(f"{place}: the file is damaged (it has no format)")
    if about["format"] > FORMAT:
        raise FileError(f"{place}: format {about['format']}, made by a newer version of svmp")
    names = about.get("parts")
    if not isinstance(names, list) or not all(
        isinstance(name, str) and name == os.path.basename(name) for name in names
    ):
        raise FileError(f"{place}: the file is damaged (its list of parts)")
    return names


def _parts_of(
    path: str,
    wanted: tuple[str, ...] | None,
    by: str | None,
    row_groups: bool,
    kinds: dict[str, str],
) -> list[FilePart]:
    """Return the parts of a file, after checking its metadata; `kinds` are those of columns."""
    pq = needs_pyarrow()
    place = os.path.abspath(path)
    with _refusing(path), pq.ParquetFile(place, **READING) as file:
        about, schema = file.metadata, file.schema_arrow
        groups = [about.row_group(group).num_rows for group in range(about.num_row_groups)]
        size, footer = os.path.getsize(place), _footer(place)
    if sum(groups) != about.num_rows:
        raise FileError(f"{path}: the file is damaged (its numbers of rows differ)")
    for column in (*(wanted or ()), *([by] if by else [])):
        if column not in schema.names:
            there = ", ".join(f"'{name}'" for name in schema.names[:12])
            raise FileError(f"{path}: there is no column {column!r:.60}; there are {there}")
    twice = [name for name in wanted or schema.names if schema.names.count(name) > 1]
    if twice:
        raise FileError(
            f"{path}: {schema.names.count(twice[0])} columns are named {twice[0]!r:.60}; rename "
            "them, or name other columns to read with columns="
        )
    for column in wanted or schema.names:
        kind = _kind(schema.field(column).type)
        if not kind:
            raise FileError(
                f"{path}: column '{column}' is of type {schema.field(column).type!s:.40}, which "
                "cannot be read; name the columns to read with columns="
            )
        if kind != kinds.setdefault(column, kind) and "nothing" not in (kind, kinds[column]):
            raise FileError(
                f"{path}: column '{column}' has {kind}, but {kinds[column]} in the files before it"
            )
    if not row_groups:
        return [FilePart(path, place, size, about.num_rows, None, footer)]
    return [FilePart(path, place, size, rows, g, footer) for g, rows in enumerate(groups)]


def _footer(place: str) -> str:
    """Return a hash of the metadata at the end of a Parquet file."""
    with open(place, "rb") as file:
        end = file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(end - length, 0))
        return hashlib.blake2b(file.read(length), digest_size=8).hexdigest()


def _kind(kind: Any) -> str:
    """Return what a column of an Arrow type holds; "" if it cannot be read."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _kind(kind.value_type)
    if types.is_null(kind):
        return "nothing"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_boolean(kind):
        return "true or false"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "strings"
    return "times" if types.is_date(kind) or types.is_timestamp(kind) else ""


def _array(column: Any) -> NDArray[Any]:
    """Return an Arrow column as an array; missing numbers are NaN, missing strings are None."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_null(column.type) or types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if types.is_boolean(column.type) and column.null_count:
        column = column.cast(pa.int8())
    return np.asarray(column.to_numpy())


def _check_all_there(found: Columns, by: str) -> None:
    missing = missing_rows(found[by])
    if missing.any():
        row = int(np.argmax(missing))
        raise FileError(
            f"{found.name}, row {row + 1}: there is no '{by}', which the parts are divided by"
        )


def needs_pyarrow() -> Any:
    """Return the module `pyarrow.parquet`; raise with the pip command if it is not installed."""
    try:
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        raise SvmpError('Parquet parts are read with PyArrow: pip install "svmp[parts]"') from None
    return pq


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    """Turn what reading a file raises into a FileError with its path."""
    try:
        yield
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file") from None
    except MemoryError:
        raise FileError(f"{path}: it does not fit into memory") from None
    except IsADirectoryError:
        raise FileError(f"{path}: a folder, not a file") from None
    except PermissionError:
        raise FileError(f"{path}: it cannot be read (permission denied)") from None
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError, RecursionError) as error:
        if isinstance(error, SvmpError):
            raise
        reason = " ".join(str(error).split())
        raise FileError(f"{path}: the file is damaged or cut short ({reason:.200})") from None
