"""Files of text read line by line, gzipped or not, and refused where they cannot be."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from svmp.errors import RatingsError

GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
WIDE = ("utf-16", "utf-32")
"""Encodings in which the end of a line is more than one byte."""
DAMAGED = (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, NotImplementedError)
"""What is raised by archives that are none any more."""


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Say in one sentence why a file cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise RatingsError(f"{path}: there is no such file") from None
    except EOFError:
        raise RatingsError(f"{path}: the file is cut short") from None
    except (OSError, zlib.error) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise RatingsError(f"{path}: the file cannot be read ({reason})") from None


def opened(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file; a gzipped one is unpacked as it is read."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    return gzip.open(path) if packed else path.open("rb")


def lines(path: Path, encoding: str) -> Iterator[str]:
    """Yield the lines of a file, as text."""
    with refusing(path), opened(path) as file:
        if encoding.lower().replace("_", "-").startswith(WIDE):
            yield from io.StringIO(decoded(path, file.read(), encoding), newline="")
            return
        for number, raw in enumerate(file, 1):
            raw = raw.removeprefix(BOM) if number == 1 else raw
            yield decoded(path, raw, encoding, f", line {number}")


def decoded(path: Path, raw: bytes, encoding: str, where: str = "") -> str:
    """Return bytes as text."""
    try:
        return raw.decode(encoding)
    except UnicodeError:
        raise RatingsError(
            f"{path}{where}: this is not {encoding} text; name the encoding that it has, as "
            "encoding='latin-1'"
        ) from None
    except LookupError:
        raise RatingsError(f"{path}: there is no encoding {encoding!r:.60}") from None


def records(text: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line on which each record begins, and its fields."""
    if len(separator) > 1:
        for number, line in enumerate(text, 1):
            yield number, [field.strip() for field in line.split(separator)]
        return
    reader = csv.reader(text, delimiter=separator)
    begins = 1
    try:
        for fields in reader:
            yield begins, [field.strip() for field in fields]
            begins = reader.line_num + 1
    except csv.Error as error:
        raise RatingsError(f"line {begins}: {error}") from None
