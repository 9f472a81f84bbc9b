"""E[mu] and E[mu^2] of rows, and the losses of the rows of each key.

A loss is E[(y - mu)^2], which the bound and the noise need, or minus the expected log density of a
Bernoulli with a logit. The plain versions are network/linear.py and the factors.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.machine.special import exp
from svmp.kernels.multilinear.terms import BLOCK, LINE, LoopRows, Mean, moments_of
from svmp.network.grid import Ints


@shared
def row_moments(taken: Ints, rows: LoopRows, mean: Mean, out: Array) -> None:
    """Write E[mu] and E[mu^2] of each row."""
    scratch, found = np.empty(2 * mean.width.max()), np.empty((2, BLOCK))
    first = claim(taken, BLOCK)
    while first < len(out):
        count = min(BLOCK, len(out) - first)
        moments_of(mean, rows, -1, 0, first, count, found, scratch, scratch)
        for i in range(count):
            out[first + i, 0] = found[0, i]
            out[first + i, 1] = found[1, i] + found[0, i] * found[0, i]
        first = claim(taken, BLOCK)


@bare
def loss(rows: LoopRows, e: int, mean: float, variance: float) -> float:
    """E[(y - mu)^2] of a row; for a Bernoulli, minus the lower bound of its log density."""
    y = rows.target[e]
    if rows.logit:
        xi = np.sqrt(mean * mean + variance)
        return 0.5 * xi + np.log1p(exp(-xi)) - (y - 0.5) * mean
    return (y - mean) ** 2 + variance


@bare
def loss_of(
    mean: Mean, rows: LoopRows, own: int, begin: int, end: int, found: Array, scratch: Array
) -> float:
    """Return the sum of the losses of some rows of a key."""
    total = 0.0
    for first in range(begin, end, LINE):
        count = min(LINE, end - first)
        moments_of(mean, rows, -1, own, first, count, found, scratch, scratch)
        for i in range(count):
            total += loss(rows, first + i, found[0, i], found[1, i])
    return total


@bare
def write_losses(
    taken: Ints, rows: LoopRows, mean: Mean, keys: Ints, found: Array, scratch: Array, out: Array
) -> None:
    """Write the losses of the keys that this thread claims."""
    start = claim(taken, CHUNK)
    while start < len(keys):
        for m in range(start, min(start + CHUNK, len(keys))):
            out[m] = loss_of(mean, rows, keys[m], rows.begin[m], rows.end[m], found, scratch)
        start = claim(taken, CHUNK)


@shared
def losses(taken: Ints, rows: LoopRows, mean: Mean, keys: Ints, out: Array) -> None:
    """Write the sum of the losses of each key."""
    scratch, found = np.empty(2 * mean.width.max()), np.empty((2, LINE))
    write_losses(taken, rows, mean, keys, found, scratch, out)
