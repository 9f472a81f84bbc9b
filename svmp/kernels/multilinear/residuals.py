"""What rows come to under a mean or logit: E[mu] and E[mu^2] of each, and the losses of each key.

A loss is E[(y - mu)^2], which the bound and the noise need, or minus the log density of a Bernoulli
with a logit. The plain twins are network/linear.py and the factors.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.machine.special import exp
from svmp.kernels.multilinear.terms import BLOCK, LINE, Mean, Rows, moments_of
from svmp.network.grid import Ints


@shared
def row_moments(taken: Ints, rows: Rows, mean: Mean, out: Array) -> None:
    """Write E[mu] and E[mu^2] of each row."""
    room, found = np.empty(2 * mean.width.max()), np.empty((2, BLOCK))
    first = claim(taken, BLOCK)
    while first < len(out):
        count = min(BLOCK, len(out) - first)
        moments_of(mean, rows, -1, 0, first, count, found, room, room)
        for i in range(count):
            out[first + i, 0] = found[0, i]
            out[first + i, 1] = found[1, i] + found[0, i] * found[0, i]
        first = claim(taken, BLOCK)


@bare
def loss(rows: Rows, e: int, mean: float, variance: float) -> float:
    """E[(y - mu)^2] of a row; of a Bernoulli, minus the bound of its log density."""
    y = rows.target[e]
    if rows.logit:
        xi = np.sqrt(mean * mean + variance)
        return 0.5 * xi + np.log1p(exp(-xi)) - (y - 0.5) * mean
    return (y - mean) ** 2 + variance


@bare
def loss_of(
    mean: Mean, rows: Rows, own: int, begin: int, end: int, found: Array, room: Array
) -> float:
    """Sum over some rows of a key of the squared residual, or of minus the log density."""
    total = 0.0
    for first in range(begin, end, LINE):
        count = min(LINE, end - first)
        moments_of(mean, rows, -1, own, first, count, found, room, room)
        for i in range(count):
            total += loss(rows, first + i, found[0, i], found[1, i])
    return total


@bare
def write_losses(
    taken: Ints, rows: Rows, mean: Mean, keys: Ints, found: Array, room: Array, out: Array
) -> None:
    """Write the losses of keys that no thread has taken yet, until none is left."""
    start = claim(taken, CHUNK)
    while start < len(keys):
        for m in range(start, min(start + CHUNK, len(keys))):
            out[m] = loss_of(mean, rows, keys[m], rows.begin[m], rows.end[m], found, room)
        start = claim(taken, CHUNK)


@shared
def losses(taken: Ints, rows: Rows, mean: Mean, keys: Ints, out: Array) -> None:
    """Sum over the rows of each key of the squared residual, or of minus the log density."""
    room, found = np.empty(2 * mean.width.max()), np.empty((2, LINE))
    write_losses(taken, rows, mean, keys, found, room, out)
