"""Which entries of an array a plot draws on which line, and in which colour.

An array of one dim has a line for each label. One of more dims has a line for each label of its
longest dim, and in a line a colour for each label of the others, as the three coefficients of each
of 20 schools. Without room for that it has a line for each entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from svmp.network.grid import Ints
from svmp.posterior.tables.entries import Dim

COLOURS = 10
"""Most colours in a panel: those that Matplotlib's default has."""


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a panel.

    Attributes
    ----------
    dims
        The dims of the array.
    along
        The axes that lines go along; the others have colours.
    """

    dims: Sequence[Dim]
    along: tuple[int, ...]

    @classmethod
    def of(cls, dims: Sequence[Dim], most: int) -> Lines | None:
        """Return the lines of an array, at most `most` of them; None if it needs more."""
        sizes = [dim.size for dim in dims]
        entries = int(np.prod(sizes, dtype=int))
        longest = int(np.argmax(sizes)) if len(dims) > 1 and entries else 0
        if len(dims) > 1 and sizes[longest] <= most and entries <= COLOURS * sizes[longest]:
            return cls(dims, (longest,))
        return cls(dims, tuple(range(len(dims)))) if entries <= most else None

    @property
    def across(self) -> tuple[int, ...]:
        """The axes that have colours."""
        return tuple(axis for axis in range(len(self.dims)) if axis not in self.along)

    @property
    def count(self) -> int:
        """Number of lines."""
        return int(np.prod([self.dims[axis].size for axis in self.along], dtype=int))

    @property
    def colours(self) -> int:
        """Number of colours."""
        return int(np.prod([self.dims[axis].size for axis in self.across], dtype=int))

    @property
    def entries(self) -> int:
        """Number of entries."""
        return self.count * self.colours

    @property
    def name(self) -> str:
        """The dims that lines go along."""
        return ", ".join(self.dims[axis].name for axis in self.along)

    @property
    def colour_name(self) -> str:
        """The dims that have colours."""
        return ", ".join(self.dims[axis].name for axis in self.across)

    @property
    def texts(self) -> list[str]:
        """The label of each line."""
        return self._texts(self.along)

    def groups(self) -> Iterator[tuple[str, Ints, np.ndarray]]:
        """Yield for each colour its label, and its entries with the height of each."""
        shape = [dim.size for dim in self.dims]
        order = np.arange(self.entries).reshape(shape).transpose(*self.along, *self.across)
        order = order.reshape(self.count, self.colours)
        step = 0.8 / self.colours
        for colour, text in enumerate(self._texts(self.across)):
            shift = (colour - (self.colours - 1) / 2) * step
            yield text, order[:, colour], np.arange(self.count) + shift

    def _texts(self, axes: tuple[int, ...]) -> list[str]:
        dims = [self.dims[axis] for axis in axes]
        places = product(*(range(dim.size) for dim in dims))
        return [short(", ".join(d.text(i) for d, i in zip(dims, at, strict=True))) for at in places]


def short(text: str, most: int = 24) -> str:
    """Return a label that is not too long for a tick."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
