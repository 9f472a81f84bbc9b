"""Sequences: which rows of a table follow each other.

A chain is a variable over the rows of a table. Its `sequence` key says which rows belong together,
and they follow each other as in the table, or by a column. Sequences may have any lengths, and
their rows may lie anywhere in the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.families.family import Bools
from svmp.network.dims.coords import Coords
from svmp.network.dims.labels import plain_labels
from svmp.network.grid import Ints, ragged
from svmp.network.validation import shown


class Spans(NamedTuple):
    """Rows that follow each other, one span of a sequence after the other.

    Attributes
    ----------
    rows, starts
        All rows, and where each span begins among them; at the end the number of rows.
    live
        Number of rows of each span up to the last with observed descendants.
    sequence
        The sequence of each.
    within
        Which spans begin within their sequence, not with its first row; None if none do.
    whole
        Whether these are all rows of all sequences.
    """

    rows: Ints
    starts: Ints
    live: Ints
    sequence: Ints
    within: Bools | None = None
    whole: bool = False

    def one(self, number: int) -> Spans:
        """Return one of them."""
        begin, end = self.starts[number : number + 2]
        own, starts = slice(number, number + 1), np.array([0, end - begin])
        within = None if self.within is None else self.within[own]
        return Spans(self.rows[begin:end], starts, self.live[own], self.sequence[own], within)

    @property
    def firsts(self) -> Ints:
        """The first row of each; any row for one without rows."""
        return self.rows[np.minimum(self.starts[:-1], max(len(self.rows) - 1, 0))]


@dataclass(frozen=True, eq=False)
class Sequences:
    """The rows of a table in sequences.

    Attributes
    ----------
    dim, count
        Name of the dimension of the sequences, and their number.
    code
        The sequence of each row.
    order
        All rows, those of a sequence together and in their order.
    starts
        Where each sequence begins in `order`, and the number of rows.
    """

    dim: str
    count: int
    code: Ints
    order: Ints
    starts: Ints

    @classmethod
    def of(cls, dim: str, count: int, code: Ints, places: NDArray[Any] | None) -> Sequences:
        """Return sequences whose rows are in the order of the table, or of `places`."""
        order = np.lexsort((code,) if places is None else (places, code)).astype(np.int64)
        starts = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(code, minlength=count), out=starts[1:])
        return cls(dim, count, code, order, starts)

    @cached_property
    def lengths(self) -> Ints:
        """Number of rows of each sequence."""
        return np.diff(self.starts)

    @cached_property
    def in_table_order(self) -> bool:
        """Whether the sequences follow each other in the table as in `order`."""
        return bool((self.order == np.arange(len(self.order))).all())

    @cached_property
    def firsts(self) -> Ints:
        """The first row of each sequence that has rows."""
        return self.order[self.starts[:-1][self.lengths > 0]]

    @cached_property
    def previous(self) -> Ints:
        """The row before each row; -1 before the first of a sequence."""
        before = np.full(len(self.order), -1, dtype=np.int64)
        before[self.order[1:]] = self.order[:-1]
        before[self.firsts] = -1
        return before

    @cached_property
    def place(self) -> Ints:
        """The place of each row in `order`."""
        found = np.empty(len(self.order), dtype=np.int64)
        found[self.order] = np.arange(len(self.order))
        return found

    def spans(self, which: Ints | None, live: Ints) -> Spans:
        """Return some sequences, or all, as spans; `live` is that of every sequence."""
        if which is None:
            return Spans(self.order, self.starts, live, np.arange(self.count), whole=True)
        starts = np.concatenate([[0], np.cumsum(self.lengths[which])])
        return Spans(self.rows_of(which), starts, live[which], which)

    def cut(self, begin: Ints, end: Ints, live: Ints) -> Spans:
        """Return the rows between some places of `order`; each span is of one sequence."""
        sequence = self.code[self.order[begin]]
        starts = np.concatenate([[0], np.cumsum(end - begin)])
        alive = np.clip(self.starts[sequence] + live[sequence] - begin, 0, end - begin)
        rows = self.order[ragged(begin, end - begin)[1]]
        return Spans(rows, starts, alive, sequence, begin > self.starts[sequence])

    def blocks(self, length: int) -> tuple[Ints, int]:
        """Divide every sequence into blocks of about the same length, which is `length` at most.

        Returns the block of each row, and the number of blocks.
        """
        count = -(-self.lengths // length)
        before = np.cumsum(count) - count
        within = self.place - self.starts[self.code]
        share = within * count[self.code] // np.maximum(self.lengths[self.code], 1)
        return before[self.code] + share, int(count.sum())

    def rows_of(self, which: Ints) -> Ints:
        """Return the rows of some sequences, one sequence after the other."""
        return self.order[ragged(self.starts[which], self.lengths[which])[1]]

    def reached(self, observed: Bools) -> Bools:
        """Return which rows are no later than a row with observed descendants."""
        last = self.last_of(observed)
        place = np.empty(len(self.order), dtype=np.int64)
        place[self.order] = np.arange(len(self.order)) - np.repeat(self.starts[:-1], self.lengths)
        return np.asarray(place < last[self.code])

    def last_of(self, some: Bools) -> Ints:
        """Return for each sequence the number of its rows up to the last of some rows."""
        places = np.arange(len(self.order)) - np.repeat(self.starts[:-1], self.lengths)
        last = np.zeros(self.count, dtype=np.int64)
        np.maximum.at(last, self.code[self.order], np.where(some[self.order], places + 1, 0))
        return last

    def live(self, present: Ints | None) -> Ints:
        """Return the number of rows of each sequence that count; rows after them are barren."""
        if present is None:
            return self.lengths
        some = np.zeros(len(self.order), dtype=bool)
        some[present] = True
        return self.last_of(some)


def read_sequences(
    name: str, coords: Coords, dim: str, size: int, sequence: Any, order: Any
) -> tuple[Sequences, list[Any] | int]:
    """Return the sequences of a chain's rows, and the labels or the size of their dimension."""
    code, known = _codes(name, coords, dim, size, sequence)
    count = known if isinstance(known, int) else len(known)
    places = None if order is None else _column(name, coords, "order", order, size)
    found = Sequences.of(dim, count, code, places)
    if places is not None:
        along = places[found.order]
        same = (found.previous[found.order] >= 0)[1:] & (along[1:] == along[:-1])
        if same.any():
            row = int(found.order[1:][same][0])
            raise ModelError(
                f"order of '{name}' has the same value at the rows {found.previous[row]} and "
                f"{row}, which are in one sequence; give each row its own place"
            )
    return found, known


