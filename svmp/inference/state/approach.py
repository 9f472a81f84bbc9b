"""How far q is from its limit, extrapolated from how fast it still moves.

Coordinate ascent approaches its limit geometrically. Let q move by P0 in L0 sweeps and by P1 in the
next L1. If each sweep moves it r times as far as the one before,

    P1 / P0 = r^L0 (1 - r^L1) / (1 - r^L0),        still to come = P1 r^L1 / (1 - r^L1).

Distances are in sds, of the means and parameters in visible.py; the table or variable with the most
still to come counts. The bound gives a second estimate: if it will rise by G nats, nothing is
farther than sqrt(2 G) posterior sds from its limit, where the posterior is Gaussian. It is enough
if one of the two is small.

q is read at sweeps 1, 2, 3 and so on, and from the tenth at every tenth part of the sweeps so far:
that costs little time, and a long run is judged by long stretches. The last two stretches are
compared with the two before, and with each other. A run has converged when what is still to come
has been less than NEAR over the last third of its sweeps, and nothing grows.

A bound whose gains grow escapes from a plateau. This begins where no mean of a row shows it, as in
factors that are 0. It counts if the bound would gain a nat a sweep, were its gains to keep growing
for as many sweeps as there were so far. A run continues while the last stretch has such growth. If
the stretch before it had it too, earlier readings near the limit no longer count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from svmp.families.family import Array
from svmp.inference.state.visible import Seen

NEAR = 0.03
"""A run has converged when less than this is still to come, in sds."""
STRETCH = 1.1
"""Ratio of the numbers of sweeps at which q is read."""
AGAIN = 1.5
"""How many times as many sweeps confirm what was first seen to be near."""
KEPT = 4
"""Stretches that are remembered: the last two are compared with the two before."""
STILL = 1e-6
"""Movements of less than this many sds are rounding."""
GROWS = 0.02
"""Smallest growth of the logarithm of a speed that counts."""
NOISE = 3.0
"""Gains of up to this many times what the bound has lately fallen by are rounding too: the squares
of values far from 0 leave few digits of a bound."""
ROUNDING = 1e-12
"""Gains of the bound of less than this, relative to its size, are rounding."""


@dataclass
class Approach:
    """How q has moved, over the last stretches between readings.

    Attributes
    ----------
    sweeps, read
        Number of sweeps so far, and at the last reading.
    near
        Sweep since which all readings have found q near its limit; 0 if the last has not.
    remaining
        What was still to come at the last reading, in sds.
    bound
        The bound at the last reading; NaN if it was not computed there.
    lengths, gains
        Sweeps in each stretch, and what the bound gained in it.
    moved
        By table or variable, how far it moved in each stretch.
    last
        The last reading.
    """

    sweeps: int = 0
    read: int = 0
    near: int = 0
    remaining: float = math.inf
    bound: float = math.nan
    lengths: list[int] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    moved: dict[str, list[float]] = field(default_factory=dict)
    last: Seen = field(default_factory=dict)

    @property
    def is_due(self) -> bool:
        """Whether q is to be read after this sweep."""
        return self.sweeps >= max(self.read + 1, math.ceil(STRETCH * self.read - 1e-9))

    def restart(self) -> None:
        """Forget how q has moved, after it was set back."""
        self.near, self.remaining, self.bound = 0, math.inf, math.nan
        for kept in (self.lengths, self.gains, self.moved, self.last):
            kept.clear()

    def add(
        self,
        seen: Seen,
        bound: float,
        distance: Callable[[str, Array, Array], float],
        traded: Collection[str],
    ) -> bool:
        """Add a reading; return whether q has converged.

        Parameters
        ----------
        seen, bound
            The reading, and the bound, or NaN.
        distance
            Distance between two readings of a table or a variable.
        traded
            Variables that are seen through rows only, so that their distances do not count.
        """
        if {n: a.shape for n, a in seen.items()} != {n: a.shape for n, a in self.last.items()}:
            self.restart()
        else:
            self.lengths.append(self.sweeps - self.read)
            self.gains.append(bound - self.bound)
            for name, now in seen.items():
                self.moved.setdefault(name, []).append(distance(name, now, self.last[name]))
            del self.lengths[:-KEPT]
            for kept in (self.gains, *self.moved.values()):
                del kept[:-KEPT]
        self.last, self.bound, self.read = seen, bound, self.sweeps
        if not self.lengths:
            return False
        judged = [moved for name, moved in self.moved.items() if name not in traded]
        still = all(moved[-1] <= STILL for moved in self.moved.values())
        moving = [moved for moved in judged if moved[-1] > STILL]
        self.remaining = max((self.to_come(moved) for moved in moving), default=0.0)
        self.remaining = min(self.remaining, self._bound_far(self.gains, bound))
        known = math.isfinite(sum(self.gains))
        watched = [self.gains] if known else [*self.moved.values()]
        least = max(STILL, -NOISE * min(self.gains)) if known else STILL
        escapes = max((self.escapes(gained, least) for gained in watched), default=0)
        if self.remaining > NEAR or escapes > 1:
            self.near = 0
            return False
        self.near = self.near or self.sweeps
        confirmed = self.sweeps >= max(self.near + 1, AGAIN * self.near)
        lately = max((self.to_come(moved[-2:]) for moved in moving), default=0.0)
        lately = min(lately, self._bound_far(self.gains[-2:], bound))
        return still or (confirmed and lately <= NEAR and not escapes)

    def _bound_far(self, gains: list[float], bound: float) -> float:
        """Return how far the limit is by what the bound gains, in sds of the posterior."""
        if not gains[-1] > ROUNDING * abs(bound):
            return math.inf
        return math.sqrt(2 * self.to_come(gains))

    def to_come(self, moved: list[float]) -> float:
        """Return how much is still to come of what was moved, or gained, in each stretch."""
        half = len(moved) // 2
        if half == 0:
            return math.inf
        first, then = slice(-2 * half, -half), slice(-half, None)
        lengths = sum(self.lengths[first]), sum(self.lengths[then])
        return still_to_come(sum(moved[first]), sum(moved[then]), *lengths)

    def escapes(self, gained: list[float], least: float = STILL) -> int:
        """Return in how many of the last stretches something grew so fast as to be large soon.

        Less than `least` is rounding.
        """
        count, lengths = 0, self.lengths
        for i in range(len(gained) - 1, 0, -1):
            if min(gained[i - 1 : i + 1]) <= least:
                break
            speed = math.log(gained[i] / lengths[i])
            growth = speed - math.log(gained[i - 1] / lengths[i - 1])
            between = (lengths[i] + lengths[i - 1]) / 2
            if not (growth > GROWS and speed + self.sweeps * growth / between > 0):
                break
            count += 1
        return count


def still_to_come(before: float, then: float, sweeps: int, next_sweeps: int) -> float:
    """Return what is still to come after two stretches, if movements shrink geometrically.

    >>> still_to_come(1 + 0.5, 0.25 + 0.125, 2, 2)
    0.125
    >>> still_to_come(1.0, 1.1, 1, 1)
    inf
    """
    rate = rate_of(before, then, sweeps, next_sweeps)
    if not rate < 1:
        return math.inf
    left = rate**next_sweeps
    return then * left / (1 - left)


def rate_of(before: float, then: float, sweeps: int, next_sweeps: int) -> float:
    """Return the rate at which movements shrink from one sweep to the next; 1 if they do not.

    >>> round(rate_of(1 + 0.5, 0.25 + 0.125 + 0.0625, 2, 3), 12)
    0.5
    """
    shrinks = then * sweeps < before * next_sweeps  # not if one is NaN
    if not (0 < then < math.inf and 0 < before < math.inf and shrinks):
        return 1.0
    if sweeps == next_sweeps:
        return float((then / before) ** (1 / sweeps))
    low, high = 0.0, 1.0
    for _ in range(50):  # more would round rate to 1
        rate = (low + high) / 2
        ratio = rate**sweeps * (1 - rate**next_sweeps) / (1 - rate**sweeps)
        low, high = (rate, high) if ratio < then / before else (low, rate)
    return (low + high) / 2
