"""A mean or logit with dot products of vectors, row by row, as the loops read it.

    mu_e = sum over terms t of c_te * sum_k prod over operands f of x_f[key_f(e)]_k

Means and second moments are laid out as in terms.py, and are the diagonal of E[x x^T]. What
makes a covariance full follows them: the cross moments E[x_j x_k] of j < k, in the order of an
upper triangle. Each of the three is rounded up to eights, with zeros. No array has a line for each
row. The plain twin is network/linear.py.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.multilinear.residuals import loss
from svmp.kernels.multilinear.terms import (
    BLOCK,
    TILE,
    Mean,
    Rows,
    coefficient,
    dot,
    own_weight,
    place,
    product,
    reader,
    shared_weight,
    tangent,
)
from svmp.network.grid import Ints


@bare
def pack_key(own: Array, width: int, padded: int, out: Array) -> None:
    """Write K means, K second moments and K (K - 1) / 2 cross moments."""
    at = 2 * padded
    out[:] = 0
    for k in range(width):
        out[k] = own[k]
        line = own[width + k * width :]
        out[padded + k] = line[k]
        for j in range(k + 1, width):
            out[at] = line[j]
            at += 1


@shared
def pack(taken: Ints, moments: Array, width: int, padded: int, packed: Array) -> None:
    """Write the moments of every key as the loops read them."""
    size = len(packed) // len(moments)
    first = claim(taken, CHUNK)
    while first < len(moments):
        for key in range(first, min(first + CHUNK, len(moments))):
            pack_key(moments[key], width, padded, packed[key * size : (key + 1) * size])
        first = claim(taken, CHUNK)


@bare
def is_pair(mean: Mean, term: int) -> bool:
    """Whether a term is the dot product of two operands, and no coefficient differs by row."""
    return mean.first[term + 1] - mean.first[term] == 2 and mean.line[term] < 0


@bare
def cross_product(
    mean: Mean, rows: Rows, term: int, skip: int, own: int, e: int, out: Array
) -> None:
    """Write E[a_j a_k] of j < k, with a the product of a term's operands but one."""
    pairs, c = mean.size[term] - 2 * mean.width[term], coefficient(mean, rows, term, e)
    for j in range(pairs):
        out[j] = c * c
    for operand in range(mean.first[term], mean.first[term + 1]):
        if operand != skip:
            at = place(reader(mean, term, operand), rows, own, e) + np.uintp(2 * mean.width[term])
            for j in range(np.uintp(pairs)):
                out[j] *= mean.packed[at + j]


@bare
def moments_of_pair(
    mean: Mean, rows: Rows, term: int, own: int, first: int, count: int, out: Array
) -> None:
    """Add E[t] and Var[t] of a term that is a dot product, for some rows."""
    width, size = np.uintp(mean.width[term]), np.uintp(mean.size[term])
    f, packed, scale = mean.first[term], mean.packed, mean.scale[term]
    left, right = reader(mean, term, f), reader(mean, term, f + 1)
    for i in range(count):
        at, to = place(left, rows, own, first + i), place(right, rows, own, first + i)
        one = scale * dot(packed, at, packed, to, width)
        square = dot(packed, at + width, packed, to + width, width)
        apart = at + 2 * width, to + 2 * width
        square += 2 * dot(packed, apart[0], packed, apart[1], size - 2 * width)
        out[i, 0] += one
        out[i, 1] += scale * scale * square - one * one


@bare
def moments_of_product(
    mean: Mean, rows: Rows, term: int, own: int, first: int, count: int, room: Array, out: Array
) -> None:
    """Add E[t] and Var[t] of any term, for some rows."""
    width, size = mean.width[term], mean.size[term]
    for i in range(count):
        product(mean, rows, term, -1, own, first + i, room)
        cross_product(mean, rows, term, -1, own, first + i, room[2 * width :])
        one = square = 0.0
        for k in range(width):
            one += room[k]
            square += room[width + k]
        for j in range(2 * width, size):
            square += 2 * room[j]
        out[i, 0] += one
        out[i, 1] += square - one * one


@bare
def moments_of(
    mean: Mean, rows: Rows, own: int, first: int, count: int, out: Array, room: Array
) -> None:
    """Write E[mu] and Var[mu] of some rows; terms are independent."""
    for i in range(count):
        out[i, 0], out[i, 1] = mean.intercept, 0
    for term in range(len(mean.width)):
        if is_pair(mean, term):
            moments_of_pair(mean, rows, term, own, first, count, out)
        else:
            moments_of_product(mean, rows, term, own, first, count, room, out)


@bare
def observe(
    mean: Mean, rows: Rows, own: int, first: int, count: int, out: Array, room: Array
) -> None:
    """Write the target and the weight of some rows of one key."""
    if rows.logit:
        moments_of(mean, rows, own, first, count, out, room)
    for i in range(count):
        if rows.logit:
            out[i, 0], root = tangent(out[i, 0], out[i, 1], rows.target[first + i])
            out[i, 1] = root * root
        else:
            weight = shared_weight(rows, own) * own_weight(rows, first + i)
            out[i, 0], out[i, 1] = rows.target[first + i], weight


@shared
def row_moments(taken: Ints, rows: Rows, mean: Mean, out: Array) -> None:
    """Write E[mu] and E[mu^2] of each row."""
    room = np.empty(mean.size.max())
    first = claim(taken, BLOCK)
    while first < len(out):
        found = out[first : first + BLOCK]
        moments_of(mean, rows, 0, first, len(found), found, room)
        for i in range(len(found)):
            found[i, 1] += found[i, 0] * found[i, 0]
        first = claim(taken, BLOCK)


@bare
def loss_of(
    mean: Mean, rows: Rows, own: int, begin: int, end: int, found: Array, room: Array
) -> float:
    """Sum over some rows of one key of the squared residual, or of minus the log density."""
    total = 0.0
    for first in range(begin, end, TILE):
        count = min(TILE, end - first)
        moments_of(mean, rows, own, first, count, found, room)
        for i in range(count):
            total += loss(rows, first + i, found[i, 0], found[i, 1])
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
    found, room = np.empty((TILE, 2)), np.empty(mean.size.max())
    write_losses(taken, rows, mean, keys, found, room, out)
