"""E[mu] and E[mu^2] of rows, and the losses of the rows of each key.

A loss is E[(y - mu)^2], which the bound and the noise need, or minus the expected log density of a
Bernoulli with a logit. The plain versions are network/means/linear.py and the factors.

Where mu_e = u . v_e with one u for all rows of the key, variances are not needed row by row:

    sum_e E[(y_e - mu_e)^2] = sum_e (y_e - E[u] . E[v_e])^2
        + sum_k (E[u_k^2] sum_e Var[v_ek] + Var[u_k] sum_e E[v_ek]^2),

so that a row costs one inner product and the two sums.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.machine.simd import EIGHT, accumulate8, broadcast8, fma8, load8, store8, sum8
from svmp.kernels.machine.special import exp
from svmp.kernels.multilinear.terms import (
    BLOCK,
    LINE,
    OWN,
    LoopRows,
    Mean,
    layout_of,
    moments_of,
    partner_of,
    place,
    widest,
)
from svmp.network.grid import Ints


@shared
def row_moments(taken: Ints, rows: LoopRows, mean: Mean, out: Array) -> None:
    """Write E[mu] and E[mu^2] of each row."""
    scratch, found = np.empty(2 * widest(mean)), np.empty((2, BLOCK))
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
def is_own_pair(mean: Mean, rows: LoopRows) -> bool:
    """Whether the mean is one plain dot product of the key's own operand and another."""
    if rows.logit or len(mean.width) != 1 or partner_of(mean, 0, 1) < 0:
        return False
    own = (mean.column[0] == OWN) + (mean.column[1] == OWN)
    return own == 1 and mean.width[0] % EIGHT == 0


@bare
def loss_of_pair(
    mean: Mean, rows: LoopRows, own: int, begin: int, end: int, places: Ints, scratch: Array
) -> float:
    """Return the sum of the losses of some rows of a key, where `is_own_pair`.

    The sums over the rows of a line stay in registers; inner products are kept as eight partial
    sums for each row, until all factors were read.
    """
    packed, width, eight_on = mean.packed, np.uintp(mean.width[0]), np.uintp(EIGHT)
    mine, other = layout_of(mean, 0, 0), layout_of(mean, 0, 1)
    if other.column == OWN:
        mine, other = other, mine
    at, one, total = place(mine, rows, own, begin), broadcast8(1.0), 0.0
    partial, squares, variances = scratch[0], scratch[1], scratch[2]
    for k in range(width):
        squares[k] = variances[k] = 0
    for first in range(begin, end, LINE):
        count = np.uintp(min(LINE, end - first))
        for i in range(count):
            places[i] = place(other, rows, own, first + i)
            store8(partial, i * eight_on, broadcast8(0.0))
        for k in range(np.uintp(0), width, eight_on):
            means, square, variance = load8(packed, at + k), broadcast8(0.0), broadcast8(0.0)
            for i in range(count):
                here, its = load8(packed, places[i] + k), i * eight_on
                store8(partial, its, fma8(means, here, load8(partial, its)))
                square = fma8(here, here, square)
                variance = fma8(one, load8(packed, places[i] + width + k), variance)
            accumulate8(squares, k, square)
            accumulate8(variances, k, variance)
        for i in range(count):
            expected = mean.intercept + sum8(load8(partial, i * eight_on))
            left = rows.target[np.uintp(first) + i] - expected
            total += left * left
    for k in range(width):
        m, variance = packed[at + k], packed[at + width + k]
        total += (m * m + variance) * variances[k] + variance * squares[k]
    return total


@bare
def write_losses(
    taken: Ints,
    rows: LoopRows,
    mean: Mean,
    keys: Ints,
    found: Array,
    scratch: Array,
    places: Ints,
    sums: Array,
    out: Array,
) -> None:
    """Write the losses of the keys that this thread claims."""
    own_pair = is_own_pair(mean, rows)
    start = claim(taken, CHUNK)
    while start < len(keys):
        for m in range(start, min(start + CHUNK, len(keys))):
            part = (keys[m], rows.begin[m], rows.end[m])
            if own_pair and part[2] > part[1]:
                out[m] = loss_of_pair(mean, rows, *part, places, sums)
            else:
                out[m] = loss_of(mean, rows, *part, found, scratch)
        start = claim(taken, CHUNK)


@shared
def losses(taken: Ints, rows: LoopRows, mean: Mean, keys: Ints, out: Array) -> None:
    """Write the sum of the losses of each key."""
    scratch, found = np.empty(2 * widest(mean)), np.empty((2, LINE))
    places, sums = np.empty(LINE, np.uintp), np.empty((3, max(LINE * EIGHT, widest(mean))))
    write_losses(taken, rows, mean, keys, found, scratch, places, sums, out)
