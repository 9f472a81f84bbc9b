"""q: the natural parameter and the moments of every hidden variable. All state is here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from svmp.families.family import Array
from svmp.network.grid import Ints

if TYPE_CHECKING:
    from svmp.network.edge import Edge
    from svmp.network.linear import Linear


class Loop(Protocol):
    """Compiled loops over the rows of a table.

    Attributes
    ----------
    linear
        The mean that they work out, if they do.
    """

    @property
    def linear(self) -> Linear | None: ...

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        """E[mu] and E[mu^2] of each row."""
        ...

    def bound_term(self, q: Beliefs) -> float | None:
        """Return what the rows add to the bound, or None where it takes the plain way."""
        ...


class Settled(Protocol):
    """A Categorical of the rows whose q is not stored: at any moment the best one for the others.

    It is worked out row by row, as often as it is needed; what a compiled loop keeps of it is a
    tally, the sums over rows that its messages are made of.
    """

    @property
    def tables(self) -> list[str]:
        """Return the tables whose messages come from the tally: its own, and its children's."""
        ...

    def natural(self, q: Beliefs, elements: Ints) -> Array:
        """Return the natural parameters of some elements."""
        ...

    def moments(self, q: Beliefs, elements: Ints) -> Array:
        """Return the probabilities of some elements."""
        ...

    def count(self, q: Beliefs, elements: Ints | None) -> Any:
        """Return the tally of some elements, or of all."""
        ...

    def message(self, q: Beliefs, tally: Any, edge: Edge, elements: Ints) -> Array:
        """Return for some elements of a parent the sum of the messages of the rows counted."""
        ...

    def reads(self, tally: Any, edge: Edge, elements: Ints) -> int:
        """Return how many rows some elements of a parent read, for that."""
        ...

    def bound(self, q: Beliefs, tally: Any) -> dict[str, float]:
        """Return the terms of the bound of its tables, from the tally of all rows."""
        ...


@dataclass
class Tally:
    """What was counted: the draw whose rows they are (None: all rows), and whether q has moved."""

    draw: Any
    sums: Any
    stale: bool = False


@dataclass
class Beliefs:
    """The approximate posterior, fully factorised over elements.

    Attributes
    ----------
    natural, moments
        By variable, arrays of (elements, size); moments always belong to the natural parameters.
    means
        E[mu] of every row of some tables, where an algorithm that reads all rows keeps them.
    touched
        By table of a convex bound, the moments of its logit at which the tangents touch, while a
        variable has its turn: those of the rows that it reads.
    loops
        Compiled loops, by table, where there are any.
    settled
        Local variables that are not stored, by name. They are in neither `natural` nor `moments`.
    tallies
        The sums over rows of those variables, by name.
    gradient, square
        Running means of the natural gradient and its square, for step policies that ask.
    """

    natural: dict[str, Array] = field(default_factory=dict)
    moments: dict[str, Array] = field(default_factory=dict)
    means: dict[str, Array] = field(default_factory=dict)
    touched: dict[str, Array] = field(default_factory=dict)
    loops: dict[str, Loop] = field(default_factory=dict)
    settled: dict[str, Settled] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)
    gradient: dict[str, Array] = field(default_factory=dict)
    square: dict[str, Array] = field(default_factory=dict)

    def copy(self) -> Beliefs:
        """Return a copy that shares nothing that changes."""
        arrays = {
            f.name: {k: v.copy() for k, v in vars(self)[f.name].items()}
            for f in fields(self)
            if f.name not in ("loops", "settled", "tallies")
        }
        return Beliefs(loops=self.loops, settled=self.settled, **arrays)

    def at(self, name: str, elements: Ints) -> Array:
        """Return the moments of some elements of a variable, stored or not."""
        if name in self.settled:
            return self.settled[name].moments(self, elements)
        return self.moments[name][elements]

    def natural_at(self, name: str, elements: Ints) -> Array:
        """Return the natural parameters of some elements of a variable, stored or not."""
        if name in self.settled:
            return self.settled[name].natural(self, elements)
        return self.natural[name][elements]

    def tally(
        self, name: str, draw: Any = None, elements: Callable[[], Ints | None] = lambda: None
    ) -> Any:
        """Return the tally of a settled variable over the elements of a draw; or over all."""
        known = self.tallies.get(name)
        if known is None or known.draw is not draw:
            known = Tally(draw, self.settled[name].count(self, elements()))
            self.tallies[name] = known
        return known.sums

    def went_stale(self) -> None:
        """Note that q has moved, and the tallies have not."""
        for tally in self.tallies.values():
            tally.stale = True

    def settle(self, name: str | None = None) -> None:
        """Forget the tallies (or one) that were taken before q moved."""
        for key in [k for k, t in self.tallies.items() if t.stale and name in (None, k)]:
            del self.tallies[key]

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
