"""Which element of a variable a row refers to: the foreign key of one operand."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.network.expressions import Index, Operand, Symbol
from svmp.network.grid import Grid, Ints, Labelled, Scope, StrayAxisError


@dataclass(frozen=True, eq=False)
class Reader:
    """An operand as the rows of a table read it: an element, or an entry of a vector.

    Attributes
    ----------
    carried
        Inner axes that the operand itself has: different inner indices then mean different
        elements of it.
    """

    variable: Symbol
    scope: Scope
    index: tuple[Index, ...]

    @classmethod
    def of(cls, operand: Operand, scope: Scope, plate: Grid) -> Reader:
        index: list[Index] = []
        for place, length in zip(operand.index, operand.variable.shape, strict=False):
            if isinstance(place, Labelled):
                place = scope.align(place, plate)
            elif isinstance(place, str):
                if not scope.knows(place):
                    raise StrayAxisError(f"'{operand.variable.name}'", place, length)
                if scope.length(place) != length:
                    raise ModelError(
                        f"'{operand.variable.name}' has length {length} along '{place}', which "
                        f"has {scope.length(place)} here"
                    )
            index.append(place)
        return cls(operand.variable, scope, tuple(index))

    @property
    def _plate(self) -> tuple[Index, ...]:
        """The indices that select an element; one more may select an entry of its vector."""
        return self.index[: len(self.variable.plate.labels)]

    @property
    def carried(self) -> set[str]:
        return {i for i in self._plate if isinstance(i, str)} & set(self.scope.inner.labels)

    @property
    def width(self) -> int:
        """Largest number of elements that one row reads."""
        inner, keys = self.scope.inner, (i for i in self._plate if isinstance(i, Labelled))
        read = self.carried.union(*(set(map(str, key.axes)) & set(inner.labels) for key in keys))
        return min(prod(inner.length(label) for label in read), self.variable.size)

    @property
    def labels(self) -> set[str]:
        """Names of the axes of the scope that it varies along."""
        return Operand(self.variable, self.index).labels

    @property
    def plate_labels(self) -> set[str]:
        """Names of the axes of the scope that the element it reads varies along."""
        return Operand(self.variable, self._plate).labels

    @property
    def keyed_by_inner(self) -> bool:
        """Whether an index array varies along an inner axis."""
        inner = set(self.scope.inner.labels)
        return any(inner & set(i.axes) for i in self.index if isinstance(i, Labelled))

    def _coordinate(self, index: Index, rows: Ints, inner: Ints) -> Ints | int:
        if isinstance(index, Labelled):
            return self.scope.look_up(index, rows, inner)
        if isinstance(index, str):
            return self.scope.coordinate(index, rows, inner)
        return index

    def element(self, rows: Ints, inner: Ints) -> Ints:
        """Return the flat index of the element that each (row, inner index) refers to."""
        plate, parts = self.variable.plate, []
        for index, label in zip(self.index, plate.labels, strict=False):
            place, stride = self._coordinate(index, rows, inner), plate.stride(label)
            parts.append(place if stride == 1 else np.multiply(place, stride, dtype=np.int64))
        flat = np.asarray(sum(parts[1:], start=parts[0]) if parts else 0, dtype=np.int64)
        return flat if flat.shape == rows.shape else np.full(len(rows), flat)

    def everywhere(self) -> Ints:
        """Return the element that each row refers to at its first inner index."""
        plate, key = self.variable.plate, self.key
        if key is None:
            rows = np.arange(self.scope.rows.size)
            return self.element(rows, np.zeros_like(rows))
        place = next(i for i, index in enumerate(self._plate) if isinstance(index, Labelled))
        return np.multiply(key.ravel(), plate.stride(plate.labels[place]), dtype=np.int64)

    @property
    def key(self) -> NDArray[Any] | None:
        """The index array that, with the inner axes alone, determines the element of every row."""
        arrays = [i for i in self._plate if isinstance(i, Labelled)]
        others = {i for i in self._plate if not isinstance(i, Labelled)}
        if len(arrays) != 1 or not others <= self.carried:
            return None
        return arrays[0].values if arrays[0].axes == self.scope.rows.labels else None

    def component(self, rows: Ints, inner: Ints) -> Ints:
        """Return which entry of a vector is read; 0 for scalar variables."""
        if len(self.index) == len(self.variable.plate.labels):
            return np.zeros(len(rows), dtype=np.int64)
        place = self._coordinate(self.index[-1], rows, inner)
        return np.broadcast_to(np.asarray(place, dtype=np.int64), (len(rows),))

    def base_of(self, elements: Ints) -> Ints:
        """Return the element that the same row reads at its first inner index."""
        plate, base = self.variable.plate, elements
        for index, label in zip(self.index, plate.labels, strict=False):
            if isinstance(index, str) and index in self.scope.inner.labels:
                base = base - plate.coordinate(label, elements) * plate.stride(label)
        return base

    def inner_of(self, elements: Ints) -> Ints:
        """Return the inner index at which each element is read, if all inner axes are carried."""
        plate, inner = self.variable.plate, self.scope.inner
        flat: Ints = np.zeros(len(elements), dtype=np.int64)
        for index, label in zip(self.index, plate.labels, strict=False):
            if isinstance(index, str) and index in inner.labels:
                flat += plate.coordinate(label, elements) * inner.stride(index)
        return flat
