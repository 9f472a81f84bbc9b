"""Random graphs: the items that each user took, and negatives: others they may have considered.

Negatives are drawn without replacement from the items that the user did not take, with given odds
for each item. A draw depends only on (seed, iteration, user).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.kernels.machine.compiling import CHUNK, bare, claim, jit, shared
from svmp.kernels.machine.streams import GOLDEN, below, mix, stream_key
from svmp.network.grid import Ints

TRIES = 32
"""Average number of draws per negative; beyond it, the next item that is free is taken instead."""


class Odds(NamedTuple):
    """Walker's alias table: column i is item i with probability `keep[i]`, else `alias[i]`."""

    keep: Array
    alias: NDArray[np.int32]


@jit
def odds(weights: Array) -> Odds:
    """Return the table from which items are drawn with probabilities proportional to weights.

    >>> table = odds(np.array([1.0, 3.0]))
    >>> float(table.keep[0]), int(table.alias[0])
    (0.5, 1)
    """
    count = len(weights)
    keep, alias = weights * (count / weights.sum()), np.arange(count).astype(np.int32)
    small, large = np.empty(count, np.int64), np.empty(count, np.int64)
    few = many = 0
    for i in range(count):
        if keep[i] < 1:
            small[few] = i
            few += 1
        else:
            large[many] = i
            many += 1
    while few and many:
        few -= 1
        poor, rich = small[few], large[many - 1]
        alias[poor] = rich
        keep[rich] -= 1 - keep[poor]
        if keep[rich] < 1:
            many -= 1
            small[few] = rich
            few += 1
    for i in range(few):  # left over by rounding
        keep[small[i]] = 1
    for i in range(many):
        keep[large[i]] = 1
    return Odds(keep, alias)


@bare
def add_others(state: np.uint64, table: Odds, seen: NDArray[np.int64], mark: int, out: Any) -> None:
    """Fill `out` with items that are not marked as seen, and mark them."""
    items, left = len(table.keep), TRIES * len(out)
    for i in range(len(out)):
        pick = np.int64(0)
        while True:
            state += GOLDEN
            pick = below(mix(state), items)
            state += GOLDEN
            if np.float64(mix(state) >> np.uint64(11)) * 2.0**-53 >= table.keep[pick]:
                pick = np.int64(table.alias[pick])
            left -= 1
            if seen[pick] != mark or left < 0:
                break
        while seen[pick] == mark:  # almost all items that can be drawn have been drawn
            pick = (pick + 1) % items
        seen[pick] = mark
        out[i] = pick


@shared
def draw_graph(
    taken: Ints,
    seed: int,
    iteration: int,
    table: Odds,
    own: Ints,
    items: NDArray[np.int32],
    begin: Ints,
    out: NDArray[np.int32],
) -> None:
    """Write the items of each user: first those taken, then negatives.

    Parameters
    ----------
    taken
        Number of users that the threads have claimed.
    seed, iteration
        Seed of the draw.
    table
        Alias table of the items.
    own, items
        User m took `items[own[m] : own[m + 1]]`; an item may be repeated.
    begin, out
        `out[begin[m] : begin[m + 1]]` is filled for user m; there must be enough other items.
    """
    key, seen, users = stream_key(seed, iteration, 0), np.full(len(table.keep), -1), len(begin) - 1
    first = claim(taken, CHUNK)
    while first < users:
        for m in range(first, min(first + CHUNK, users)):
            those = items[own[m] : own[m + 1]]
            place = out[begin[m] : begin[m + 1]]
            for i in range(len(those)):
                seen[those[i]] = m
                place[i] = those[i]
            state = mix(key + np.uint64(m) * GOLDEN)
            add_others(state, table, seen, m, place[len(those) :])
        first = claim(taken, CHUNK)
