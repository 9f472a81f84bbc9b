"""The keys of one axis, as users write them, become places along it.

    key                                          along a dim with labels       without labels
    strings, dates, tuples, any other object     labels                        refused
    whole numbers, if no label is a number       places                        places
    whole numbers, if some label is a number     the reading that is possible  -
    other numbers                                labels                        refused
    booleans, one for each element               a mask                        a mask
    a slice of labels, both ends included        labels                        refused
    a slice of numbers                           places                        places

A single negative place counts from the end. Whole numbers along a dim with numbers as labels are
read as labels if all of them are labels, and as places if all are places. If both are possible and
differ, they are refused: `x.loc[...]` says labels, `x.iloc[...]` says places. Sorted labels that
all occur are never ambiguous: n labels that are all places are then 0, ..., n - 1.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from operator import index
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.network.dims.labels import LabelIndex, is_missing, missing_rows, object_array
from svmp.network.validation import array, as_array, large_integers, shown, whole

Reading = Literal["any", "label", "place"]
"""Whether keys are labels, places, or whichever of the two is possible."""


@dataclass(frozen=True)
class Axis:
    """One axis of a variable.

    Attributes
    ----------
    variable, dim, length
        Its variable, its name and its length.
    labels
        The labels along it, or None.
    reading
        How keys are read.
    columns
        Names of the columns of the model's data, which are no keys themselves.
    """

    variable: str
    dim: str
    length: int
    labels: LabelIndex | None = None
    reading: Reading = "any"
    columns: Container[str] = ()

    @property
    def where(self) -> str:
        return f"the index of '{self.variable}' along '{self.dim}'"

    def places(self, key: Any) -> NDArray[Any]:
        """Return the places that a key refers to, as an array of integers; 0-d for a single one.

        Parameters
        ----------
        key
            A slice, a single label or place, or an array of them.
        """
        if isinstance(key, slice):
            return self._slice(key)
        if self.reading == "label" and self.labels is None:
            raise ModelError(
                f"'{self.dim}' of '{self.variable}' has no labels; give them in the "
                "model's coords, or write x.iloc[...] for places"
            )
        keys = self._as_array(key)
        kind = keys.dtype.kind
        if self.labels is None or self.reading == "place":
            return self._mask(keys) if kind == "b" and keys.ndim else self._place(keys, key)
        if kind == "b" and not self.labels.booleans:
            if keys.ndim == 0:
                self._unknown(keys, np.array(-1))
            return self._mask(keys)
        if kind in "iu" and self.reading == "any":
            return self._whole_numbers(keys)
        if kind == "f" and self.reading == "any" and not self.labels.numeric:
            return self._place(keys, key)  # which refuses what is not whole
        return self._label(keys)

    def _as_array(self, key: Any) -> NDArray[Any]:
        """Return keys as an array of numbers, or of objects as they were given."""
        tuples = self.labels is not None and self.labels.tuples
        if tuples and isinstance(key, tuple):
            found = np.empty((), dtype=object)
            found[()] = key
            return found
        if tuples and isinstance(key, list) and all(isinstance(k, tuple) for k in key):
            return object_array(key)
        if hasattr(key, "__array__") and not isinstance(key, np.ndarray | np.generic):
            try:
                key = as_array(key)  # a column of pandas, Polars or PyArrow
            except (TypeError, ValueError):
                self._refuse(key)
        numbers = None if isinstance(key, list) and _text(key) else array(key)
        large = None if numbers is None else large_integers(key, numbers)
        if large is not None:
            return large
        if numbers is not None:
            if np.ma.is_masked(key):
                raise ModelError(f"{self.where} is masked in places, where keys are needed")
            return numbers
        try:
            if isinstance(key, np.ndarray | np.generic):
                return np.asarray(key)
            if isinstance(key, list | tuple):
                return np.array(key, dtype=object)
        except (TypeError, ValueError):
            self._refuse(key)
        found = np.empty((), dtype=object)
        found[()] = key
        return found

    def _place(self, keys: NDArray[Any], key: Any) -> NDArray[Any]:
        """Return whole numbers, each a place along the axis."""
        if keys.dtype.kind not in "iufb":
            self._refuse(key)
        if keys.ndim == 0 and keys.dtype.kind in "iu" and -self.length <= keys < 0:
            return np.asarray(keys + self.length)
        try:
            return whole(keys, self.length, self.where)
        except ModelError as error:
            raise ModelError(f"{error}{self._hint(keys)}") from None

    def _hint(self, keys: NDArray[Any]) -> str:
        """Say what may have been meant by whole numbers that are no places."""
        if keys.dtype.kind not in "iu":
            return ""
        if keys.ndim and keys.min() < 0:
            return "; in a column of codes -1 means missing, and only a single x[-1] is the last"
        outside = keys[keys >= self.length] if keys.ndim else keys.reshape(1)
        if self.labels is not None and len(outside):
            return self.labels.near(outside.ravel()[0])
        return ""

    def _mask(self, keys: NDArray[Any]) -> NDArray[Any]:
        """Return the places at which a mask is true."""
        if keys.shape != (self.length,):
            raise ModelError(
                f"{self.where} is a mask of shape {keys.shape}, but a mask has a boolean for each "
                f"of the {self.length} elements, and keys are whole numbers or labels"
            )
        return self._some(np.flatnonzero(keys), "mask")

    def _some(self, places: NDArray[Any], what: str) -> NDArray[Any]:
        if not len(places):
            raise ModelError(f"{self.where} is a {what} that selects no element")
        return places

    def _whole_numbers(self, keys: NDArray[Any]) -> NDArray[Any]:
        """Return the places of whole numbers, which are labels or places, whichever is possible."""
        assert self.labels is not None
        if self.labels.counting or not self.labels.numeric:
            return self._place(keys, keys)
        found = self.labels.find(keys)
        known = bool((found >= 0).all())
        low = -self.length if keys.ndim == 0 else 0
        inside = not keys.size or bool(keys.min() >= low and keys.max() < self.length)
        if known and inside and not np.array_equal(found, keys):
            first = keys.ravel()[np.flatnonzero((found != keys).ravel())[0]]
            self._ambiguous(f"holds {first}, which may be a label or a place")
        if known:
            return found
        if inside:
            return self._place(keys, keys)
        self._unknown(keys, found)

    def _ambiguous(self, what: str) -> NoReturn:
        raise ModelError(
            f"{self.where} {what}; write {self.variable}.loc[...] for labels, or "
            f"{self.variable}.iloc[...] for places"
        )

    def _label(self, keys: NDArray[Any]) -> NDArray[Any]:
        """Return the places of labels."""
        assert self.labels is not None
        found = self.labels.find(keys)
        if (found < 0).any():
            self._unknown(keys, found)
        return found

    def _unknown(self, keys: NDArray[Any], found: NDArray[Any]) -> NoReturn:
        """Refuse keys of which some are no labels."""
        assert self.labels is not None
        wrong = np.flatnonzero((found < 0).ravel())
        row, flat = int(wrong[0]), keys.ravel()
        place = tuple(int(i) for i in np.unravel_index(row, keys.shape))
        at = f" at {place[0] if keys.ndim == 1 else place}" if place else ""
        if is_missing(flat[row]):
            count = int(missing_rows(flat).sum())
            rest = f", and {count - 1} more are missing" if count > 1 else ""
            raise ModelError(
                f"{self.where} is missing{at}{rest}; leave out rows without a key, or give them a "
                "label of their own"
            )
        more = f" ({len(wrong):,} of the {flat.size:,} keys are none)" if len(wrong) > 1 else ""
        if isinstance(flat[row], str) and flat[row] in self.columns:
            raise ModelError(
                f"{self.where} is {shown(flat[row])}, the name of a column and no label; its "
                f"values are model.data[{shown(flat[row])}]"
            )
        numbers = " nor a place" if keys.dtype.kind in "iu" and self.labels.numeric else ""
        raise ModelError(
            f"{self.where} holds {shown(flat[row])}{at}, which is no label{numbers}{more}; labels "
            f"are {self.labels.sample}{self.labels.near(flat[row])}"
        )

    def _refuse(self, key: Any) -> NoReturn:
        """Refuse keys that are no numbers, along a dim without labels."""
        hint = ""
        if self.labels is None and _text(key):
            hint = f'; labels are known where the model has them, as coords={{"{self.dim}": names}}'
        elif self.reading == "place" and _text(key):
            hint = "; labels are read by x.loc[...]"
        raise ModelError(f"{self.where} must be whole numbers, not {shown(key)}{hint}")

    def _slice(self, key: slice) -> NDArray[Any]:
        """Return the places of a slice: of places as in Python, of labels with both ends."""
        ends = [end for end in (key.start, key.stop) if end is not None]
        if self.labels is not None and self.reading != "place":
            if self.reading == "label" or not all(
                isinstance(end, int | np.integer) for end in ends
            ):
                return self._label_slice(key)
            if ends and self.labels.numeric and not self.labels.counting:
                known = self.labels.find(np.array(ends)) >= 0
                if known.all() and max(map(abs, ends)) > self.length:
                    return self._label_slice(key)
                if known.any():
                    self._ambiguous("is a slice of numbers, which may be labels or places")
        try:
            places = np.arange(self.length)[key]
        except (TypeError, ValueError):
            raise ModelError(
                f"{self.where} is a slice of {shown(ends[0] if ends else key.step)}, but needs "
                "whole numbers, as in x[1:3]"
            ) from None
        return self._some(places, "slice")

    def _label_slice(self, key: slice) -> NDArray[Any]:
        if self.labels is None:
            raise ModelError(f"'{self.dim}' of '{self.variable}' has no labels to slice by")
        first, last = (
            default if end is None else int(self._label(self._as_array(end)))
            for end, default in ((key.start, 0), (key.stop, self.length - 1))
        )
        try:
            step = 1 if key.step is None else index(key.step)
            places = np.arange(self.length)[first : last + 1 : step]
        except (TypeError, ValueError):
            raise ModelError(
                f"{self.where} is a slice with the step {shown(key.step)}, which is no whole number"
            ) from None
        return self._some(places, "slice")


def _text(key: Any) -> bool:
    """Return whether the first of some keys is text or a date, and no number."""
    while isinstance(key, list | tuple) and key:
        key = key[0]
    if isinstance(key, np.ndarray) or hasattr(key, "__array__"):
        return not isinstance(key, np.generic) and np.asarray(key).dtype.kind in "OUM"
    return isinstance(key, str) or hasattr(key, "isoformat")
