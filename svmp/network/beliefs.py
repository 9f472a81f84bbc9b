"""q: the natural parameter and the moments of every hidden variable. All state is here."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Protocol

import numpy as np

from svmp.families.family import Array
from svmp.network.grid import Ints


class Loop(Protocol):
    """Compiled loops over the rows of a table."""

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        """E[mu] and E[mu^2] of each row."""
        ...

    def bound_term(self, q: Beliefs) -> float | None:
        """Return what the rows add to the bound, or None where it takes the plain way."""
        ...


@dataclass
class Beliefs:
    """The approximate posterior, fully factorised over elements.

    Attributes
    ----------
    natural, moments
        By variable, arrays of (elements, size); moments always belong to the natural parameters.
    means
        E[mu] of every row of some tables, where an algorithm that reads all rows keeps them.
    loops
        Compiled loops, by table, where there are any.
    gradient, square
        Running means of the natural gradient and its square, for step policies that ask.
    """

    natural: dict[str, Array] = field(default_factory=dict)
    moments: dict[str, Array] = field(default_factory=dict)
    means: dict[str, Array] = field(default_factory=dict)
    loops: dict[str, Loop] = field(default_factory=dict)
    gradient: dict[str, Array] = field(default_factory=dict)
    square: dict[str, Array] = field(default_factory=dict)

    def copy(self) -> Beliefs:
        """Return a copy that shares nothing that changes."""
        arrays = {
            f.name: {k: v.copy() for k, v in vars(self)[f.name].items()}
            for f in fields(self)
            if f.name != "loops"
        }
        return Beliefs(loops=self.loops, **arrays)

    def remember_gradient(
        self, name: str, elements: Ints, target: Array, weight: float
    ) -> tuple[Array, Array]:
        """Blend the newest natural gradient into its running mean and mean square."""
        new = target - self.natural[name][elements]
        for memory, value in ((self.gradient, new), (self.square, new**2)):
            old = memory.setdefault(name, np.full_like(self.natural[name], np.nan))
            seen = np.isfinite(old[elements])
            old[elements] = np.where(seen, (1 - weight) * old[elements] + weight * value, value)
        return self.gradient[name][elements], self.square[name][elements]
