"""The loops of a mean or logit with dot products of vectors, each with a full covariance.

    mu_e = sum over terms t of c_te * sum_k prod over operands f of x_f[key_f(e)]_k

An element x_f[i] is an MvNormal of K entries; a bias is one of a single entry. Seen from it, a row
is mu_e = a_e . x + rest_e, and its message to (x, x x^T) is, with its precision w,

    (w E[a] (y - E[rest]),  -w E[a a^T] / 2).

Means and second moments are laid out as in terms.py, and are the diagonal of E[x x^T]. What
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
from svmp.kernels.cholesky import solve
from svmp.kernels.compiling import inline, jit, parallel
from svmp.kernels.terms import OWN, TILE, Mean, Rows, coefficient, loss, product, rest, tangent
from svmp.network.grid import Ints


class Cross(NamedTuple):
    """The cross moments of all operands in one array, in the order of an upper triangle.

    Operand f at key i has K (K - 1) / 2 of them from `start[f] + K (K - 1) / 2 * i` on.
    """

    packed: NDArray[Any]
    start: Ints


@inline
def is_pair(mean: Mean, term: int) -> bool:
    """Whether a term is the dot product of two operands, and no coefficient differs by row."""
    return mean.first[term + 1] - mean.first[term] == 2 and mean.line[term] < 0


@inline
def cross_product(
    mean: Mean, cross: Cross, rows: Rows, term: int, skip: int, own: int, e: int, out: Array
) -> None:
    """Write E[a_j a_k] of j < k, with a the product of a term's operands but one."""
    width, packed = mean.width[term], cross.packed
    pairs = width * (width - 1) // 2
    c = coefficient(mean, rows, term, e)
    for j in range(pairs):
        out[j] = c * c
    for operand in range(mean.first[term], mean.first[term + 1]):
        if operand != skip:
            column = mean.column[operand]
            key = own if column == OWN else rows.columns[column, e]
            at = cross.start[operand] + pairs * key
            line = packed[at : at + pairs]
            for j in range(pairs):
                out[j] *= line[j]


@jit
def observe(
    mean: Mean, cross: Cross, rows: Rows, own: int, first: int, last: int, out: Array
) -> None:
    """Write the target and the weight of some rows of one key."""
    if rows.logit:
        moments_of(mean, cross, rows, own, first, last, out)
    for i in range(last - first):
        y = rows.target[first + i]
        if rows.logit:
            out[i, 0], root = tangent(out[i, 0], out[i, 1], y)
            out[i, 1] = root * root
        else:
            out[i, 0], out[i, 1] = y, rows.weight[first + i if len(rows.weight) > 1 else 0]


@jit
def pull(
    mean: Mean,
    rows: Rows,
    term: int,
    own: int,
    first: int,
    last: int,
    seen: Array,
    room: Array,
    out: Array,
) -> None:
    """Write w (y - E[rest]) of some rows of one key."""
    rest(mean, rows, term, own, first, last - first, out, room)
    for i in range(last - first):
        out[i] = (seen[i, 0] - out[i]) * seen[i, 1]


@jit
def add_partner(
    mean: Mean,
    cross: Cross,
    rows: Rows,
    term: int,
    partner: int,
    own: int,
    first: int,
    last: int,
    weights: Array,
    pulls: Array,
    total: Array,
) -> None:
    """Add the three sums of some rows of one key, where the slopes are those of one operand."""
    width, packed, crossed = mean.width[term], mean.packed, cross.packed
    columns, pairs = rows.columns, width * (width - 1) // 2
    linear, square, beside = total[:width], total[width : 2 * width], total[2 * width :]
    column, scale = mean.column[partner], mean.scale[term]
    start, cross_start = mean.start[partner], cross.start[partner]
    for e in range(first, last):
        key = own if column == OWN else columns[column, e]
        at, weight = start + 2 * width * key, weights[e - first] * scale * scale
        slope, second = packed[at : at + width], packed[at + width : at + 2 * width]
        both = crossed[cross_start + pairs * key : cross_start + pairs * (key + 1)]
        residual = scale * pulls[e - first]
        for k in range(width):
            linear[k] += residual * slope[k]
        for k in range(width):
            square[k] += weight * second[k]
        for j in range(pairs):
            beside[j] += weight * both[j]


