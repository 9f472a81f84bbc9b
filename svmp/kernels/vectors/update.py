"""Updates of the vectors of a mean or logit with dot products, each with a full covariance.

An element x_f[i] is an MvNormal with K entries; a bias is one with a single entry. For one element,
a row is mu_e = a_e . x + rest_e, and its message to (x, x x^T) is, with its precision w,

    (w E[a] (y - E[rest]),  -w E[a a^T] / 2).

The sums that an element is updated from are laid out like its packed moments, in vectors/terms.py:
sum w E[a] (y - E[rest]), then the diagonal and then the upper triangle of sum w E[a a^T]. The plain
version is network/linear.py.

Moments are (elements, K + K^2) arrays of E[x] and E[x x^T], naturals are (tau mu, -tau / 2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array, Bools
from svmp.kernels.machine.blend import blend
from svmp.kernels.machine.cholesky import invert, solve
from svmp.kernels.machine.compiling import CHUNK, bare, claim, jit, shared
from svmp.kernels.machine.simd import EIGHT, broadcast8, fma8, load8, store8
from svmp.kernels.machine.threads import share
from svmp.kernels.multilinear.terms import (
    TILE,
    LoopRows,
    Mean,
    OperandLayout,
    Receiver,
    layout_of,
    per_key,
    place,
    product,
    rest,
)
from svmp.kernels.vectors.terms import cross_product, is_pair, observe
from svmp.network.grid import Ints

LONG = 4_096
"""Threads share the rows of a key that has more rows than this."""


class VectorScratch(NamedTuple):
    """Scratch arrays of one thread.

    Attributes
    ----------
    spare, block
        A product of operands or the weights of a tile, and the sums of a tile.
    pulls, seen
        w (y - E[rest]) of the rows of a tile, and their targets and weights.
    sums
        The sums of a key.
    system
        A matrix, its inverse and a vector, for the solution of a key.
    """

    spare: NDArray[Any]
    block: NDArray[Any]
    pulls: NDArray[Any]
    seen: NDArray[Any]
    sums: Array
    system: Array


@jit
def system_for(width: int) -> Array:
    """Return an array for a matrix padded to a multiple of four, its inverse, and a vector."""
    padded = (width + 3) // 4 * 4
    return np.empty((2 * padded + 1, padded))


@jit
def scratch_for(mean: Mean, to: Receiver) -> VectorScratch:
    """Return the scratch arrays of a thread."""
    dtype, size = mean.packed.dtype, max(TILE, mean.size.max())
    return VectorScratch(
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty((TILE, 2), dtype),
        np.empty(mean.size[to.term]),
        system_for(to.width),
    )


@bare
def weighted_residuals(
    mean: Mean, rows: LoopRows, term: int, own: int, first: int, count: int, scratch: VectorScratch
) -> None:
    """Write w (y - E[rest]) of some rows of one key."""
    pulls, seen = scratch.pulls, scratch.seen
    rest(mean, rows, term, own, first, count, pulls, scratch.spare)
    for i in range(count):
        pulls[i] = (seen[i, 0] - pulls[i]) * seen[i, 1]


@bare
def sum_columns(
    mean: Mean,
    rows: LoopRows,
    of: OperandLayout,
    own: int,
    first: int,
    factors: Array,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Write the sum over some rows of some packed numbers of an operand, each row times a factor.

    All rows are read for 32 numbers, or 8, at a time, so that their sums stay in registers.
    """
    packed, eight_on = mean.packed, np.uintp(EIGHT)
    k: Any = begin
    while k + np.uintp(4 * EIGHT) <= end:
        a = b = c = d = broadcast8(packed.dtype.type(0))
        for i in range(len(factors)):
            at, factor = place(of, rows, own, first + i) + k, broadcast8(factors[i])
            a = fma8(factor, load8(packed, at), a)
            b = fma8(factor, load8(packed, at + eight_on), b)
            c = fma8(factor, load8(packed, at + np.uintp(2) * eight_on), c)
            d = fma8(factor, load8(packed, at + np.uintp(3) * eight_on), d)
        for found in (a, b, c, d):
            store8(out, k, found)
            k += eight_on
    while k < end:
        found = broadcast8(packed.dtype.type(0))
        for i in range(len(factors)):
            at = place(of, rows, own, first + i) + k
            found = fma8(broadcast8(factors[i]), load8(packed, at), found)
        store8(out, k, found)
        k += eight_on


@bare
def sum_partner(
    mean: Mean,
    rows: LoopRows,
    term: int,
    partner: int,
    own: int,
    first: int,
    count: int,
    scratch: VectorScratch,
) -> None:
    """Write the sums of some rows of one key, where the slopes are those of one operand."""
    width, size = np.uintp(mean.width[term]), np.uintp(mean.size[term])
    pulls, weights, out = scratch.pulls[:count], scratch.spare[:count], scratch.block
    other, scale = layout_of(mean, term, partner), mean.scale[term]
    for i in range(count):
        pulls[i] *= scale
        weights[i] = scratch.seen[i, 1] * scale * scale
    sum_columns(mean, rows, other, own, first, pulls, np.uintp(0), width, out)
    sum_columns(mean, rows, other, own, first, weights, width, size, out)


@bare
def sum_product(
    mean: Mean,
    rows: LoopRows,
    term: int,
    operand: int,
    own: int,
    first: int,
    count: int,
    scratch: VectorScratch,
) -> None:
    """Write the sums of some rows of one key, where the slopes are any product."""
    width, size, slopes, total = mean.width[term], mean.size[term], scratch.spare, scratch.block
    for j in range(size):
        total[j] = 0
    for i in range(count):
        weight = scratch.seen[i, 1]
        product(mean, rows, term, operand, own, first + i, slopes)
        cross_product(mean, rows, term, operand, own, first + i, slopes[2 * width :])
        for k in range(width):
            total[k] += scratch.pulls[i] * slopes[k]
        for j in range(width, size):
            total[j] += weight * slopes[j]


