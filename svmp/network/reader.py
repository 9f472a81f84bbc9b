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
    """An operand in the scope of a table: its element, and its entry of a vector, by row and slot.

    Attributes
    ----------
    carried
        Slot axes that the operand has in full, under their own names: different slots then mean
        different elements of it.
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
        """The indices that choose an element; a last one may choose an entry of its vector."""
        return self.index[: len(self.variable.plate.labels)]

    @property
    def carried(self) -> set[str]:
        return {i for i in self._plate if isinstance(i, str)} & set(self.scope.slots.labels)

    @property
    def width(self) -> int:
        """How many elements it reads in one row, at most."""
        slots, keys = self.scope.slots, (i for i in self._plate if isinstance(i, Labelled))
        read = self.carried.union(*(set(map(str, key.axes)) & set(slots.labels) for key in keys))
        return min(prod(slots.length(label) for label in read), self.variable.size)

    @property
    def labels(self) -> set[str]:
        """Names of the axes of the scope along which it reads."""
        return Operand(self.variable, self.index).labels

    @property
    def keyed_by_slots(self) -> bool:
        """Whether an index array is itself read by slot."""
        slots = set(self.scope.slots.labels)
        return any(slots & set(i.axes) for i in self.index if isinstance(i, Labelled))

    def _coordinate(self, index: Index, rows: Ints, slots: Ints) -> Ints | int:
        if isinstance(index, Labelled):
            return self.scope.look_up(index, rows, slots)
        if isinstance(index, str):
            return self.scope.coordinate(index, rows, slots)
        return index

    def element(self, rows: Ints, slots: Ints) -> Ints:
        """Return the flat number of the element that each (row, slot) refers to."""
        plate, flat = self.variable.plate, np.zeros(1, dtype=np.int64)
        for index, label in zip(self.index, plate.labels, strict=False):
            place, stride = self._coordinate(index, rows, slots), plate.stride(label)
            flat = flat + (place if stride == 1 else np.multiply(place, stride, dtype=np.int64))
        return flat if flat.shape == rows.shape else np.full(len(rows), flat[0])

    def everywhere(self) -> Ints:
        """Return the element that each row refers to at its first slot."""
        plate, key = self.variable.plate, self.key
        if key is None:
            rows = np.arange(self.scope.rows.size)
            return self.element(rows, np.zeros_like(rows))
        place = next(i for i, index in enumerate(self._plate) if isinstance(index, Labelled))
        return np.multiply(key.ravel(), plate.stride(plate.labels[place]), dtype=np.int64)

    @property
    def key(self) -> NDArray[Any] | None:
        """The array that says which element every row reads, where only slots say so besides."""
        arrays = [i for i in self._plate if isinstance(i, Labelled)]
        others = {i for i in self._plate if not isinstance(i, Labelled)}
        if len(arrays) != 1 or not others <= self.carried:
            return None
        return arrays[0].values if arrays[0].axes == self.scope.rows.labels else None

    def component(self, rows: Ints, slots: Ints) -> Ints:
        """Return which entry of a vector is meant; 0 for variables that are numbers."""
        if len(self.index) == len(self.variable.plate.labels):
            return np.zeros(len(rows), dtype=np.int64)
        place = self._coordinate(self.index[-1], rows, slots)
        return np.broadcast_to(np.asarray(place, dtype=np.int64), (len(rows),))

    def base_of(self, elements: Ints) -> Ints:
        """Return the element that the same row reads at its first slot."""
        plate, base = self.variable.plate, elements
        for index, label in zip(self.index, plate.labels, strict=False):
            if isinstance(index, str) and index in self.scope.slots.labels:
                base = base - plate.coordinate(label, elements) * plate.stride(label)
        return base

    def slot_of(self, elements: Ints) -> Ints:
        """Return the slot at which an operand that carries every slot axis reads each element."""
        plate, slots = self.variable.plate, self.scope.slots
        flat: Ints = np.zeros(len(elements), dtype=np.int64)
        for index, label in zip(self.index, plate.labels, strict=False):
            if isinstance(index, str) and index in slots.labels:
                flat += plate.coordinate(label, elements) * slots.stride(index)
        return flat
