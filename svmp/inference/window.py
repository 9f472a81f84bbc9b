"""Whether q is at rest: how far its averages over stretches of a run are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from svmp.families.family import Array
from svmp.kernels.machine.elements import moved_kl
from svmp.network.beliefs import Beliefs
from svmp.network.variable import Variable

SAMPLES = 32
"""Iterates of a stretch that its average is made of, at most: those between are hardly others."""


@dataclass
class Window:
    """Averages of q over stretches of the run, and how far apart two of them are.

    A stretch ends when its steps add up to 1: that is a sweep of full VB, and many iterations
    where steps are small, so that a run does not seem at rest because its steps are. Of those many
    some are averaged, at even distances.

    Attributes
    ----------
    clock
        Sum of the steps since the stretch began.
    count, total
        Iterates taken in since then, and the sum of their natural parameters.
    last, last_moments
        Averages of the stretch before, as natural parameters and as moments; at first, the start.
    moved
        How far the last two stretches were apart, in nats an element.
    """

    clock: float = 0.0
    count: int = 0
    total: dict[str, Array] = field(default_factory=dict)
    last: dict[str, Array] = field(default_factory=dict)
    last_moments: dict[str, Array] = field(default_factory=dict)
    moved: float = 0.0

    @classmethod
    def at(cls, q: Beliefs, names: list[str]) -> Window:
        """Begin at q, with the variables of these names."""
        natural, moments = ({n: a[n].copy() for n in names} for a in (q.natural, q.moments))
        return cls(last=natural, last_moments=moments)

    def pass_by(self, q: Beliefs, step: float, hidden: Mapping[str, Variable]) -> float | None:
        """Take in an iteration; return how far a stretch that ends with it is from the last one.

        That is the symmetrised KL between their averages, in nats an element:
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
        moved = math.fsum(  # the same in any order of the variables
            moved_kl(natural[name], moments[name], last, self.last_moments[name])
            for name, last in self.last.items()
        )
        self.clock, self.count = 0.0, 0
        self.total.clear()
        self.moved = max(moved, 0.0) / max(sum(map(len, self.last.values())), 1)
        return self.moved
