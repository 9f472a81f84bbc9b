"""Labels along a dim, as values of Python, and the place of each.

With labels l_0, ..., l_(n-1) the place of a key k is the i with l_i = k. Whole numbers and times
are found by arrays, all others by a dict: a million keys take some tenths of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from difflib import get_close_matches
from functools import cached_property
from itertools import repeat
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.network.dims.texts import text_places
from svmp.network.validation import is_unicode, shown

DAY, MICROSECOND = "datetime64[D]", "datetime64[us]"
DAYS = ("Y", "M", "W", "D")
"""Units of datetime64 that are dates."""
SIMPLE = (str, int, float, bool)
"""Types of labels that are compared as they are."""
SPREAD = 4
"""Whole numbers are looked up in a table, if it has at most this many places per label and key."""
KINDS = {
    bool: "truth values",
    int: "numbers",
    float: "numbers",
    str: "strings",
    bytes: "bytes",
    date: "dates",
    datetime: "times",
}
"""What labels of a type are called in messages; no two kinds have a label in common."""
SEARCHED = 20_000
"""Most labels that are searched for one that is spelled nearly as a key."""


def plain_label(label: Any) -> Any:
    """Return a label as a value of Python, by which it is compared.

    >>> plain_label(np.int64(3)), plain_label(np.datetime64("2024-02-29"))
    (3, datetime.date(2024, 2, 29))
    """
    if type(label) in SIMPLE:
        return label
    if isinstance(label, np.datetime64):
        day = np.datetime_data(label)[0] in DAYS
        return label.astype(DAY if day else MICROSECOND).item()
    if isinstance(label, datetime) and not is_missing(label):
        return datetime.fromisoformat(label.isoformat())  # of a data frame, perhaps
    return label.item() if isinstance(label, np.generic) else label


def plain_labels(values: Iterable[Any]) -> list[Any]:
    """Return labels as a list of values of Python.

    Parameters
    ----------
    values
        A list, or an array of NumPy, pandas, Polars or PyArrow.
    """
    if not isinstance(values, list | tuple | range | np.ndarray) and hasattr(values, "__array__"):
        values = np.asarray(values)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise TypeError(f"an array of shape {values.shape}")
        if values.dtype.kind == "M":
            day = np.datetime_data(values.dtype)[0] in DAYS
            values = values.astype(DAY if day else MICROSECOND)
        values = values.tolist()
    found = list(values)
    if set(map(type, found)) <= {*SIMPLE, date}:
        return found
    return [plain_label(label) for label in found]


def label_kinds(labels: Iterable[Any]) -> list[str]:
    """Return what the types of labels are called, in alphabetical order.

    >>> label_kinds([1, 2.5]), label_kinds(np.array(["a"])), label_kinds([(1, "a"), True])
    (['numbers'], ['strings'], ['truth values', 'tuple'])
    """
    if isinstance(labels, np.ndarray):
        labels = labels[:1].tolist() if labels.dtype != object else labels.tolist()
    return sorted({KINDS.get(kind, kind.__name__) for kind in set(map(type, labels))})


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or the NA of pandas.

    >>> [is_missing(value) for value in (None, float("nan"), np.datetime64("NaT"), 0, "")]
    [True, True, True, False, False]
    """
    if value is None or isinstance(value, float | np.floating):
        return value is None or bool(value != value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NAType", "NaTType")


def missing_rows(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values of a column are missing: None, NaN, NaT or the NA of pandas.

    >>> missing_rows(np.array(["a", None, ""], dtype=object))
    array([False,  True, False])
    """
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind == "O":
        return np.fromiter(map(is_missing, values.tolist()), bool, len(values))
    return np.zeros(len(values), bool)


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """Return values as an array with one axis, also if they are tuples or lists."""
    found = np.empty(len(values), dtype=object)
    found[:] = values if isinstance(values, list) else list(values)
    return found


def label_key(label: Any) -> Any:
    """Return what stands for a label in a dict: the label, or its repr if it is not hashable."""
    try:
        hash(label)
    except TypeError:
        return repr(label)
    return label


class LabelIndex:
    """The places of labels along one dim.

    Parameters
    ----------
    labels
        Distinct labels, as `plain_labels` returns them.

    Attributes
    ----------
    counting
        Whether the labels are 0, 1, ..., n - 1, so that labels and places are the same.
    numeric
        Whether some label is a number, which could also be meant as a place.
    booleans, tuples
        Whether all labels are booleans, and whether some are tuples.
    """

    def __init__(self, labels: Sequence[Any]) -> None:
        self.labels = labels
        self._types = set(map(type, labels))
        self.booleans, self.tuples = self._types == {bool}, tuple in self._types
        self.numeric = any(issubclass(kind, Number) for kind in self._types)
        self.counting = (
            self._types <= {int}
            and self._numbers is not None
            and np.array_equal(self._numbers, np.arange(len(labels)))
        )

    @cached_property
    def _numbers(self) -> NDArray[np.int64] | None:
        """The labels as whole numbers, if they are whole numbers or times without a zone."""
        try:
            if self._types <= {int}:
                return np.array(self.labels, dtype=np.int64)
            zoned = any(label.tzinfo is not None for label in self._times)
            return None if zoned or not self.times else _microseconds(self.labels)
        except (OverflowError, ValueError):
            return None

    @property
    def times(self) -> bool:
        """Whether all labels are dates or times; a date is the time at its midnight."""
        return bool(self._types) and self._types <= {date, datetime}

    @property
    def _times(self) -> list[datetime]:
        return [label for label in self.labels if isinstance(label, datetime)] if self.times else []

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        assert self._numbers is not None
        return np.argsort(self._numbers, kind="stable")

    @cached_property
    def _places(self) -> dict[Any, int]:
        try:
            return dict(zip(self.labels, range(len(self.labels)), strict=True))
        except TypeError:  # some are not hashable
            return {label_key(label): place for place, label in enumerate(self.labels)}

    def repeated(self) -> tuple[int, int] | None:
        """Return the places of the first label that occurs twice, None if all are distinct."""
        keys: Sequence[Any]
        if self._numbers is not None:
            keys = self._numbers.tolist()
            if self.counting or len(set(keys)) == len(keys):
                return None
        elif len(set(self.labels) if self._types == {str} else self._places) == len(self.labels):
            return None
        else:
            keys = [label_key(label) for label in self.labels]
        first: dict[Any, int] = {}
        for place, key in enumerate(keys):
            if first.setdefault(key, place) != place:
                return first[key], place
        return None

    def not_unicode(self) -> int | None:
        """Return the place of the first text that cannot be written, None if all can."""
        if self._types == {str} and is_unicode("".join(self.labels)):
            return None
        bad = (i for i, x in enumerate(self.labels) if isinstance(x, str) and not is_unicode(x))
        return next(bad, None)

    def missing(self) -> int | None:
        """Return the place of the first label that is missing, as NaN is; None if none is."""
        if self._types <= {str, int, bool, date}:
            return None
        return next((i for i, label in enumerate(self.labels) if is_missing(label)), None)

    def find(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        """Return the place of each key, -1 where it is no label.

        >>> LabelIndex(["b", "a"]).find(np.array(["a", "b", "c"]))
        array([ 1,  0, -1])
        """
        flat = keys.ravel()
        found = self._by_number(flat)
        if found is None:
            listed = plain_labels(flat)
            found = text_places(self.labels, listed) if self._types == {str} else None
            if found is not None:
                return found.reshape(keys.shape)
            try:
                places: Any = map(self._places.get, listed, repeat(-1))
                found = np.fromiter(places, np.int64, len(listed))
            except TypeError:
                keyed = map(label_key, listed)
                found = np.array([self._places.get(key, -1) for key in keyed], dtype=np.int64)
        return found.reshape(keys.shape)

    def _by_number(self, keys: NDArray[Any]) -> NDArray[np.int64] | None:
        """Return the places of whole numbers among whole numbers, or of times among times."""
        if self._numbers is None:
            return None
        if not self.times:
            if keys.dtype.kind not in "iu" or keys.dtype == np.uint64:
                return None
            return _find(self._numbers, self._order, keys.astype(np.int64, copy=False))
        if keys.dtype.kind == "O":
            listed = plain_labels(keys)
            if not set(map(type, listed)) <= {date, datetime}:
                return np.full(len(keys), -1)
            if any(isinstance(key, datetime) and key.tzinfo is not None for key in listed):
                return np.full(len(keys), -1)
            return _find(self._numbers, self._order, _microseconds(listed))
        if keys.dtype.kind != "M":
            return np.full(len(keys), -1)
        moments = keys.astype(MICROSECOND)
        found = _find(self._numbers, self._order, moments.astype(np.int64))
        return np.where(moments == keys, found, -1)

    def near(self, key: Any) -> str:
        """Return a hint with a label that is written like a key, empty if there is none."""
        key = plain_label(key)
        text = str(key).strip().casefold()
        for label in self.labels:
            if str(label).strip().casefold() == text:
                kind = (
                    f", of the type {type(label).__name__}" if type(label) is not type(key) else ""
                )
                return f"; did you mean {shown(label)}{kind}?"
        if self.times and isinstance(key, str):
            return "; give times, as by np.array(keys, dtype='datetime64')"
        if isinstance(key, str) and len(self.labels) <= SEARCHED:
            texts = [label for label in self.labels if isinstance(label, str)]
            close = get_close_matches(key, texts, n=1)
            if close:
                return f"; did you mean {shown(close[0])}?"
        return ""

    @property
    def sample(self) -> str:
        """The first labels, for messages."""
        some = ", ".join(shown(label) for label in self.labels[:3])
        return some if len(self.labels) <= 3 else f"{some}, ..."


def _microseconds(times: Sequence[Any]) -> NDArray[np.int64]:
    return np.array(times, dtype=MICROSECOND).astype(np.int64)


def _find(
    labels: NDArray[np.int64], order: NDArray[np.int64], keys: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the place of each key among the labels, -1 where it is none."""
    if not len(labels) or not len(keys):
        return np.full(len(keys), -1)
    low, high = int(labels[order[0]]), int(labels[order[-1]])
    if high - low < SPREAD * (len(labels) + len(keys)) + 1000:  # a table avoids a search
        table = np.full(high - low + 2, -1)
        table[labels - low] = np.arange(len(labels))
        inside = (keys >= low) & (keys <= high)
        return np.asarray(table[np.where(inside, keys - np.where(inside, low, keys), -1)])
    ascending = labels[order]
    at = np.minimum(np.searchsorted(ascending, keys), len(labels) - 1)
    return np.where(ascending[at] == keys, order[at], -1)
