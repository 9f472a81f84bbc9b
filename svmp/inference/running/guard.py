"""The guard: detects divergence in the iteration in which it happens.

A natural parameter outside its domain is refused where it is computed. A run can also diverge
inside the domain: means grow until they overflow. This shows in the expected log density of a few
rows, which is computed at every iteration: once it falls far below its value at the start, it does
not recover. Most of these rows are drawn at random; some have the values farthest from the others,
and show when only a few elements diverge. Exact bounds, when they are computed, are checked too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from svmp.errors import ImproperError
from svmp.families.family import Array
from svmp.inference.state.state import Safety
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.variable import Variable

PROBE, FARTHEST = 512, 64
"""Numbers of rows watched in each observed table: at random, and with the farthest values."""
FAR = 100.0
"""Largest fall of the mean log density of rows, in units of 1 plus its size at the start."""


@dataclass(frozen=True)
class Alarm:
    """A divergence, and the element where it showed first."""

    variable: str
    index: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Guard:
    """Watches a run for divergence.

    Attributes
    ----------
    rows
        By table the rows that are watched: random ones, then those with the farthest values.
    """

    network: Network
    rows: dict[str, Ints]

    @classmethod
    def of(cls, network: Network, farthest: bool = True) -> Guard:
        """Choose the rows to watch, with or without those of the farthest values."""
        rows = {}
        for index, (name, variable) in enumerate(network.observed.items()):
            chosen = np.arange(variable.count)
            if variable.count > PROBE:
                rng = np.random.default_rng([index, variable.count])
                chosen = np.sort(rng.choice(variable.count, PROBE, replace=False))
            if farthest:
                chosen = np.concatenate([chosen, outliers(variable)])
            rows[name] = chosen if variable.present is None else variable.present[chosen]
        return cls(network, rows)

    def begin(self, q: Beliefs) -> Safety:
        """Return the record of a run at its start."""
        safety = Safety()
        safety.start = self.probe(q, safety)
        return safety

    def probe(self, q: Beliefs, safety: Safety, fresh: Mapping[str, Ints] | None = None) -> Array:
        """Return the mean expected log density of the random rows, and of the farthest.

        Where groups are drawn, those of `fresh` are watched instead: the variables of other groups
        may not yet agree with the global ones, though nothing has diverged.
        """
        total, count = np.zeros(2), np.zeros(2)
        few = {n: rows[:: 1 + len(rows) // (PROBE + 1)] for n, rows in (fresh or {}).items()}
        for name, rows in (self.rows | few).items():
            density = self.network.observed[name].conditional.log_density(q, rows)
            cut = len(rows) if name in few else PROBE
            for i, part in enumerate((density[:cut], density[cut:])):
                total[i] += part.sum()
                count[i] += len(part)
        return np.where(count > 0, total / np.maximum(count, 1), safety.start)

    def keep(self, q: Beliefs, safety: Safety) -> None:
        """Keep q as sound, unless it is worse than the start and so perhaps about to diverge."""
        if safety.sound is None or (self.probe(q, safety) >= safety.start).all():
            safety.sound = q.copy()

    def check(
        self, q: Beliefs, safety: Safety, fresh: Mapping[str, Ints] | None = None
    ) -> Alarm | None:
        """Return an alarm if the run has diverged."""
        with np.errstate(all="ignore"):
            now = self.probe(q, safety, fresh)
        return self.divergence(q, safety) if has_fallen(now, safety.start) else None

    def divergence(self, q: Beliefs, safety: Safety) -> Alarm:
        """Return the alarm of a run that has diverged."""
        return Alarm(*self.farthest(q, safety), "the rows became ever less likely")

    def alarm(self, error: ImproperError) -> Alarm:
        """Return the alarm for a natural parameter outside its domain."""
        return Alarm(error.variable, error.index, "a natural parameter left its domain")

    def farthest(self, q: Beliefs, safety: Safety) -> tuple[str, tuple[int, ...]]:
        """Return the element whose moments changed most since q was last sound."""
        assert safety.sound is not None
        worst, where = -1.0, (next(iter(q.natural)), 0)
        with np.errstate(all="ignore"):
            for name, moments in q.moments.items():
                if name in q.natural and len(moments):
                    moved = np.abs(moments - safety.sound.moments[name]).max(axis=1)
                    moved = np.where(np.isfinite(moved), moved, np.inf)
                    if moved.max() > worst:
                        worst, where = float(moved.max()), (name, int(moved.argmax()))
        name, element = where
        return name, self.network.hidden[name].plate.locate(element)


def has_fallen(now: Any, start: Any) -> bool:
    """Return whether a value fell so far below its start that the run has diverged."""
    return not np.all(np.isfinite(now) & (now > start - FAR * (np.abs(start) + 1)))


def outliers(variable: Variable) -> Ints:
    """Return the positions of the observed values that are farthest from their mean."""
    if variable.event_dims or variable.count <= PROBE or variable.family.nominal:
        return np.zeros(0, dtype=np.int64)
    values = variable.values.ravel().astype(np.float32, copy=False)
    apart = np.abs(values - np.float32(values.mean(dtype=np.float64)))
    return np.sort(np.argpartition(apart, -FARTHEST)[-FARTHEST:])
