"""Loops for mixtures of Normals: z_r ~ Categorical(w), x_r ~ Normal(mu_z, tau_z) in D dimensions.

Row r comes from component k with probability proportional to exp(l_k), where

    l_k = c_k - (x_r - m_k)^T T_k (x_r - m_k) / 2,    m_k = E[mu_k],    T_k = E[tau_k],

and all that the rest of the network needs are, for each k, the sums over rows of these
probabilities, times 1, x_r - m_k and its square. Tiles of rows are transposed, so that the inner
loops run over rows and are vectorised; there is no array of rows by components. Blocks of rows have
sums of their own, which are added in order: the same bits on any number of threads. The plain
version is network/conditional.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import claim, jit, shared
from svmp.kernels.machine.special import exp, log
from svmp.network.grid import Ints

TILE = 128
"""Rows of a tile; the tile and its probabilities stay in the cache."""
BLOCK = 16 * TILE
"""Rows of a block."""


class Components(NamedTuple):
    """c_k, m_k and a root of T_k of each component: a lower triangle, or the diagonal's."""

    constant: Array
    mean: Array
    root: Array


# Arrays are passed whole, with the number of rows in use: a slice would not be known to be
# contiguous, and loops over it would not be vectorised.


@jit
def normalise(logits: Array, rows: int, top: Array, total: Array) -> float:
    """Turn the logits of each row into probabilities; return the sum of their log-sum-exps."""
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
    for b in range(rows):
        total[b] = 1 / total[b]
    for k in range(len(logits)):
        for b in range(rows):
            logits[k, b] *= total[b]
    return evidence


@jit
def subtract(tile: Array, rows: int, mean: Array, out: Array) -> None:
    """Write x - m."""
    for i in range(len(tile)):
        for b in range(rows):
            out[i, b] = tile[i, b] - mean[i]


@jit
def distance(apart: Array, rows: int, root: Array, white: Array, out: Array) -> None:
    """Write (x - m)^T T (x - m) of each row, given a root of T: a lower triangle or a diagonal."""
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
def add_shares(
    apart: Array, rows: int, share: Array, times: Array, first: Array, second: Array
) -> float:
    """Add the probabilities times x - m, and times its square: the lower triangle or the diagonal.

    Return the sum of the probabilities.
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
def write_logits(
    taken: Ints, x: Array, rows: Ints, components: Components, places: Ints, out: Array
) -> None:
    """Add l_k of each row to a line of an array; `places` says which."""
    constant, mean, root = components
    many, size = mean.shape
    tile, apart = np.empty((size, TILE)), np.empty((size, TILE))
    some, white = np.empty(TILE), np.empty(TILE)
    start = claim(taken, TILE)
    while start < len(rows):
        count = min(TILE, len(rows) - start)
        for b in range(count):
            for i in range(size):
                tile[i, b] = x[rows[start + b], i]
        for k in range(many):
            subtract(tile, count, mean[k], apart)
            distance(apart, count, root[k], white, some)
            for b in range(count):
                out[places[start + b], k] += constant[k] - 0.5 * some[b]
        start = claim(taken, TILE)


@shared
def read_shares(
    taken: Ints,
    x: Array,
    rows: Ints,
    mean: Array,
    given: Array,
    total: Array,
    first: Array,
    second: Array,
) -> None:
    """Write the sums of each block, as `read_rows`, for probabilities that are given by row."""
    many, size = mean.shape
    tile, apart = np.empty((size, TILE)), np.empty((size, TILE))
    shares, some = np.empty((many, TILE)), np.empty(TILE)
    block = claim(taken, 1)
    while block < len(total):
        for start in range(block * BLOCK, min(len(rows), (block + 1) * BLOCK), TILE):
            count = min(TILE, len(rows) - start)
            for b in range(count):
                row = rows[start + b]
                for i in range(size):
                    tile[i, b] = x[row, i]
                for k in range(many):
                    shares[k, b] = given[row, k]
            for k in range(many):
                subtract(tile, count, mean[k], apart)
                total[block, k] += add_shares(
                    apart, count, shares[k], some, first[block, k], second[block, k]
                )
        block = claim(taken, 1)


@shared
def read_rows(
    taken: Ints,
    x: Array,
    rows: Ints,
    components: Components,
    total: Array,
    first: Array,
    second: Array,
    evidence: Array,
) -> None:
    """Write the sums of each block: of probabilities, times x - m and its square; the evidence."""
    constant, mean, root = components
    many, size = mean.shape
    tile, apart = np.empty((size, TILE)), np.empty((size, TILE))
    shares = np.empty((many, TILE))
    some, more = np.empty(TILE), np.empty(TILE)
    block = claim(taken, 1)
    while block < len(evidence):
        for start in range(block * BLOCK, min(len(rows), (block + 1) * BLOCK), TILE):
            count = min(TILE, len(rows) - start)
            for b in range(count):
                for i in range(size):
                    tile[i, b] = x[rows[start + b], i]
            for k in range(many):
                subtract(tile, count, mean[k], apart)
                distance(apart, count, root[k], some, shares[k])
                for b in range(count):
                    shares[k, b] = constant[k] - 0.5 * shares[k, b]
            evidence[block] += normalise(shares, count, some, more)
            for k in range(many):
                subtract(tile, count, mean[k], apart)
                total[block, k] += add_shares(
                    apart, count, shares[k], some, first[block, k], second[block, k]
                )
        block = claim(taken, 1)
