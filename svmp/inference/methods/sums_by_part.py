"""Sums over the rows of each part of the data, and their total.

The sums S_p of a variable over the rows of part p add: S = S_1 + ... + S_P. When a part is read
again, its sums are replaced,

    S <- S + S_p' - S_p

and nothing else is read. So that rounding errors do not add up, the total is computed anew from all
parts from time to time, always in the order of the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from svmp.families.family import Array
from svmp.network.grid import Ints


@dataclass
class SumsByPart:
    """The sums of one variable over the rows of each part, and their total.

    Attributes
    ----------
    total
        The sum over all parts that were read.
    places
        By part, the rows of the total that its sums belong to, ascending; None for all rows.
    parts
        By part, its sums as they were last computed; None before it was first read.

    >>> sums = SumsByPart.empty((2,), [None, np.array([1])])
    >>> sums.replace(0, np.array([1.0, 2.0]))
    >>> sums.replace(1, np.array([5.0]))
    >>> sums.replace(0, np.array([4.0, 3.0]))
    >>> sums.total
    array([4., 8.])
    """

    total: Array
    places: Sequence[Ints | None]
    parts: list[Array | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts = self.parts or [None] * len(self.places)

    @classmethod
    def empty(cls, shape: tuple[int, ...], places: Sequence[Ints | None]) -> SumsByPart:
        """Return sums of parts of which none was read."""
        return cls(np.zeros(shape), places)

    @property
    def seen(self) -> list[int]:
        """The parts that were read."""
        return [part for part, sums in enumerate(self.parts) if sums is not None]

    def shape(self, part: int) -> tuple[int, ...]:
        """Return the shape of the sums of a part."""
        place = self.places[part]
        return self.total.shape if place is None else (len(place), *self.total.shape[1:])

    def replace(self, part: int, sums: Array, rows: Ints | None = None) -> None:
        """Replace the sums of a part, or some rows of them; the total follows."""
        place, old = self.places[part], self.parts[part]
        if rows is not None:
            if old is None:
                old = self.parts[part] = np.zeros(self.shape(part))
            self.total[rows if place is None else place[rows]] += sums - old[rows]
            old[rows] = sums
            return
        change = sums if old is None else sums - old
        if place is None:
            self.total += change
        else:
            self.total[place] += change
        self.parts[part] = sums

    def add_up(self) -> None:
        """Compute the total anew from all parts that were read, in their order."""
        self.total[:] = 0
        for place, sums in zip(self.places, self.parts, strict=True):
            if sums is None:
                continue
            if place is None:
                self.total += sums
            else:
                self.total[place] += sums


@dataclass
class Memo:
    """What a method that keeps sums by part has kept.

    Attributes
    ----------
    sums
        By variable, its sums.
    exact
        Number of coming sweeps whose updates use no sums of earlier sweeps: the first, and some
        after one that has lowered the bound.
    bound
        The exact bound after the last sweep, from which on it must not fall.
    """

    sums: dict[str, SumsByPart] = field(default_factory=dict)
    exact: int = 0
    bound: float = -np.inf
