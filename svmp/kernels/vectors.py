"""The loops of a Normal whose mean is a sum of dot products of vectors with full covariances.

    mu_e = sum over terms t of c_te * sum_k prod over operands f of x_f[key_f(e)]_k

An element x_f[i] is an MvNormal of K entries; a bias is one of a single entry. Seen from it, a row
is mu_e = a_e . x + rest_e, and its message to (x, x x^T) is, with its precision w,

    (w E[a] (y - E[rest]),  -w E[a a^T] / 2).

Means and second moments are laid out as in multilinear.py, and are the diagonal of E[x x^T]. What
makes a covariance full stands beside them: the cross moments E[x_j x_k] of j < k. No array has a
line for each row. The plain twin is network/linear.py.

Moments are (elements, K + K^2) arrays of E[x] and E[x x^T], naturals are (tau mu, -tau / 2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.kernels.multilinear import (
    OWN,
    TILE,
    Mean,
    Rows,
    coefficient,
    inline,
    jit,
    parallel,
    product,
    rest,
    solve,
)
from svmp.network.grid import Ints


class Cross(NamedTuple):
    """The cross moments of all operands in one array, in the order of an upper triangle.

    Operand f at key i has K (K - 1) / 2 of them from `start[f] + K (K - 1) / 2 * i` on.
    """

    packed: NDArray[Any]
    start: Ints


@inline
def cross_place(
    mean: Mean, cross: Cross, rows: Rows, term: int, operand: int, own: int, e: int
) -> int:
    """Return where the cross moments of an operand at a row begin."""
    column, width = mean.column[operand], mean.width[term]
    key = own if column == OWN else rows.columns[column, e]
    return cross.start[operand] + width * (width - 1) // 2 * key


@inline
def add_cross(
    mean: Mean,
    cross: Cross,
    rows: Rows,
    term: int,
    skip: int,
    own: int,
    e: int,
    weight: float,
    room: Array,
    total: Array,
) -> None:
    """Add w E[a_j a_k] of j < k, with a the product of a term's operands but one."""
    c = coefficient(mean, rows, term, e)
    factor = room.dtype.type(weight * c * c)
    begin, end = mean.first[term], mean.first[term + 1]
    if end - begin == 2 and skip >= 0:
        at = cross_place(mean, cross, rows, term, begin + end - 1 - skip, own, e)
        for j in range(len(total)):
            total[j] += factor * cross.packed[at + j]
        return
    for j in range(len(total)):
        room[j] = factor
    for operand in range(begin, end):
        if operand != skip:
            at = cross_place(mean, cross, rows, term, operand, own, e)
            for j in range(len(total)):
                room[j] *= cross.packed[at + j]
    for j in range(len(total)):
        total[j] += room[j]


@parallel
def message_sums(
    term: int, operand: int, keys: Ints, rows: Rows, mean: Mean, cross: Cross
) -> Array:
    """Sum w E[a] (y - E[rest]), w E[a_k^2] and w E[a_j a_k] over the rows of each key.

    Rows are added up in the data's precision in small blocks, and the blocks in double.
    """
    width, widest = mean.width[term], mean.width.max()
    pairs, dtype = width * (width - 1) // 2, mean.packed.dtype
    weighted = len(rows.weight) > 1
    out = np.zeros((len(keys), 2 * width + pairs))
    for m in prange(len(keys)):
        own, last = keys[m], rows.end[m]
        slope, second, other = np.empty(width, dtype), np.empty(width, dtype), np.empty(widest)
        block, room = np.empty(2 * width + pairs, dtype), np.empty(pairs, dtype)
        for start in range(rows.begin[m], last, TILE):
            block[:] = 0
            for e in range(start, min(start + TILE, last)):
                weight = rows.weight[e if weighted else 0]
                product(mean, rows, term, operand, own, e, slope, second)
                residual = rows.target[e] - rest(mean, rows, term, own, e, other)
                pull = block.dtype.type(weight * residual)
                for k in range(width):
                    block[k] += pull * slope[k]
                    block[width + k] += weight * second[k]
                add_cross(
                    mean, cross, rows, term, operand, own, e, weight, room, block[2 * width :]
                )
            for j in range(len(block)):
                out[m, j] += block[j]
    return out


