"""The n best items of every user one after another, with quotas and diversity.

Each item of a list is the one with the highest

    score - diversity * max(0, its highest similarity to the items before it),

among those of which no quota is full. This is maximal marginal relevance, with similar.py's
similarity and its weight in points of the score. Without diversity, and with at most one limited
value an item, no other list within the quotas has a higher total score (such lists are a matroid).

Penalties only grow along a list. So an item is compared at first with the penalty that it had when
it was last looked at, and its similarities are computed only if it might still be the best: that is
rare, and exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.kernels.machine.compiling import claim, jit, shared
from svmp.kernels.machine.threads import share
from svmp.recommend.side import Floats, Keys


class Quotas(NamedTuple):
    """Limits: the limited values of each item, -1 behind the last, and the limit of each value."""

    codes: NDArray[np.int32]
    limits: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Picker:
    """How lists are picked.

    Attributes
    ----------
    quotas
        How many items of one value a list may have.
    unit
        Vectors of length 1 of the items, whose inner products are similarities.
    diversity
        Points of the score that an item loses if there is one just like it before it.
    """

    quotas: Quotas
    unit: Floats
    diversity: float

    def pick(self, scores: Floats, n: int, begin: Keys, seen: Keys, places: Keys) -> None:
        """Write the places of the items of each row; those in `seen` are left out."""
        if n:
            weight = np.float32(self.diversity)
            rows = scores, begin, seen, places
            share(pick_rows, *rows, *self.quotas, self.unit, weight)


@jit
def pick_row(line, place, codes, limits, unit, weight, penalty, counted, used):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the places of the items of one row; the rest of `place` is not written."""
    penalty[:] = 0
    counted[:] = 0
    used[:] = 0
    for pick in range(len(place)):
        best, spot = np.float32(-np.inf), -1
        for column in range(len(line)):
            x = line[column]
            if x - penalty[column] <= best:
                continue
            full = False
            for k in range(codes.shape[1]):
                code = codes[column, k]
                full |= code >= 0 and used[max(code, 0)] >= limits[max(code, 0)]
            if full:
                line[column] = -np.inf  # for the rest of the list
                continue
            if weight > 0:
                for earlier in range(counted[column], pick):
                    other = place[earlier]
                    similarity = np.float32(0)
                    for k in range(unit.shape[1]):
                        similarity += unit[column, k] * unit[other, k]
                    penalty[column] = max(penalty[column], weight * similarity)
                counted[column] = pick
            if x - penalty[column] > best:
                best, spot = x - penalty[column], column
        if spot < 0:
            break
        place[pick] = spot
        line[spot] = -np.inf
        for k in range(codes.shape[1]):
            if codes[spot, k] >= 0:
                used[codes[spot, k]] += 1


@shared
def pick_rows(taken, scores, begin, seen, places, codes, limits, unit, weight):  # type: ignore[no-untyped-def] # pragma: no cover
    """Call `pick_row` for every row; row r leaves out `seen[begin[r]:begin[r + 1]]`."""
    items = scores.shape[1]
    penalty, counted = np.zeros(items, np.float32), np.zeros(items, np.int64)
    used = np.zeros(len(limits), np.int64)
    row = claim(taken, 1)
    while row < len(scores):
        line = scores[row]
        for e in range(begin[row], begin[row + 1]):
            line[seen[e]] = -np.inf
        pick_row(line, places[row], codes, limits, unit, weight, penalty, counted, used)
        row = claim(taken, 1)
