"""A fixed division of the groups of a dim into parts, which are visited one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from svmp.families.family import Array
from svmp.inference.methods.groups import DrawnGroups
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network

RESTARTS = 5
"""Number of first sweeps in which the variables of a group start near their prior: those that were
fitted to the first, poor global variables would hold these back. docs/performance.md has the
measurements."""
PASSES = 10
"""Most passes over a group at a visit; the next sweep goes on from there."""


@dataclass(frozen=True, eq=False)
class Division:
    """The groups of a dim, divided at random into parts of about the same number of groups."""

    network: Network
    dim: str
    count: int
    seed: int
    key: tuple[str, int, int]

    @cached_property
    def parts(self) -> tuple[VisitedPart, ...]:
        """The parts, each as a draw of its rows."""
        grouping = self.network.grouped(self.dim)
        shuffled = np.random.default_rng([self.seed, 7]).permutation(grouping.count)
        return tuple(
            VisitedPart(self.network, grouping, np.sort(groups), number, self)
            for number, groups in enumerate(np.array_split(shuffled, self.count))
        )

    def visited(self, iteration: int) -> VisitedPart:
        """Return the part that an iteration visits; every sweep visits each part once."""
        sweep, turn = divmod(iteration - 1, self.count)
        order = np.random.default_rng([self.seed, sweep, 8]).permutation(self.count)
        return self.parts[order[turn]]

    def restarts(self, iteration: int) -> bool:
        """Return whether the variables of groups start near their prior in an iteration."""
        return iteration <= RESTARTS * self.count

    def begins_sweep(self, iteration: int) -> bool:
        """Return whether a sweep begins with an iteration."""
        return (iteration - 1) % self.count == 0

    def ends_sweep(self, iteration: int) -> bool:
        """Return whether a sweep ends with an iteration."""
        return iteration % self.count == 0


@dataclass(frozen=True, eq=False)
class VisitedPart(DrawnGroups):
    """One part, with all of its rows; messages are not scaled.

    Attributes
    ----------
    number
        Which part of the division it is.
    """

    number: int
    division: Division = field(repr=False)

    def scale(self, name: str, elements: Ints) -> Array:
        return np.ones(len(elements))

    def restarts(self, iteration: int) -> bool:
        return self.division.restarts(iteration)

    @property
    def most_passes(self) -> int:
        return PASSES

    def memoizes(self, edge: Edge) -> bool:
        """Return whether the messages of a table to a global variable are kept by part."""
        return self._is_drawn(edge)
