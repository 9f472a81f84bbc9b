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
from numba import prange

from svmp.families.family import Array
from svmp.kernels.special import exp, log
from svmp.kernels.topics import jit, parallel
from svmp.network.grid import Ints

TILE = 128
"""Rows that are taken together; their tile and their shares stay in the cache."""
BLOCK = 16 * TILE
"""Rows whose sums are added up before they join the others."""


@jit
def normalise(logits: Array) -> float:
    """Turn l into probabilities, column by column; return the summed logs of what they add to."""
    components, rows = logits.shape
    top, total = logits[0].copy(), np.zeros(rows)
    for k in range(1, components):
        for b in range(rows):
            top[b] = max(top[b], logits[k, b])
    for k in range(components):
        for b in range(rows):
            logits[k, b] = exp(logits[k, b] - top[b])
            total[b] += logits[k, b]
    evidence = 0.0
    for b in range(rows):
        evidence += top[b] + log(total[b])
        total[b] = 1 / total[b]
    for k in range(components):
        for b in range(rows):
            logits[k, b] *= total[b]
    return evidence


@jit
def take_away(tile: Array, mean: Array, out: Array) -> None:
    """Write x - m."""
    for i in range(len(tile)):
        for b in range(tile.shape[1]):
            out[i, b] = tile[i, b] - mean[i]


@jit
def distance(apart: Array, root: Array, white: Array, out: Array) -> None:
    """Write the square of each column times the root of a matrix: lower, or the diagonal's."""
    out[:] = 0.0
    full = root.shape[1] > 1
    for i in range(len(apart)):
        if full:
            white[:] = 0.0
            for j in range(i, len(apart)):
                for b in range(len(out)):
                    white[b] += root[j, i] * apart[j, b]
            for b in range(len(out)):
                out[b] += white[b] * white[b]
        else:
            for b in range(len(out)):
                out[b] += root[i, 0] * root[i, 0] * apart[i, b] * apart[i, b]


@jit
def add_up(apart: Array, share: Array, times: Array, first: Array, second: Array) -> None:
    """Add the shares times x - m, and times its square: the lower half, or the diagonal."""
    full = second.shape[1] > 1
    for i in range(len(apart)):
        linear = square = 0.0
        for b in range(len(share)):
            times[b] = share[b] * apart[i, b]
            linear += times[b]
            square += times[b] * apart[i, b]
        first[i] += linear
        second[i, i if full else 0] += square
        if full:
            for j in range(i):
                product = 0.0
                for b in range(len(share)):
                    product += times[b] * apart[j, b]
                second[i, j] += product


@parallel
def read_rows(
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
    for block in prange(len(evidence)):
        tile, apart = np.empty((size, TILE)), np.empty((size, TILE))
        shares, white, squares = np.empty((components, TILE)), np.empty(TILE), np.empty(TILE)
        for start in range(block * BLOCK, min(len(rows), (block + 1) * BLOCK), TILE):
            count = min(TILE, len(rows) - start)
            for b in range(count):
                for i in range(size):
                    tile[i, b] = x[rows[start + b], i]
            some, gap = tile[:, :count], apart[:, :count]
            for k in range(components):
                take_away(some, mean[k], gap)
                distance(gap, root[k], white[:count], squares[:count])
                for b in range(count):
                    shares[k, b] = constant[k] - 0.5 * squares[b]
            evidence[block] += normalise(shares[:, :count])
            for k in range(components):
                share = shares[k, :count]
                total[block, k] += share.sum()
                take_away(some, mean[k], gap)
                add_up(gap, share, white[:count], first[block, k], second[block, k])
