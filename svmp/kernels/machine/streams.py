"""Random draws that depend only on (seed, iteration, variable, element).

Each element has its own SplitMix64 generator, seeded with a hash of those four numbers, so the
draws are the same in any order, on any number of threads, and in resumed runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmp.kernels.machine.compiling import bare, shared
from svmp.network.grid import Ints

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LINEAR_SEARCH = 24
"""Up to this many draws, searching them costs less than a pass over all children."""
STEP = 4
"""Comparisons of that search in the time of one step of that pass."""


@bare
def mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@bare
def stream_key(seed: int, iteration: int, variable: int) -> np.uint64:
    """Return the key that all elements of one variable share in one iteration."""
    key = mix(np.uint64(seed) + GOLDEN)
    key = mix(key + np.uint64(iteration) * GOLDEN)
    return mix(key + np.uint64(variable + 1) * GOLDEN)


@bare
def below(state: np.uint64, bound: int) -> Any:
    """Map 64 random bits to an integer below a bound, by multiplication."""
    high = np.uint64(state >> np.uint64(32))
    low = state & np.uint64(0xFFFFFFFF)
    limit = np.uint64(bound)
    return np.int64((high * limit + ((low * limit) >> np.uint64(32))) >> np.uint64(32))


@bare
def sample(key: np.uint64, element: int, children: int, take: int, out: Ints) -> None:
    """Write `take` distinct numbers below `children` to `out`, every set equally likely."""
    state = mix(key + np.uint64(element) * GOLDEN)
    if take >= children:
        for i in range(children):
            out[i] = i
    elif take <= LINEAR_SEARCH or take * take <= STEP * children:  # Floyd's algorithm
        for i in range(take):
            top = children - take + i
            state += GOLDEN
            pick = below(mix(state), top + 1)
            for j in range(i):
                if out[j] == pick:
                    pick = top
                    break
            out[i] = pick
    else:  # selection sampling: keep each child with probability (still to take) / (still to come)
        kept = 0
        for i in range(children):
            state += GOLDEN
            if below(mix(state), children - i) < take - kept:
                out[kept] = i
                kept += 1
                if kept == take:
                    break


@shared
def sample_each(
    seed: int, iteration: int, variable: int, elements: Ints, children: Ints, take: Ints
) -> Ints:
    """Return `take` distinct numbers below `children` for each element, concatenated."""
    key = stream_key(seed, iteration, variable)
    out = np.empty(take.sum(), dtype=np.int64)
    start = 0
    for i in range(len(elements)):
        end = start + take[i]
        sample(key, elements[i], children[i], take[i], out[start:end])
        start = end
    return out
