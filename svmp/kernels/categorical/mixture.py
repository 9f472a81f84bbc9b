"""The loops of a mixture of Normals: z_r ~ Categorical(w), x_r ~ Normal(mu_z, tau_z) in D numbers.

Row r comes from component k with probability proportional to exp(l_k), where

    l_k = c_k - (x_r - m_k)^T T_k (x_r - m_k) / 2,    m_k = E[mu_k],    T_k = E[tau_k],

and all that the rest of the network needs is, for each k, the sum over rows of these
probabilities, of them times x_r - m_k, and of them times its square. A tile of rows is taken
number by number, so that every loop runs over its rows; there is no array of rows by components.
Rows go by blocks of fixed size with sums of their own, which are then added in their order: the
same bits on any number of threads. The plain twin is network/conditional.py.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import claim, jit, shared
from svmp.kernels.machine.special import exp, log
from svmp.network.grid import Ints

TILE = 128
"""Rows that are taken together; their tile and their shares stay in the cache."""
BLOCK = 16 * TILE
"""Rows whose sums are added up before they join the others."""


# Arrays are passed whole, with the rows in use: the compiler must see that they are contiguous.


@jit
def normalise(logits: Array, rows: int, top: Array, total: Array) -> float:
    """Turn l into probabilities, column by column; return the summed logs of what they add to."""
    top[:] = logits[0]
    total[:] = 0.0
    for k in range(1, len(logits)):
        for b in range(rows):
            top[b] = max(top[b], logits[k, b])
    for k in range(len(logits)):
        for b in range(rows):
            logits[k, b] = exp(logits[k, b] - top[b])
            total[b] += logits[k, b]
    evidence = 0.0
    for b in range(rows):
        evidence += top[b] + log(total[b])
        total[b] = 1 / total[b]
    for k in range(len(logits)):
        for b in range(rows):
            logits[k, b] *= total[b]
    return evidence


@jit
def take_away(tile: Array, rows: int, mean: Array, out: Array) -> None:
    """Write x - m."""
    for i in range(len(tile)):
        for b in range(rows):
            out[i, b] = tile[i, b] - mean[i]


@jit
def distance(apart: Array, rows: int, root: Array, white: Array, out: Array) -> None:
    """Write the square of each column times the root of a matrix: lower, or the diagonal's."""
    out[:] = 0.0
    full = root.shape[1] > 1
    for i in range(len(apart)):
        if full:
            a = root[i, i]
            for b in range(rows):
                white[b] = a * apart[i, b]
            for j in range(i + 1, len(apart)):
                a = root[j, i]
                for b in range(rows):
                    white[b] += a * apart[j, b]
        else:
            a = root[i, 0]
            for b in range(rows):
                white[b] = a * apart[i, b]
        for b in range(rows):
            out[b] += white[b] * white[b]


@jit
def add_up(
    apart: Array, rows: int, share: Array, times: Array, first: Array, second: Array
) -> float:
    """Add the shares times x - m, and times its square: the lower half, or the diagonal.

    Return the sum of the shares.
    """
    full = second.shape[1] > 1
    for i in range(len(apart)):
        linear = square = 0.0
        for b in range(rows):
            times[b] = share[b] * apart[i, b]
            linear += times[b]
            square += times[b] * apart[i, b]
        first[i] += linear
        second[i, i if full else 0] += square
        if full:
            for j in range(i):
                product = 0.0
                for b in range(rows):
                    product += times[b] * apart[j, b]
                second[i, j] += product
    total = 0.0
    for b in range(rows):
        total += share[b]
    return total


@shared
def read_rows(
    taken: Ints,
    x: Array,
    rows: Ints,
    constant: Array,
    mean: Array,
    root: Array,
    total: Array,
    first: Array,
    second: Array,
    evidence: Array,
) -> None:
    """Add up the rows of each block: their shares, times x - m and its square, and the evidence."""
    components, size = mean.shape
    tile, apart = np.empty((size, TILE)), np.empty((size, TILE))
    shares = np.empty((components, TILE))
    some, more = np.empty(TILE), np.empty(TILE)
    block = claim(taken, 1)
    while block < len(evidence):
        for start in range(block * BLOCK, min(len(rows), (block + 1) * BLOCK), TILE):
            count = min(TILE, len(rows) - start)
            for b in range(count):
                for i in range(size):
                    tile[i, b] = x[rows[start + b], i]
            for k in range(components):
                take_away(tile, count, mean[k], apart)
                distance(apart, count, root[k], some, shares[k])
                for b in range(count):
                    shares[k, b] = constant[k] - 0.5 * shares[k, b]
            evidence[block] += normalise(shares, count, some, more)
            for k in range(components):
                take_away(tile, count, mean[k], apart)
                total[block, k] += add_up(
                    apart, count, shares[k], some, first[block, k], second[block, k]
                )
        block = claim(taken, 1)
