"""Never a broken posterior: divergence is found in the iteration in which it happens.

A natural parameter outside its domain is refused where it arises. A run can also run away inside
the domain: means grow until the arithmetic ends. Its sign is the expected log density of a few
rows, watched at every iteration: one that falls far below where it started does not come back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp.errors import ImproperError
from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.variable import Variable

PROBE = 512
"""Rows of each observed table that are watched."""
FAR = 100.0
"""How many times worse than the start a row may be expected to be before it counts as lost."""


@dataclass(frozen=True)
class Alarm:
    """A divergence: where it showed first, if it can be told."""

    variable: str
    index: tuple[int, ...]
    reason: str


@dataclass
class Guard:
    """Watches a run, and keeps the last q that was sound, unless the algorithm is safe."""

    network: Network
    rows: dict[str, Ints]
    safe: bool = False
    start: float = -np.inf
    sound: Beliefs | None = None

    @classmethod
    def of(cls, network: Network, q: Beliefs, safe: bool = False) -> Guard:
        """Begin to watch a run at its start."""
        rows = {}
        for index, (name, variable) in enumerate(network.observed.items()):
            rng = np.random.default_rng([index, variable.count])
            chosen = rng.choice(variable.count, min(PROBE, variable.count), replace=False)
            rows[name] = np.sort(chosen if variable.present is None else variable.present[chosen])
            rows[name].flags.writeable = False
        guard = cls(network, rows, safe)
        guard.start = guard.probe(q)
        guard.keep(q)
        return guard

    def probe(self, q: Beliefs, fresh: dict[str, Ints] | None = None) -> float:
        """Return the mean expected log density of the watched rows.

        Where groups are drawn, those of `fresh` are watched instead: the variables of other groups
        may be far from what the global ones have come to say, though nothing ran away.
        """
        total = count = 0.0
        few = {n: rows[:: 1 + len(rows) // (PROBE + 1)] for n, rows in (fresh or {}).items()}
        for name, rows in (self.rows | few).items():
            density = self.network.observed[name].conditional.log_density(q, rows)
            total, count = total + float(density.sum()), count + len(rows)
        return total / count if count else self.start

    def keep(self, q: Beliefs) -> None:
        """Remember q as sound, unless it is worse than the start and so perhaps on its way out."""
        if not self.safe and (self.sound is None or self.probe(q) >= self.start):
            self.sound = q.copy()

    def check(self, q: Beliefs, fresh: dict[str, Ints] | None = None) -> Alarm | None:
        """Return an alarm if the run has run away."""
        with np.errstate(all="ignore"):
            now = self.probe(q, fresh)
        if np.isfinite(now) and now > self.start - FAR * (abs(self.start) + 1):
            return None
        variable, index = self.farthest(q)
        return Alarm(variable, index, "the rows became ever less likely")

    def alarm(self, error: ImproperError) -> Alarm:
        """Turn the refusal of a natural parameter into an alarm."""
        return Alarm(error.variable, error.index, "a natural parameter left its domain")

    def farthest(self, q: Beliefs) -> tuple[str, tuple[int, ...]]:
        """Return the element that moved most since q was sound, by its moments."""
        assert self.sound is not None
        worst, where = -1.0, (next(iter(q.natural)), 0)
        with np.errstate(all="ignore"):
            for name, moments in q.moments.items():
                if name in q.natural and len(moments):
                    moved = np.abs(moments - self.sound.moments[name]).max(axis=1)
                    moved = np.where(np.isfinite(moved), moved, np.inf)
                    if moved.max() > worst:
                        worst, where = float(moved.max()), (name, int(moved.argmax()))
        name, element = where
        return name, self.network.hidden[name].plate.locate(element)


def check_domain(variable: Variable, elements: Ints, natural: Array) -> None:
    """Refuse a natural parameter outside its domain, by variable and index."""
    sound = variable.family.at(elements).in_domain(natural)
    if not sound.all():
        position = int(np.flatnonzero(~sound)[0])
        where = variable.plate.locate(int(elements[position]))
        raise ImproperError(variable.name, where, type(variable.family).__name__, natural[position])