@jit
def add_product(
    mean: Mean,
    cross: Cross,
    rows: Rows,
    term: int,
    operand: int,
    own: int,
    first: int,
    last: int,
    weights: Array,
    pulls: Array,
    room: Array,
    total: Array,
) -> None:
    """Add the three sums of some rows of one key, where the slopes are any product."""
    width, slopes, both = mean.width[term], room[0], room[1]
    for e in range(first, last):
        weight = weights[e - first]
        product(mean, rows, term, operand, own, e, slopes)
        cross_product(mean, cross, rows, term, operand, own, e, both)
        for k in range(width):
            total[k] += pulls[e - first] * slopes[k]
            total[width + k] += weight * slopes[width + k]
        for j in range(width * (width - 1) // 2):
            total[2 * width + j] += weight * both[j]


@jit
def add_rows(
    mean: Mean,
    cross: Cross,
    rows: Rows,
    term: int,
    operand: int,
    own: int,
    begin: int,
    end: int,
    total: Array,
) -> None:
    """Add the three sums of some rows of one key: small blocks as they are, and those in double."""
    dtype, widest = mean.packed.dtype, mean.width.max()
    room = np.empty((2, widest * (widest + 1)), dtype)
    block, pulls, seen = (
        np.empty(len(total), dtype),
        np.empty(TILE, dtype),
        np.empty((TILE, 2), dtype),
    )
    weights = seen[:, 1]
    pair, partner = is_pair(mean, term), 2 * mean.first[term] + 1 - operand
    for first in range(begin, end, TILE):
        last = min(first + TILE, end)
        block[:] = 0
        observe(mean, cross, rows, own, first, last, seen)
        pull(mean, rows, term, own, first, last, seen, room[0], pulls)
        if pair:
            add_partner(mean, cross, rows, term, partner, own, first, last, weights, pulls, block)
        else:
            add_product(
                mean, cross, rows, term, operand, own, first, last, weights, pulls, room, block
            )
        for j in range(len(total)):
            total[j] += block[j]


@parallel
def message_sums(
    term: int, operand: int, keys: Ints, rows: Rows, mean: Mean, cross: Cross
) -> Array:
    """Sum w E[a] (y - E[rest]), w E[a_k^2] and w E[a_j a_k] over the rows of each key."""
    width = mean.width[term]
    out = np.zeros((len(keys), 2 * width + width * (width - 1) // 2))
    for m in prange(len(keys)):
        begin, end = rows.begin[m], rows.end[m]
        add_rows(mean, cross, rows, term, operand, keys[m], begin, end, out[m])
    return out


@inline
def inner(left: Array, right: Array) -> float:
    """Return the inner product of two vectors."""
    total = 0.0
    for k in range(len(left)):
        total += left[k] * right[k]
    return total


@jit
def follow(natural: Array, moments: Array, width: int) -> None:
    """Give an MvNormal the moments of its natural parameter; nan if its tau is not positive."""
    root, mean = np.empty((width, width)), np.empty(width)
    for i in range(width):
        mean[i] = natural[i]
        for j in range(width):
            root[i, j] = -natural[width + i * width + j] - natural[width + j * width + i]
    if not solve(root, mean):  # which leaves the lower Cholesky root
        for j in range(len(moments)):
            moments[j] = np.nan
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
    for i in range(width):
        moments[i] = mean[i]
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


@jit
def blend(own: Array, step: float, scale: float, prior: Array, sums: Array, width: int) -> None:
    """Move a natural parameter by a step towards what the rows say."""
    for j in range(len(own)):
        own[j] = (1 - step) * own[j] + step * prior[j]
    place = 2 * width
    for k in range(width):
        own[k] += step * scale * sums[k]
        own[width + k * (width + 1)] -= 0.5 * step * scale * sums[width + k]
        for j in range(k + 1, width):
            cross = 0.5 * step * scale * sums[place]
            own[width + k * width + j] -= cross
            own[width + j * width + k] -= cross
            place += 1


@parallel
def settle(to: Receiver, width: int, sums: Array, natural: Array, moments: Array) -> None:
    """Update each key from the sums of its rows; `natural` and `moments` change in place."""
    for m in prange(len(to.keys)):
        key = to.keys[m]
        blend(natural[key], to.rho[m], to.scale[m], to.prior[m], sums[m], width)
        if to.at_once:
            follow(natural[key], moments[key], width)


@jit
def moments_of_pair(
    mean: Mean, cross: Cross, rows: Rows, term: int, own: int, first: int, last: int, out: Array
) -> None:
    """Write E[t] and E[t^2] of a term that is a dot product, for some rows."""
    width, packed, crossed = mean.width[term], mean.packed, cross.packed
    columns, pairs, scale = rows.columns, width * (width - 1) // 2, mean.scale[term]
    f, g = mean.first[term], mean.first[term] + 1
    for e in range(first, last):
        i = own if mean.column[f] == OWN else columns[mean.column[f], e]
        j = own if mean.column[g] == OWN else columns[mean.column[g], e]
        at, to = mean.start[f] + 2 * width * i, mean.start[g] + 2 * width * j
        left, right = packed[at : at + 2 * width], packed[to : to + 2 * width]
        at, to = cross.start[f] + pairs * i, cross.start[g] + pairs * j
        above, beside = crossed[at : at + pairs], crossed[to : to + pairs]
        square = inner(left[width:], right[width:]) + 2 * inner(above, beside)
        out[e - first, 0] = scale * inner(left[:width], right[:width])
        out[e - first, 1] = scale * scale * square


@jit
def moments_of_product(
    mean: Mean,
    cross: Cross,
    rows: Rows,
    term: int,
    own: int,
    first: int,
    last: int,
    room: Array,
    out: Array,
) -> None:
    """Write E[t] and E[t^2] of any term, for some rows."""
    width = mean.width[term]
    slopes, both = room[0], room[1]
    for e in range(first, last):
        product(mean, rows, term, -1, own, e, slopes)
        cross_product(mean, cross, rows, term, -1, own, e, both)
        total = total_square = 0.0
        for k in range(width):
            total += slopes[k]
            total_square += slopes[width + k]
        for j in range(width * (width - 1) // 2):
            total_square += 2 * both[j]
        out[e - first, 0], out[e - first, 1] = total, total_square


@jit
def moments_of(
    mean: Mean, cross: Cross, rows: Rows, own: int, first: int, last: int, out: Array
) -> None:
    """Write E[mu] and Var[mu] of some rows; terms are independent."""
    widest = mean.width.max()
    room, one = np.empty((2, widest * (widest + 1))), np.empty((last - first, 2))
    for e in range(last - first):
        out[e, 0], out[e, 1] = mean.intercept, 0
    for term in range(len(mean.width)):
        if is_pair(mean, term):
            moments_of_pair(mean, cross, rows, term, own, first, last, one)
        else:
            moments_of_product(mean, cross, rows, term, own, first, last, room, one)
        for e in range(last - first):
            out[e, 0] += one[e, 0]
            out[e, 1] += one[e, 1] - one[e, 0] * one[e, 0]


@parallel
def row_moments(rows: Rows, mean: Mean, cross: Cross) -> Array:
    """E[mu] and E[mu^2] of each row."""
    count = rows.columns.shape[1]
    out = np.empty((count, 2))
    for block in prange((count + TILE - 1) // TILE):
        first, last = block * TILE, min(count, (block + 1) * TILE)
        moments_of(mean, cross, rows, 0, first, last, out[first:last])
        for e in range(first, last):
            out[e, 1] += out[e, 0] * out[e, 0]
    return out


@jit
def loss_of(mean: Mean, cross: Cross, rows: Rows, own: int, begin: int, end: int) -> float:
    """Sum over some rows of one key of the squared residual, or of minus the log density."""
    moments, total = np.empty((TILE, 2)), 0.0
    for first in range(begin, end, TILE):
        last = min(first + TILE, end)
        moments_of(mean, cross, rows, own, first, last, moments[: last - first])
        for e in range(first, last):
            total += loss(rows, e, moments[e - first, 0], moments[e - first, 1])
    return total


@parallel
def losses(rows: Rows, mean: Mean, cross: Cross, keys: Ints) -> Array:
    """Sum over the rows of each key of the squared residual, or of minus the log density."""
    out = np.zeros(len(keys))
    for m in prange(len(keys)):
        out[m] = loss_of(mean, cross, rows, keys[m], rows.begin[m], rows.end[m])
    return out
