"""Text files, gzipped or not, in any encoding."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from svmp.errors import FileError, Interface, RatingsError, argument
from svmp.ratings.library_errors import reading

GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
WIDE = ("utf-16", "utf-32")
"""Encodings in which a line ending has more than one byte."""
MOST = 4_000_000_000
"""Default limit of the unpacked size of files, in bytes: twice the Netflix Prize."""
LONGEST = 1_000_000
"""Limit of the length of a line, in bytes."""
CHUNK = 1 << 20


@contextmanager
def refusing(path: Path | str, foreign: Any = Exception) -> Iterator[None]:
    """Turn the exceptions of a reader into a RatingsError with the path."""
    try:
        with reading(foreign):
            yield
    except FileError as error:
        raise RatingsError(f"{path}: {error}") from None


def _option(name: str, value: str, of_flag: str) -> str:
    """Return an option of `read_ratings` in the terms of the interface that is in use."""
    given = argument(name, value, of_flag)
    return given if Interface.flags else f"read_ratings(..., {given})"


def too_much(path: Path, most: int) -> RatingsError:
    """Return the error of a file that unpacks to more than is allowed."""
    raised = _option("max_unpacked", "10_000_000_000", "10000000000")
    return RatingsError(
        f"{path}: it unpacks to more than {most:,} bytes; if that is right, allow more, as {raised}"
    )


@dataclass(frozen=True)
class TextFile:
    """A text file.

    Attributes
    ----------
    path, encoding
        Its path and encoding.
    most
        Limit of its unpacked size in bytes, if it is gzipped.
    held
        Part of this limit that is used by other files that are read with it.
    """

    path: Path
    encoding: str = "utf-8"
    most: int = MOST
    held: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether the file is uncompressed UTF-8, which Polars can read directly."""
        with refusing(self.path), self.path.open("rb") as file:
            packed = file.read(2) == GZIP
        return not packed and self.encoding.lower() in ("utf-8", "utf8")

    def content(self) -> bytes:
        """Return the whole text in UTF-8."""
        raw = self._bytes()
        if self.encoding.lower() in ("utf-8", "utf8"):
            return raw
        return self._decoded(raw).encode("utf-8", "replace")

    def lines(self) -> Iterator[str]:
        """Yield the lines as text."""
        if self.encoding.lower().replace("_", "-").startswith(WIDE):
            yield from io.StringIO(self._decoded(self._bytes()), newline="")
            return
        with refusing(self.path), self._opened() as file:
            size = 0
            for number, raw in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), 1):
                size += len(raw)
                if len(raw) > LONGEST:
                    raise RatingsError(
                        f"{self.path}, line {number}: the line has more than {LONGEST:,} bytes; "
                        "this is not a table of ratings"
                    )
                if self.held + size > self.most and isinstance(file, gzip.GzipFile):
                    raise too_much(self.path, self.most)
                bare = raw.removeprefix(BOM) if number == 1 else raw
                yield self._decoded(bare, f", line {number}")

    def blocks(self, size: int, quoted: bool = False) -> Iterator[bytes]:
        """Yield the text in UTF-8, in blocks of about `size` bytes that end with a line.

        If fields may be `quoted`, a line ending within quotes does not end a block.
        """
        rest = b""
        for piece in self._pieces(size):
            rest += piece
            cut = _end_of_records(rest, quoted)
            if not cut and len(rest) > size + LONGEST:
                cut = rest.rfind(b"\n") + 1
                if not cut:
                    raise RatingsError(
                        f"{self.path}: a line has more than {LONGEST:,} bytes; this is not a table "
                        "of ratings"
                    )
            if cut:
                yield rest[:cut]
                rest = rest[cut:]
        if rest:
            yield rest

    def _pieces(self, size: int) -> Iterator[bytes]:
        """Yield the unpacked file in UTF-8, in pieces that may end anywhere."""
        utf8 = self.encoding.lower() in ("utf-8", "utf8")
        with refusing(self.path), self._opened() as file:
            with self._decoding():
                decoder = codecs.getincrementaldecoder(self.encoding)()
            unpacked = 0
            while chunk := file.read(size):
                unpacked += len(chunk)
                if self.held + unpacked > self.most and isinstance(file, gzip.GzipFile):
                    raise too_much(self.path, self.most)
                with self._decoding():
                    yield chunk if utf8 else decoder.decode(chunk).encode("utf-8", "replace")
            with self._decoding():
                yield b"" if utf8 else decoder.decode(b"", final=True).encode("utf-8", "replace")

    def _opened(self) -> IO[bytes]:
        """Open the file; a gzipped one is unpacked while it is read."""
        with self.path.open("rb") as file:
            packed = file.read(2) == GZIP
        opened: Any = gzip.GzipFile if packed else open
        return opened(self.path, "rb")

    def _bytes(self) -> bytes:
        """Return the whole file, unpacked."""
        with refusing(self.path), self._opened() as file:
            if not isinstance(file, gzip.GzipFile):
                return file.read()
            found = io.BytesIO()
            while chunk := file.read(CHUNK):
                if self.held + found.tell() + len(chunk) > self.most:
                    raise too_much(self.path, self.most)
                found.write(chunk)
            return found.getvalue()

    def _decoded(self, raw: bytes, where: str = "") -> str:
        """Decode bytes to text."""
        with self._decoding(where):
            return raw.decode(self.encoding)

    @contextmanager
    def _decoding(self, where: str = "") -> Iterator[None]:
        """Turn the errors of a decoder into a RatingsError with advice."""
        try:
            yield
        except UnicodeError:
            right = _option("encoding", "'latin-1'", "latin-1")
            raise RatingsError(
                f"{self.path}{where}: this is not {self.encoding} text; convert it first, or name "
                f"its encoding, as {right}"
            ) from None
        except (LookupError, ValueError):
            raise RatingsError(f"{self.path}: there is no encoding {self.encoding!r:.60}") from None


def _end_of_records(text: bytes, quoted: bool) -> int:
    r"""Return the end of the last whole record: of a line, with an even number of quotes before.

    >>> _end_of_records(b'1,"a"\n2,"b\n', quoted=True)
    6
    """
    cut = text.rfind(b"\n") + 1
    if not quoted or b'"' not in text:
        return cut
    odd = text.count(b'"', 0, cut) % 2
    while cut and odd:
        before = text.rfind(b"\n", 0, cut - 1) + 1
        odd ^= text.count(b'"', before, cut) % 2
        cut = before
    return cut


def records(name: Path, text: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each record, and its fields."""
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
        raise RatingsError(f"{name}, line {begins}: {error}") from None