def _codes(
    name: str, coords: Coords, dim: str, size: int, sequence: Any
) -> tuple[Ints, list[Any] | int]:
    if sequence is None:
        if coords.sizes.get(dim, 1) != 1:
            raise ModelError(
                f"'{name}' has no sequence=, but the dimension '{dim}' has {coords.sizes[dim]} "
                "sequences; say which of them each row belongs to"
            )
        return np.zeros(size, dtype=np.int64), 1
    ids = _column(name, coords, "sequence", sequence, size)
    distinct, code = np.unique(ids, return_inverse=True)
    code = code.reshape(-1).astype(np.int64)
    if dim not in coords.sizes:
        plain = distinct.dtype.kind in "iu" and bool((distinct == np.arange(len(distinct))).all())
        return code, len(distinct) if plain else plain_labels(distinct)
    labels = coords.labels.get(dim, range(coords.sizes[dim]))
    places = {label: place for place, label in enumerate(labels)}
    known = plain_labels(distinct)
    unknown = [label for label in known if label not in places]
    if unknown:
        what = "labels" if dim in coords.labels else "places"
        raise ModelError(
            f"sequence of '{name}' has {shown(unknown[0])}, which is not among the {what} of the "
            f"dimension '{dim}'; change the coords, or give sequence_dim= another name"
        )
    at = np.array([places[label] for label in known], dtype=np.int64)
    return at[code], list(labels) if dim in coords.labels else coords.sizes[dim]


def _column(name: str, coords: Coords, what: str, given: Any, size: int) -> NDArray[Any]:
    """Return an array, or the column of the data that is named, with a value for each row."""
    if isinstance(given, str) and coords.data is not None:
        given = coords.data[given]
    try:
        column = np.asarray(given)
        sortable = column.dtype.kind in "biufUSMm"
        if column.dtype.kind == "O":
            column, sortable = _sortable(column), True
    except (TypeError, ValueError, OverflowError):
        sortable = False
    if not sortable:
        raise ModelError(
            f"{what} of '{name}' must be an array of numbers, texts or times, one for each row, "
            f"not {shown(given)}"
        )
    if column.shape != (size,):
        raise ModelError(
            f"{what} of '{name}' has shape {column.shape} instead of {(size,)}: one value for "
            "each row"
        )
    absent = ~np.isfinite(column) if column.dtype.kind == "f" else np.zeros(size, dtype=bool)
    absent = np.isnat(column) if column.dtype.kind in "Mm" else absent
    if absent.any():
        row = int(np.argmax(absent))
        if column.dtype.kind == "f" and np.isinf(column[row]):
            raise ModelError(f"{what} of '{name}' is {column[row]} at row {row}, and not finite")
        raise ModelError(f"{what} of '{name}' is missing at row {row}")
    return column


def _sortable(column: NDArray[Any]) -> NDArray[Any]:
    """Return an array of objects as texts or as times; refuse anything else."""
    values = column.ravel().tolist()
    if column.ndim == 1 and all(isinstance(value, str) for value in values):
        return np.array(values, dtype=np.str_)
    if column.ndim != 1 or not all(isinstance(value, date) for value in values):
        raise TypeError
    return np.array([_instant(value) for value in values], dtype="datetime64[us]")


def _instant(value: date) -> date:
    """Return a date or time; one with a time zone as that of Greenwich."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value
