"""A mean or logit with dot products of vectors, row by row, as the loops read it.

    mu_e = sum over terms t of c_te * sum_k prod over operands f of x_f[key_f(e)]_k

Means are packed as in multilinear/terms.py. They are followed by second moments, the diagonal of
E[x x^T], and by the cross moments E[x_j x_k] of j < k, in the order of an upper triangle. Each of
the three is padded with zeros to a multiple of eight. Updates read covariances instead of the
second moments of the vector that another is multiplied by (`Mean.centred`), and biases always have
variances: in single precision, second moments would lose small ones. No array has a line for each
row. The plain version is network/means/linear.py.

`loss_of`, `write_losses` and `losses` differ from those of multilinear/residuals.py in `moments_of`
only. A loop that took it as an argument could not be cached, because the type of that argument
holds its address: it would be compiled for 4.7 s in every process.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.multilinear.residuals import loss
from svmp.kernels.multilinear.terms import (
    BLOCK,
    TILE,
    LoopRows,
    Mean,
    coefficient,
    dot,
    layout_of,
    own_weight,
    place,
    shared_weight,
    tangent,
)
from svmp.network.grid import Ints


@bare
def pack_key(own: Array, width: int, padded: int, centred: bool, out: Array) -> None:
    """Write K means, K second moments and K (K - 1) / 2 cross moments, each padded with zeros."""
    at, centred = 2 * padded, centred or width == 1
    out[:] = 0
    for k in range(width):
        out[k] = own[k]
        line, c = own[width + k * width :], own[k] if centred else 0.0
        out[padded + k] = line[k] - c * own[k]
        for j in range(k + 1, width):
            out[at] = line[j] - c * own[j]
            at += 1


@shared
def pack(
    taken: Ints, moments: Array, width: int, padded: int, centred: bool, packed: Array
) -> None:
    """Write the moments of every key in the layout of `Mean.packed`."""
    size = len(packed) // len(moments)
    first = claim(taken, CHUNK)
    while first < len(moments):
        for key in range(first, min(first + CHUNK, len(moments))):
            out = packed[key * size : (key + 1) * size]
            pack_key(moments[key], width, padded, centred, out)
        first = claim(taken, CHUNK)


@bare
def is_pair(mean: Mean, term: int) -> bool:
    """Whether a term is a dot product of two operands, with no coefficient that varies by row."""
    return mean.first[term + 1] - mean.first[term] == 2 and mean.line[term] < 0


@bare
def product(mean: Mean, rows: LoopRows, term: int, skip: int, own: int, e: int, out: Array) -> None:
    """Write E[a] and then E[a^2], where a is the product of all operands of a term but one."""
    width, c = np.uintp(mean.width[term]), coefficient(mean, rows, term, e)
    for k in range(width):
        out[k] = c
        out[width + k] = c * c
    for operand in range(mean.first[term], mean.first[term + 1]):
        if operand != skip:
            at = place(layout_of(mean, term, operand), rows, own, e)
            if width == 1:
                one = mean.packed[at]
                out[0] *= one
                out[1] *= one * one + mean.packed[at + np.uintp(1)]
                continue
            for k in range(2 * width):
                out[k] *= mean.packed[at + k]


@bare
def cross_product(
    mean: Mean, rows: LoopRows, term: int, skip: int, own: int, e: int, out: Array
) -> None:
    """Write E[a_j a_k] of j < k, where a is the product of all operands of a term but one."""
    pairs, c = mean.size[term] - 2 * mean.width[term], coefficient(mean, rows, term, e)
    for j in range(pairs):
        out[j] = c * c
    for operand in range(mean.first[term], mean.first[term + 1]):
        if operand != skip:
            at = place(layout_of(mean, term, operand), rows, own, e) + np.uintp(
                2 * mean.width[term]
            )
            for j in range(np.uintp(pairs)):
                out[j] *= mean.packed[at + j]


@bare
def moments_of_pair(
    mean: Mean, rows: LoopRows, term: int, own: int, first: int, count: int, out: Array
) -> None:
    """Add E and Var of a term that is a dot product of two operands, for some rows."""
    width, size = np.uintp(mean.width[term]), np.uintp(mean.size[term])
    f, packed, scale = mean.first[term], mean.packed, mean.scale[term]
    left, right = layout_of(mean, term, f), layout_of(mean, term, f + 1)
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
    mean: Mean,
    rows: LoopRows,
    term: int,
    own: int,
    first: int,
    count: int,
    scratch: Array,
    out: Array,
) -> None:
    """Add E and Var of any term, for some rows."""
    width, size = mean.width[term], mean.size[term]
    for i in range(count):
        product(mean, rows, term, -1, own, first + i, scratch)
        cross_product(mean, rows, term, -1, own, first + i, scratch[2 * width :])
        one = square = 0.0
        for k in range(width):
            one += scratch[k]
            square += scratch[width + k]
        for j in range(2 * width, size):
            square += 2 * scratch[j]
        out[i, 0] += one
        out[i, 1] += square - one * one


@bare
def moments_of(
    mean: Mean, rows: LoopRows, own: int, first: int, count: int, out: Array, scratch: Array
) -> None:
    """Write E[mu] and Var[mu] of some rows; the terms are independent."""
    for i in range(count):
        out[i, 0], out[i, 1] = mean.intercept, 0
    for term in range(len(mean.width)):
        if is_pair(mean, term) and mean.width[term] > 1:
            moments_of_pair(mean, rows, term, own, first, count, out)
        else:
            moments_of_product(mean, rows, term, own, first, count, scratch, out)


@bare
def observe(
    mean: Mean, rows: LoopRows, own: int, first: int, count: int, out: Array, scratch: Array
) -> None:
    """Write the target and the weight of some rows of one key."""
    if rows.logit:
        moments_of(mean, rows, own, first, count, out, scratch)
    for i in range(count):
        if rows.logit:
            out[i, 0], root = tangent(out[i, 0], out[i, 1], rows.target[first + i])
            out[i, 1] = root * root
        else:
            weight = shared_weight(rows, own) * own_weight(rows, first + i)
            out[i, 0], out[i, 1] = rows.target[first + i], weight


@shared
def row_moments(taken: Ints, rows: LoopRows, mean: Mean, out: Array) -> None:
    """Write E[mu] and E[mu^2] of each row."""
    scratch = np.empty(mean.size.max())
    first = claim(taken, BLOCK)
    while first < len(out):
        found = out[first : first + BLOCK]
        moments_of(mean, rows, 0, first, len(found), found, scratch)
        for i in range(len(found)):
            found[i, 1] += found[i, 0] * found[i, 0]
        first = claim(taken, BLOCK)


@bare
def loss_of(
    mean: Mean, rows: LoopRows, own: int, begin: int, end: int, found: Array, scratch: Array
) -> float:
    """Return the sum of the losses of some rows of a key."""
    total = 0.0
    for first in range(begin, end, TILE):
        count = min(TILE, end - first)
        moments_of(mean, rows, own, first, count, found, scratch)
        for i in range(count):
            total += loss(rows, first + i, found[i, 0], found[i, 1])
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
    found, scratch = np.empty((TILE, 2)), np.empty(mean.size.max())
    write_losses(taken, rows, mean, keys, found, scratch, out)
