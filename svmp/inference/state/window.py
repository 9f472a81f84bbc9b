"""Whether q has converged: the distance between its averages over two stretches of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from svmp.families.family import Array
from svmp.inference.loops import loops_in_use
from svmp.kernels.machine.elements import moved_kl
from svmp.network.beliefs import Beliefs
from svmp.network.variable import Variable

BLOCK = 4096
"""Elements whose differences are in memory at a time, without a compiled loop."""
SAMPLES = 32
"""Most iterates in the average of a stretch: more of them would hardly differ."""


@dataclass
class Window:
    """Averages of q over stretches of the run, and how far apart two of them are.

    A stretch ends when its steps add up to 1: this is one sweep of full VB, but many iterations
    where steps are small, so that a run with small steps does not seem converged. Of many
    iterations some are averaged, at even distances.

    Attributes
    ----------
    clock
        Sum of the steps since the stretch began.
    count, total
        Number of iterates added since then, and the sum of their natural parameters.
    last, last_moments
        Averages of the previous stretch, as natural parameters and as moments; at first, the start.
    moved
        Distance between the last two stretches, in nats per element.
    """

    clock: float = 0.0
    count: int = 0
    total: dict[str, Array] = field(default_factory=dict)
    last: dict[str, Array] = field(default_factory=dict)
    last_moments: dict[str, Array] = field(default_factory=dict)
    moved: float = 0.0

    @classmethod
    def at(cls, q: Beliefs, names: list[str]) -> Window:
        """Return a window that starts at q, for the variables of these names."""
        natural, moments = ({n: a[n].copy() for n in names} for a in (q.natural, q.moments))
        return cls(last=natural, last_moments=moments)

    def add(self, q: Beliefs, step: float, hidden: Mapping[str, Variable]) -> float | None:
        """Add an iteration; if a stretch ends with it, return its distance from the last one.

        This is the symmetrised KL between their averages, in nats per element:
        KL(q || q') + KL(q' || q) = (lambda - lambda') . (m - m'), summed over all factors.
        """
        before, self.clock = self.clock, self.clock + step + 1e-12
        if int(self.clock * SAMPLES) == int(before * SAMPLES):
            return None
        self.count += 1
        ends = self.clock >= 1
        if ends and self.count == 1:
            return self._end(q.natural, q.moments)
        for name in self.last:
            if self.count == 1:
                self.total[name] = q.natural[name].copy()
            else:
                self.total[name] += q.natural[name]
        if not ends:
            return None
        average = {name: total / self.count for name, total in self.total.items()}
        return self._end(average, {n: hidden[n].family.moments(a) for n, a in average.items()})

    def _end(self, natural: Mapping[str, Array], moments: Mapping[str, Array]) -> float:
        distance = moved_kl if loops_in_use() else plain_moved_kl
        moved = math.fsum(  # the same in any order of the variables
            distance(natural[name], moments[name], last, self.last_moments[name])
            for name, last in self.last.items()
        )
        self.clock, self.count = 0.0, 0
        self.total.clear()
        self.moved = max(moved, 0.0) / max(sum(map(len, self.last.values())), 1)
        return self.moved


def plain_moved_kl(natural: Array, moments: Array, last: Array, last_moments: Array) -> float:
    """Return the symmetrised KL divergence of q from an earlier copy, then update the copy."""
    moved = 0.0
    for first in range(0, len(natural), BLOCK):
        some = slice(first, first + BLOCK)
        moved += float(np.vdot(natural[some] - last[some], moments[some] - last_moments[some]))
        last[some], last_moments[some] = natural[some], moments[some]
    return moved
