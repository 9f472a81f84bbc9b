"""The record of one iteration: rows read and steps taken."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from svmp.families.family import Array
from svmp.inference.updaters.updater import Change
from svmp.network.grid import Ints


@dataclass
class Info:
    """The record of one iteration.

    Attributes
    ----------
    accesses
        Rows accessed.
    steps
        By change, the step of each element or one number for all, and the number of rows that each
        element read.
    fresh
        The rows of the groups that were drawn, if groups were.
    """

    accesses: int = 0
    steps: list[tuple[Array, Ints]] = field(default_factory=list)
    fresh: dict[str, Ints] = field(default_factory=dict)

    def add(self, change: Change) -> None:
        """Add a change to the record."""
        self.accesses += change.accesses
        if change.rho is not None and change.read is not None and len(change.read):
            self.steps.append((change.rho, change.read))

    @property
    def most(self) -> int:
        """The largest number of rows that one element read."""
        return max([int(read.max()) for _, read in self.steps], default=0)

    @property
    def largest_step(self) -> float:
        """The largest step of all elements."""
        return max((float(rho.max()) for rho, _ in self.steps), default=1.0)

    @property
    def smallest_median(self) -> float:
        """The smallest median of the steps of a change; most often there is one step for all."""
        middle = [float(rho[0] if len(rho) == 1 else np.median(rho)) for rho, _ in self.steps]
        return min(middle, default=1.0)

    @property
    def every_step(self) -> Array:
        """The step of every element, or one number if it is the same for all."""
        alike = {float(rho[0]) if len(rho) == 1 else None for rho, _ in self.steps}
        if len(alike) <= 1 and None not in alike:
            return np.array([*alike] or [1.0])
        return np.concatenate([np.broadcast_to(rho, len(read)) for rho, read in self.steps])