@bare
def add_rows(
    mean: Mean,
    rows: LoopRows,
    to: Receiver,
    m: int,
    begin: int,
    end: int,
    scratch: VectorScratch,
    total: Array,
) -> None:
    """Write the sums of some rows of one key.

    The sums of a tile are made in the precision of the data, and added in double precision.
    """
    term, own = to.term, to.keys[m]
    aligned = is_pair(mean, term) and mean.width[term] % EIGHT == 0
    partner = 2 * mean.first[term] + 1 - to.operand
    total[:] = 0
    for first in range(begin, end, TILE):
        count = min(TILE, end - first)
        observe(mean, rows, own, first, count, scratch.seen, scratch.spare)
        weighted_residuals(mean, rows, term, own, first, count, scratch)
        if aligned:
            sum_partner(mean, rows, term, partner, own, first, count, scratch)
        else:
            sum_product(mean, rows, term, to.operand, own, first, count, scratch)
        for j in range(len(total)):
            total[j] += scratch.block[j]


@bare
def blend_key(to: Receiver, m: int, padded: int, sums: Array, own: Array, tau: Array) -> float:
    """Move a natural parameter by a step towards its prior plus the message of the rows.

    Write the lower triangle of tau; return the sum of the absolute natural parameters.
    """
    step, scale, width = per_key(to.rho, m), per_key(to.scale, m), to.width
    prior = to.prior[m] if len(to.prior) > 1 else to.prior[0]
    place, total = 2 * padded, 0.0
    for k in range(width):
        own[k] = blend(own[k], prior[k] + scale * sums[k], step)
        total += abs(own[k])
        for j in range(k, width):
            at, back = width + k * width + j, width + j * width + k
            square = sums[padded + k]
            if j > k:
                square = sums[place]
                place += 1
            target = 0.5 * (prior[at] + prior[back]) - 0.5 * scale * square
            own[at] = own[back] = blend(own[at], target, step)
            tau[j, k] = -2 * own[at]
            total += abs(own[at])
    return total


@bare
def update_from_sums(
    to: Receiver, m: int, padded: int, sums: Array, system: Array, natural: Array, moments: Array
) -> bool:
    """Update a key from the sums of its rows; return whether it is a proper MvNormal.

    If moments are not refreshed, only infinite and undefined numbers are detected.
    """
    size, key, width = system.shape[1], to.keys[m], to.width
    root, mean = system[:size], system[2 * size]
    sound = blend_key(to, m, padded, sums, natural[key], root) < np.inf
    if not to.at_once:
        return sound
    for k in range(width):
        mean[k] = natural[key, k]
    if not (sound and solve(root[:width], mean[:width])):
        return False
    invert(root, width, system[size : 2 * size])
    own = moments[key]
    for i in range(width):
        own[i] = mean[i]
        for j in range(i + 1):
            second = mean[i] * mean[j] + root[i, j]
            own[width + i * width + j] = own[width + j * width + i] = second
    return True


@bare
def update_claimed(
    taken: Ints,
    to: Receiver,
    rows: LoopRows,
    mean: Mean,
    scratch: VectorScratch,
    natural: Array,
    moments: Array,
    sound: Bools,
) -> None:
    """Update the keys that this thread claims."""
    padded, sums = mean.width[to.term], scratch.sums
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            begin, end = rows.begin[m], rows.end[m]
            if end - begin <= LONG:
                add_rows(mean, rows, to, m, begin, end, scratch, sums)
                if not update_from_sums(to, m, padded, sums, scratch.system, natural, moments):
                    sound[m] = False
        first = claim(taken, CHUNK)


@shared
def update(
    taken: Ints,
    to: Receiver,
    rows: LoopRows,
    mean: Mean,
    natural: Array,
    moments: Array,
    sound: Bools,
) -> None:
    """Update all keys but long ones; `natural`, `moments` and `sound` change in place."""
    scratch = scratch_for(mean, to)
    update_claimed(taken, to, rows, mean, scratch, natural, moments, sound)


@shared
def add_pieces(
    taken: Ints, to: Receiver, m: int, rows: LoopRows, mean: Mean, piece: int, sums: Array
) -> None:
    """Write the sums of each piece of the rows of a key."""
    first, last, scratch = rows.begin[m], rows.end[m], scratch_for(mean, to)
    b = claim(taken, 1)
    while b < len(sums):
        start = first + b * piece
        add_rows(mean, rows, to, m, start, min(last, start + piece), scratch, sums[b])
        b = claim(taken, 1)


def sums_of_long(to: Receiver, m: int, rows: LoopRows, mean: Mean) -> Array:
    """Return the sums of a long key: pieces in parallel, added in order."""
    count = int(rows.end[m] - rows.begin[m])
    piece = max(LONG // 8, count // 256 + 1)
    sums = np.empty((-(-count // piece), int(mean.size[to.term])))
    share(add_pieces, to, m, rows, mean, piece, sums)
    return np.asarray(sums.sum(axis=0))


def update_long(
    to: Receiver, m: int, rows: LoopRows, mean: Mean, natural: Array, moments: Array
) -> bool:
    """Update a long key; return whether it is a proper MvNormal."""
    padded, sums = int(mean.width[to.term]), sums_of_long(to, m, rows, mean)
    return update_from_sums(to, m, padded, sums, system_for(to.width), natural, moments)
