"""Draws of rows without replacement, in a compiled loop or in NumPy: the same rows in both.

The algorithm is that of kernels/machine/streams.py: each element has its own SplitMix64 generator.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from svmp.inference.loops import loops_in_use
from svmp.kernels.machine import streams
from svmp.kernels.machine.streams import GOLDEN, LINEAR_SEARCH, STEP
from svmp.network.grid import Ints

Bits = NDArray[np.uint64]
FEW = 16
"""Elements up to this number are drawn one by one, where all of their children are passed."""
MASK = 2**64 - 1


def sample_each(
    seed: int, iteration: int, variable: int, elements: Ints, children: Ints, take: Ints
) -> Ints:
    """Return `take` distinct numbers below `children` for each element, concatenated."""
    how = streams.sample_each if loops_in_use() else plain_sample_each
    return np.asarray(how(seed, iteration, variable, elements, children, take))


def plain_sample_each(
    seed: int, iteration: int, variable: int, elements: Ints, children: Ints, take: Ints
) -> Ints:
    """Return the same without a compiled loop."""
    key = _mix(_bits(seed) + GOLDEN)
    key = _mix(key + _bits(iteration) * GOLDEN)
    key = _mix(key + _bits(variable + 1) * GOLDEN)
    states = _mix(key + np.asarray(elements).astype(np.uint64) * GOLDEN)
    ends = np.cumsum(take)
    begins, out = ends - take, np.empty(int(take.sum()), dtype=np.int64)
    whole = take >= children
    floyd = ~whole & ((take <= LINEAR_SEARCH) | (take * take <= STEP * children))
    for first, count in zip(begins[whole], children[whole], strict=True):
        out[first : first + count] = np.arange(count)
    some = np.flatnonzero(floyd)
    _floyd(states[some], children[some], take[some], begins[some], out)
    some = np.flatnonzero(~whole & ~floyd)
    if len(some) > FEW:
        _select(states[some], children[some], take[some], begins[some], out)
    else:
        for each in some:
            _select_one(states[each], int(children[each]), out[begins[each] : ends[each]])
    return out


def _floyd(states: Bits, children: Ints, take: Ints, begins: Ints, out: Ints) -> None:
    """Floyd's algorithm, draw by draw, for all elements at once."""
    order = np.argsort(-take, kind="stable")
    states, children, take, begins = states[order], children[order], take[order], begins[order]
    picked = np.empty((len(take), int(take.max(initial=0))), dtype=np.int64)
    for i in range(picked.shape[1]):
        active = int(np.searchsorted(-take, -i, side="left"))  # those that take more than i
        top = children[:active] - take[:active] + i
        states = states + GOLDEN
        pick = _below(_mix(states[:active]), top + 1)
        again = (picked[:active, :i] == pick[:, None]).any(axis=1)
        picked[:active, i] = np.where(again, top, pick)
        out[begins[:active] + i] = picked[:active, i]


def _select(states: Bits, children: Ints, take: Ints, begins: Ints, out: Ints) -> None:
    """Selection sampling, child by child, for all elements at once."""
    kept = np.zeros(len(take), dtype=np.int64)
    for i in range(int(children.max())):
        states = states + GOLDEN
        left = np.maximum(children - i, 1)
        keep = (_below(_mix(states), left) < take - kept) & (kept < take)
        out[begins[keep] + kept[keep]] = i
        kept += keep


def _select_one(state: np.uint64, children: int, out: Ints) -> None:
    """Selection sampling for one element."""
    steps = np.arange(1, children + 1, dtype=np.uint64)
    draws = _below(_mix(state + steps * GOLDEN), children - np.arange(children))
    kept, take = 0, len(out)
    for i, draw in enumerate(draws.tolist()):
        if draw < take - kept:
            out[kept] = i
            kept += 1
            if kept == take:
                return


def _bits(number: int) -> Bits:
    """Return the last 64 bits of a whole number, as an array: these wrap without a warning."""
    return np.array([int(number) & MASK], dtype=np.uint64)


def _mix(x: Bits) -> Bits:
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _below(bits: Bits, bound: Ints) -> Ints:
    """Map 64 random bits to integers below a bound, by multiplication."""
    limit = bound.astype(np.uint64)
    high, low = bits >> np.uint64(32), bits & np.uint64(0xFFFFFFFF)
    found = (high * limit + ((low * limit) >> np.uint64(32))) >> np.uint64(32)
    return found.astype(np.int64)
