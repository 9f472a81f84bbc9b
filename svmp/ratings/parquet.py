"""Check untrusted Parquet files before Polars reads them.

A Parquet file states how many values it has, and the unpacked size of its pages. Polars allocates
that much; if it exceeds the memory, the process is killed. So these numbers are read first, from
the footer and the page headers, and compared with one another and with the size of the file. They
are encoded in Thrift's compact protocol; field numbers are those of `parquet.thrift`.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from svmp.errors import FileError
from svmp.ratings.library_errors import reading

MAGIC = b"PAR1"
DEPTH = 12
"""Limit of the nesting of structures."""
VALUE, PER_VALUE = 8, 64
"""Bytes of a value in memory, and limit of the bytes of a number in a page."""
BYTES = 6
"""Types from this number on are byte strings, those before are numbers."""
Fields = dict[int, Any]


class SizeLimitError(FileError):
    """A file that unpacks to more than is allowed."""


def names(path: Path, most: int) -> list[str]:
    """Return the columns of a file, if its rows need at most `most` bytes."""
    with reading():
        check_file(path, most, ())
        return list(pl.read_parquet_schema(path))


def read(path: Path, most: int, columns: Iterable[str] | None = None) -> pl.DataFrame:
    """Read columns of a file, by default all, if they unpack to at most `most` bytes."""
    wanted = None if columns is None else sorted(set(columns))
    with reading():
        check_file(path, most, wanted)
        return pl.read_parquet(path, columns=wanted, glob=False)


def check_file(path: Path, most: int, wanted: Iterable[str] | None) -> None:
    """Check a file on disk."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        check(raw, most, wanted)


def check(raw: Any, most: int, wanted: Iterable[str] | None) -> None:
    """Raise if the numbers of a file are inconsistent, or its unpacked size exceeds the limit."""
    size = len(raw)
    need(size > 12 and raw[-4:] == MAGIC, "it does not end as a Parquet file")
    length = int.from_bytes(raw[-8:-4], "little")
    need(length <= size - 12, "its footer is cut short")
    footer = CompactReader(raw, size - 8 - length, size - 8).fields()
    groups = as_list(footer.get(4))
    rows = [count(group, 3) for group in groups]
    need(sum(rows) == count(footer, 3), "its numbers of rows differ")
    total = 0
    for group, group_rows in zip(groups, rows, strict=True):
        for chunk in as_list(group.get(1)):
            meta = chunk.get(3)
            need(isinstance(meta, dict), "a column is not described")
            path = as_list(meta.get(3))
            need(path and all(isinstance(part, bytes) for part in path), "a column has no name")
            values = count(meta, 5)
            need(len(path) > 1 or values == group_rows, "its numbers of values differ")
            total += VALUE * values
            if total > most:
                raise SizeLimitError("it unpacks to too much")
            if wanted is None or path[0].decode("utf-8", "replace") in wanted:
                total += unpacked(raw, meta, values, most - total)


def unpacked(raw: Any, meta: Fields, values: int, most: int) -> int:
    """Return the unpacked size of the pages of a column, if it is within the limit."""
    first, length = count(meta, 9), count(meta, 7)
    begin = min(first, count(meta, 11) or first) if 11 in meta else first
    end = begin + length
    need(begin >= 4 and end <= len(raw) - 8, "a column is not within the file")
    codec, is_text = count(meta, 4), count(meta, 1) >= BYTES
    total = 0
    place = begin
    while place < end and values > 0:
        reader = CompactReader(raw, place, end)
        page = reader.fields()
        size, packed = count(page, 2), count(page, 3)
        total += size
        place = reader.place + packed
        need(place <= end, "a page is cut short")
        if total > most:
            raise SizeLimitError("it unpacks to too much")
        need(codec or size == packed, "a page that is not packed has two sizes")
        for kind in (5, 7, 8):  # headers of a data page, a dictionary page, a data page v2
            held = count(page[kind], 1) if kind in page else 0
            need(
                kind not in page or is_text or size <= PER_VALUE * held + 4096, "a page is too long"
            )
            need(kind != 7 or held <= size, "a dictionary is too short")
            values -= held if kind != 7 else 0
    need(values == 0, "its pages have more values, or fewer, than it says")
    return total


def count(fields: Any, field: int) -> int:
    """Return a field that must be a nonnegative integer."""
    value = fields.get(field) if isinstance(fields, dict) else None
    need(type(value) is int and value >= 0, "a number is missing or negative")
    assert isinstance(value, int)
    return value


def as_list(value: Any) -> list[Any]:
    """Return a field that is a list, or an empty list if it is absent."""
    return value if isinstance(value, list) else []


def need(holds: Any, otherwise: str) -> None:
    """Raise a FileError unless a condition holds."""
    if not holds:
        raise FileError(f"the file is damaged or cut short ({otherwise})")


class CompactReader:
    """Reads structures in Thrift's compact protocol, each as a dict by field number."""

    def __init__(self, raw: Any, place: int, end: int) -> None:
        self.raw, self.place, self.end = raw, place, end

    def fields(self, depth: int = 0) -> Fields:
        """Read a structure."""
        need(depth < DEPTH, "it is nested too deep")
        found: Fields = {}
        field = 0
        while head := self.byte():
            step, kind = head >> 4, head & 15
            field = field + step if step else self.signed()
            found[field] = kind == 1 if kind in (1, 2) else self.value(kind, depth)
        return found

    def value(self, kind: int, depth: int) -> Any:
        """Read a value of a given type."""
        if kind in (1, 2, 3):
            return self.byte()
        if kind in (4, 5, 6):
            return self.signed()
        if kind == 7:
            return self.bytes(8)
        if kind == 8:
            return self.bytes(self.unsigned())
        if kind in (9, 10):
            return list(self.items(depth))
        if kind == 11 and not (many := self.unsigned()):
            return {}
        if kind == 11:
            kinds = self.byte()
            need(many <= self.end - self.place, "a list is cut short")
            pair = kinds >> 4, kinds & 15
            return [tuple(self.value(one, depth + 1) for one in pair) for _ in range(many)]
        need(kind == 12, "a field has no type")
        return self.fields(depth + 1)

    def items(self, depth: int) -> Iterator[Any]:
        """Read the items of a list; each takes at least one byte."""
        head = self.byte()
        many = head >> 4 if head >> 4 < 15 else self.unsigned()
        need(many <= self.end - self.place, "a list is cut short")
        for _ in range(many):
            yield self.value(head & 15, depth + 1)

    def byte(self) -> int:
        """Read one byte."""
        need(self.place < self.end, "a structure is cut short")
        self.place += 1
        return int(self.raw[self.place - 1])

    def bytes(self, many: int) -> bytes:
        """Read a number of bytes."""
        need(many <= self.end - self.place, "a structure is cut short")
        self.place += many
        return bytes(self.raw[self.place - many : self.place])

    def unsigned(self) -> int:
        """Read an unsigned varint: seven bits per byte."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            need(shift < 70, "a number is too long")

    def signed(self) -> int:
        """Read a signed integer in zigzag encoding."""
        value = self.unsigned()
        return value >> 1 ^ -(value & 1)
