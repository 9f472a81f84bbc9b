"""Updates of the vectors of a mean or logit with dot products, each with a full covariance.

An element x_f[i] is an MvNormal with K entries; a bias is one with a single entry. For one element,
a row is mu_e = a_e . x + rest_e, and its message to (x, x x^T) is, with its precision w,

    (w E[a] (y - E[rest]),  -w E[a a^T] / 2).

The sums that an element is updated from are laid out like its packed moments, in vectors/terms.py:
sum w E[a] (y - E[rest]), then the diagonal and then the upper triangle of sum w E[a a^T]. Where
covariances of a are read, sum w E[a] E[a]^T is behind them. Plain: network/means/linear.py.

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
from svmp.kernels.machine.simd import (
    EIGHT,
    accumulate8,
    broadcast8,
    fma8,
    load8,
    mul8,
    store8,
)
from svmp.kernels.machine.threads import share
from svmp.kernels.multilinear.losses import Losses, LossScratch, loss_scratch
from svmp.kernels.multilinear.terms import (
    TILE,
    LoopRows,
    Mean,
    Receiver,
    layout_of,
    own_weight,
    per_key,
    place,
    rest,
    shared_weight,
    weights_differ,
)
from svmp.kernels.vectors.losses import loss_of_means, loss_of_variances
from svmp.kernels.vectors.terms import cross_product, is_pair, observe, product
from svmp.network.grid import Ints

LONG = 4_096
"""Threads share the rows of a key that has more rows than this."""


class VectorScratch(NamedTuple):
    """Scratch arrays of one thread.

    Attributes
    ----------
    lines, places
        Means of the rows of a tile, and where they begin in `Mean.packed`.
    spare, block
        A product of operands or the weights of a tile, and the sums of a tile.
    pulls, seen
        w (y - E[rest]) of the rows of a tile, and their targets and weights.
    sums
        The sums of a key.
    system
        A matrix, its inverse and a vector, for the solution of a key.
    """

    lines: NDArray[Any]
    places: Ints
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


@bare
def sums_size(mean: Mean, term: int) -> int:
    """Return how many numbers the sums of a key have, with those behind them."""
    width = mean.width[term]
    return mean.size[term] + (width * width if mean.centred else 0)


@jit
def scratch_for(mean: Mean, to: Receiver) -> VectorScratch:
    """Return the scratch arrays of a thread."""
    dtype, size = mean.packed.dtype, max(TILE, mean.size.max())
    return VectorScratch(
        np.empty(TILE * mean.width[to.term], dtype),
        np.empty(TILE, np.uintp),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty((TILE, 2), dtype),
        np.empty(sums_size(mean, to.term)),
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
def scale_rows(scale: float, count: int, scratch: VectorScratch) -> None:
    """Multiply w (y - E[rest]) by the scale of a term; write w times its square."""
    for i in range(count):
        scratch.pulls[i] *= scale
        scratch.spare[i] = scratch.seen[i, 1] * scale * scale


@bare
def pull_and_weigh(
    mean: Mean, rows: LoopRows, term: int, own: int, first: int, count: int, scratch: VectorScratch
) -> None:
    """Write w (y - E[rest]) and w of some Normal rows of one key, times the scale of the term."""
    pulls, weights, scale = scratch.pulls, scratch.spare, mean.scale[term]
    rest(mean, rows, term, own, first, count, pulls, weights)
    common, at = scale * shared_weight(rows, own), np.uintp(first)
    if not weights_differ(rows):
        for i in range(np.uintp(count)):
            pulls[i] = common * (rows.target[at + i] - pulls[i])
            weights[i] = common * scale
        return
    for i in range(np.uintp(count)):
        weight = scale * own_weight(rows, at + i)
        pulls[i] = weight * (rows.target[at + i] - pulls[i])
        weights[i] = weight * scale


@bare
def sum_columns(
    packed: Array, places: Ints, factors: Array, begin: int, end: int, out: Array
) -> None:
    """Write the sum over some rows of some packed numbers of an operand, each row times a factor.

    All rows are read for 32 numbers, or 8, at a time, so that their sums stay in registers.
    """
    eight_on = np.uintp(EIGHT)
    k: Any = begin
    while k + np.uintp(4 * EIGHT) <= end:
        a = b = c = d = broadcast8(packed.dtype.type(0))
        for i in range(np.uintp(len(factors))):
            at, factor = places[i] + k, broadcast8(factors[i])
            a = fma8(factor, load8(packed, at), a)
            b = fma8(factor, load8(packed, at + eight_on), b)
            c = fma8(factor, load8(packed, at + np.uintp(2) * eight_on), c)
            d = fma8(factor, load8(packed, at + np.uintp(3) * eight_on), d)
        for found in (a, b, c, d):
            store8(out, k, found)
            k += eight_on
    while k < end:
        found = broadcast8(packed.dtype.type(0))
        for i in range(np.uintp(len(factors))):
            found = fma8(broadcast8(factors[i]), load8(packed, places[i] + k), found)
        store8(out, k, found)
        k += eight_on


@bare
def add_outer(packed: Array, places: Ints, count: int, width: int, out: Array, start: int) -> None:
    """Add E[a] E[a]^T of some rows to a matrix: its 8 x 8 blocks on and below the diagonal.

    As in multilinear/sums.py, but rows need not be copied to lines.
    """
    for k in range(np.uintp(0), width, np.uintp(EIGHT)):
        for j in range(np.uintp(0), k + np.uintp(1), np.uintp(EIGHT)):
            s = t = u = v = w = x = y = z = broadcast8(packed.dtype.type(0))
            for i in range(np.uintp(count)):
                at, right = places[i] + k, load8(packed, places[i] + j)
                s = fma8(broadcast8(packed[at]), right, s)
                t = fma8(broadcast8(packed[at + np.uintp(1)]), right, t)
                u = fma8(broadcast8(packed[at + np.uintp(2)]), right, u)
                v = fma8(broadcast8(packed[at + np.uintp(3)]), right, v)
                w = fma8(broadcast8(packed[at + np.uintp(4)]), right, w)
                x = fma8(broadcast8(packed[at + np.uintp(5)]), right, x)
                y = fma8(broadcast8(packed[at + np.uintp(6)]), right, y)
                z = fma8(broadcast8(packed[at + np.uintp(7)]), right, z)
            for r, found in enumerate((s, t, u, v, w, x, y, z)):
                accumulate8(out, start + (k + np.uintp(r)) * width + j, found)


@bare
def add_weighted_outer(
    packed: Array,
    weights: Array,
    count: int,
    width: int,
    scratch: VectorScratch,
    out: Array,
    start: int,
) -> None:
    """Do the same with rows times the roots of their weights."""
    for i in range(np.uintp(count)):
        root, at = broadcast8(np.sqrt(weights[i])), scratch.places[i]
        scratch.places[i] = i * width
        for k in range(np.uintp(0), width, np.uintp(EIGHT)):
            store8(scratch.lines, i * width + k, mul8(root, load8(packed, at + k)))
    add_outer(scratch.lines, scratch.places, count, width, out, start)


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
    total: Array,
) -> None:
    """Write the sums of some rows of one key, where the slopes are those of one operand.

    Where its covariances are read, sum w E[a] E[a]^T is added to the end of the total.
    """
    width, size = np.uintp(mean.width[term]), np.uintp(mean.size[term])
    pulls, weights, out = scratch.pulls[:count], scratch.spare[:count], scratch.block
    other, places = layout_of(mean, term, partner), scratch.places
    for i in range(np.uintp(count)):
        places[i] = place(other, rows, own, np.uintp(first) + i)
    sum_columns(mean.packed, places, pulls, np.uintp(0), width, out)
    sum_columns(mean.packed, places, weights, width, size, out)
    if mean.centred:
        if weights_differ(rows):
            add_weighted_outer(mean.packed, weights, count, width, scratch, total, size)
        else:
            add_outer(mean.packed, places, count, width, total, size)


@bare
def uncentre(total: Array, weight: float, width: int, padded: int, size: int) -> None:
    """Add sum w E[a] E[a]^T to sums of covariances, which become those of second moments.

    A common weight of all rows is not in it yet.
    """
    place = 2 * padded
    for j in range(size, size + padded * padded):
        total[j] *= weight
    for k in range(width):
        total[padded + k] += total[size + k * padded + k]
        for j in range(k + 1, width):
            total[place] += total[size + j * padded + k]
            place += 1


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
    width, size = mean.width[term], mean.size[term]
    aligned = is_pair(mean, term) and mean.width[term] % EIGHT == 0
    partner = 2 * mean.first[term] + 1 - to.operand
    total[:] = 0
    for first in range(begin, end, TILE):
        count = min(TILE, end - first)
        if aligned and not rows.logit:
            pull_and_weigh(mean, rows, term, own, first, count, scratch)
        else:
            observe(mean, rows, own, first, count, scratch.seen, scratch.spare)
            weighted_residuals(mean, rows, term, own, first, count, scratch)
        if aligned:
            if rows.logit:
                scale_rows(mean.scale[term], count, scratch)
            sum_partner(mean, rows, term, partner, own, first, count, scratch, total)
        else:
            sum_product(mean, rows, term, to.operand, own, first, count, scratch)
        for j in range(size):
            total[j] += scratch.block[j]
    if mean.centred:
        weight = 1.0
        if not weights_differ(rows):
            weight = shared_weight(rows, own) * mean.scale[term] * mean.scale[term]
        uncentre(total, weight, to.width, width, size)


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
    losses: Losses,
    spare: LossScratch,
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
                if len(losses.out) > 0:
                    found = loss_of_means(
                        mean, rows, losses.weight, to, m, begin, end, moments, spare
                    )
                    losses.out[m] = found + loss_of_variances(mean, rows, to, m, sums, moments)
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
    losses: Losses,
) -> None:
    """Update all keys but long ones; `natural`, `moments` and `sound` change in place."""
    scratch = scratch_for(mean, to)
    own = (natural, moments, sound, losses, loss_scratch(mean, to.term))
    update_claimed(taken, to, rows, mean, scratch, *own)


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
    sums = np.empty((-(-count // piece), sums_size(mean, to.term)))
    share(add_pieces, to, m, rows, mean, piece, sums)
    return np.asarray(sums.sum(axis=0))


@shared
def add_losses(
    taken: Ints,
    to: Receiver,
    m: int,
    rows: LoopRows,
    mean: Mean,
    moments: Array,
    piece: int,
    weight: Array,
    out: Array,
) -> None:
    """Write the loss of means of each piece of the rows of a key."""
    last, scratch = rows.end[m], loss_scratch(mean, to.term)
    b = claim(taken, 1)
    while b < len(out):
        start = rows.begin[m] + b * piece
        end = min(last, start + piece)
        out[b] = loss_of_means(mean, rows, weight, to, m, start, end, moments, scratch)
        b = claim(taken, 1)


def update_long(
    to: Receiver,
    m: int,
    rows: LoopRows,
    mean: Mean,
    natural: Array,
    moments: Array,
    losses: Losses,
) -> bool:
    """Update a long key; return whether it is a proper MvNormal."""
    padded, sums = int(mean.width[to.term]), sums_of_long(to, m, rows, mean)
    sound = update_from_sums(to, m, padded, sums, system_for(to.width), natural, moments)
    if len(losses.out) > 0:
        out = np.empty(-(-int(rows.end[m] - rows.begin[m]) // LONG))
        share(add_losses, to, m, rows, mean, moments, LONG, losses.weight, out)
        losses.out[m] = out.sum() + loss_of_variances(mean, rows, to, m, sums, moments)
    return bool(sound)
