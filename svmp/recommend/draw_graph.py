"""Random graphs: for each user the items that it took, and others that it may have considered.

The others are drawn with odds that are given for each item, without repeats and none of those
taken. A draw depends on nothing but (seed, iteration, user).
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
"""How often an item is drawn anew that is there already, on average, before any other will do."""


class Odds(NamedTuple):
    """Walker's alias table: column i is item i with probability `keep[i]`, else `alias[i]`."""

    keep: Array
    alias: NDArray[np.int32]


@jit
def odds(weights: Array) -> Odds:
    """Make the table from which items are drawn with odds that are proportional to weights.

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
    for i in range(few):  # what rounding has left over
        keep[small[i]] = 1
    for i in range(many):
        keep[large[i]] = 1
    return Odds(keep, alias)


@bare
def add_others(state: np.uint64, table: Odds, seen: NDArray[np.int64], mark: int, out: Any) -> None:
    """Fill `out` with items that are not marked as seen, marking them."""
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
        while seen[pick] == mark:  # as good as all that can be drawn are there
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
    """Write the items of each user: those taken first, then others, as many as there is room.

    Parameters
    ----------
    taken
        How many users the threads have taken.
    seed, iteration
        What the draw depends on.
    table
        The odds of each item.
    own, items
        User m took `items[own[m] : own[m + 1]]`, some perhaps more than once.
    begin, out
        User m has `out[begin[m] : begin[m + 1]]`, with room for fewer others than are left.
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