@jit
def follow(natural: Array, moments: Array, width: int) -> None:
    """Give an MvNormal the moments of its natural parameter; nan if its tau is not positive."""
    root, mean = np.empty((width, width)), natural[:width].copy()
    for i in range(width):
        for j in range(width):
            root[i, j] = -natural[width + i * width + j] - natural[width + j * width + i]
    if not solve(root, mean):  # which leaves the lower Cholesky root
        moments[:] = np.nan
        return
    whitener = np.empty((width, width))  # the transposed inverse of the root, by row
    for j in range(width):
        line = whitener[j]
        line[j] = 1 / root[j, j]
        for i in range(j + 1, width):
            total = 0.0
            for k in range(j, i):
                total -= root[i, k] * line[k]
            line[i] = total / root[i, i]
    moments[:width] = mean
    for i in range(width):
        for j in range(i, width):
            total = mean[i] * mean[j]
            for k in range(j, width):
                total += whitener[i, k] * whitener[j, k]
            moments[width + i * width + j] = total
            moments[width + j * width + i] = total


class Receiver(NamedTuple):
    """Who is updated: keys, by what the messages of each are multiplied, its step and prior."""

    keys: Ints
    scale: Array
    rho: Array
    prior: Array
    at_once: bool


@parallel
def settle(to: Receiver, width: int, sums: Array, natural: Array, moments: Array) -> None:
    """Update each key from the sums of its rows; `natural` and `moments` change in place."""
    for m in prange(len(to.keys)):
        own, prior, said = natural[to.keys[m]], to.prior[m], sums[m]
        step, scale = to.rho[m], to.scale[m]
        place = 2 * width
        for j in range(width + width * width):
            own[j] = (1 - step) * own[j] + step * prior[j]
        for k in range(width):
            own[k] += step * scale * said[k]
            own[width + k * (width + 1)] -= 0.5 * step * scale * said[width + k]
            for j in range(k + 1, width):
                cross = 0.5 * step * scale * said[place]
                own[width + k * width + j] -= cross
                own[width + j * width + k] -= cross
                place += 1
        if to.at_once:
            follow(own, moments[to.keys[m]], width)


@inline
def moments_of(
    mean: Mean, cross: Cross, rows: Rows, own: int, e: int, a: Array, square: Array, room: Array
) -> tuple[float, float]:
    """E[mu] and Var[mu] of one row; terms are independent."""
    total, variance = mean.intercept, 0.0
    for term in range(len(mean.width)):
        width = mean.width[term]
        pairs = width * (width - 1) // 2
        product(mean, rows, term, -1, own, e, a, square)
        room[1, :pairs] = 0
        add_cross(mean, cross, rows, term, -1, own, e, 1.0, room[0], room[1, :pairs])
        first = second = 0.0
        for k in range(width):
            first += a[k]
            second += square[k]
        for j in range(pairs):
            second += 2 * room[1, j]
        total += first
        variance += second - first * first
    return total, variance


@parallel
def row_moments(rows: Rows, mean: Mean, cross: Cross) -> Array:
    """E[mu] and E[mu^2] of each row."""
    count, widest = rows.columns.shape[1], mean.width.max()
    out = np.empty((count, 2))
    for block in prange((count + TILE - 1) // TILE):
        a, square, room = np.empty(widest), np.empty(widest), np.empty((2, widest * widest))
        for e in range(block * TILE, min(count, (block + 1) * TILE)):
            first, variance = moments_of(mean, cross, rows, 0, e, a, square, room)
            out[e, 0], out[e, 1] = first, first * first + variance
    return out


@parallel
def squared_residuals(rows: Rows, mean: Mean, cross: Cross, keys: Ints) -> Array:
    """Sum of E[(y - mu)^2] over the rows of each key, for known y."""
    out, widest = np.zeros(len(keys)), mean.width.max()
    for m in prange(len(keys)):
        a, square, room = np.empty(widest), np.empty(widest), np.empty((2, widest * widest))
        for e in range(rows.begin[m], rows.end[m]):
            first, variance = moments_of(mean, cross, rows, keys[m], e, a, square, room)
            out[m] += (rows.target[e] - first) ** 2 + variance
    return out
