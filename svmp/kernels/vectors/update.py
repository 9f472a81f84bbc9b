"""The loops of a mean or logit with dot products of vectors, each with a full covariance.

An element x_f[i] is an MvNormal of K entries; a bias is one of a single entry. Seen from it, a row
is mu_e = a_e . x + rest_e, and its message to (x, x x^T) is, with its precision w,

    (w E[a] (y - E[rest]),  -w E[a a^T] / 2).

The three sums that a key is updated from are laid out as its moments are, in vector_terms.py. The
plain twin is network/linear.py.

Moments are (elements, K + K^2) arrays of E[x] and E[x x^T], naturals are (tau mu, -tau / 2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svmp.families.family import Array, Bools
from svmp.kernels.machine.cholesky import invert, solve
from svmp.kernels.machine.compiling import CHUNK, bare, claim, jit, shared
from svmp.kernels.machine.simd import EIGHT, eight, fill, put, times_plus
from svmp.kernels.machine.threads import share
from svmp.kernels.multilinear.terms import (
    TILE,
    Mean,
    Reader,
    Rows,
    one_of,
    place,
    product,
    reader,
    rest,
)
from svmp.kernels.vectors.terms import cross_product, is_pair, observe
from svmp.network.grid import Ints

LONG = 4_096
"""A key with more rows than this is shared between threads, piece by piece."""


@bare
def pull(
    mean: Mean,
    rows: Rows,
    term: int,
    own: int,
    first: int,
    count: int,
    seen: Array,
    room: Array,
    out: Array,
) -> None:
    """Write w (y - E[rest]) of some rows of one key."""
    rest(mean, rows, term, own, first, count, out, room)
    for i in range(count):
        out[i] = (seen[i, 0] - out[i]) * seen[i, 1]


@bare
def sum_columns(
    mean: Mean,
    rows: Rows,
    of: Reader,
    own: int,
    first: int,
    count: int,
    times: Array,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Write the sum over some rows of some numbers of an operand, each row times a factor.

    Thirty-two numbers, or eight, of all rows at a time: their sums are nowhere but in registers.
    """
    packed, eight_on = mean.packed, np.uintp(EIGHT)
    k: Any = begin
    while k + np.uintp(4 * EIGHT) <= end:
        a = b = c = d = fill(packed.dtype.type(0))
        for i in range(count):
            at, many = place(of, rows, own, first + i) + k, fill(times[i])
            a = times_plus(many, eight(packed, at), a)
            b = times_plus(many, eight(packed, at + eight_on), b)
            c = times_plus(many, eight(packed, at + np.uintp(2) * eight_on), c)
            d = times_plus(many, eight(packed, at + np.uintp(3) * eight_on), d)
        for found in (a, b, c, d):
            put(out, k, found)
            k += eight_on
    while k < end:
        found = fill(packed.dtype.type(0))
        for i in range(count):
            at = place(of, rows, own, first + i) + k
            found = times_plus(fill(times[i]), eight(packed, at), found)
        put(out, k, found)
        k += eight_on


@bare
def sum_partner(
    mean: Mean,
    rows: Rows,
    term: int,
    partner: int,
    own: int,
    first: int,
    count: int,
    seen: Array,
    pulls: Array,
    weights: Array,
    total: Array,
) -> None:
    """Write the three sums of some rows of one key, where the slopes are those of one operand."""
    width, size = np.uintp(mean.width[term]), np.uintp(mean.size[term])
    other, scale = reader(mean, term, partner), mean.scale[term]
    for i in range(count):
        pulls[i] *= scale
        weights[i] = seen[i, 1] * scale * scale
    sum_columns(mean, rows, other, own, first, count, pulls, np.uintp(0), width, total)
    sum_columns(mean, rows, other, own, first, count, weights, width, size, total)


@bare
def sum_product(
    mean: Mean,
    rows: Rows,
    term: int,
    operand: int,
    own: int,
    first: int,
    count: int,
    seen: Array,
    pulls: Array,
    room: Array,
    total: Array,
) -> None:
    """Write the three sums of some rows of one key, where the slopes are any product."""
    width, size = mean.width[term], mean.size[term]
    for j in range(size):
        total[j] = 0
    for i in range(count):
        weight = seen[i, 1]
        product(mean, rows, term, operand, own, first + i, room)
        cross_product(mean, rows, term, operand, own, first + i, room[2 * width :])
        for k in range(width):
            total[k] += pulls[i] * room[k]
        for j in range(width, size):
            total[j] += weight * room[j]


@bare
def add_rows(
    mean: Mean,
    rows: Rows,
    to: Receiver,
    m: int,
    begin: int,
    end: int,
    room: Array,
    seen: Array,
    total: Array,
) -> None:
    """Make the three sums of some rows of one key: small blocks as they are, those in double."""
    term, own = to.term, to.keys[m]
    eights = is_pair(mean, term) and mean.width[term] % EIGHT == 0
    partner = 2 * mean.first[term] + 1 - to.operand
    spare, block, pulls = room[0], room[1], room[2]
    total[:] = 0
    for first in range(begin, end, TILE):
        count = min(TILE, end - first)
        observe(mean, rows, own, first, count, seen, spare)
        pull(mean, rows, term, own, first, count, seen, spare, pulls)
        if eights:
            sum_partner(mean, rows, term, partner, own, first, count, seen, pulls, spare, block)
        else:
            sum_product(mean, rows, term, to.operand, own, first, count, seen, pulls, spare, block)
        for j in range(len(total)):
            total[j] += block[j]


@jit
def room_for(mean: Mean) -> Array:
    """Return room for a product, a block of sums and the pulls of a tile."""
    return np.empty((3, max(TILE, mean.size.max())), mean.packed.dtype)


@jit
def square_room(width: int) -> Array:
    """Return room for a system of K rounded up to fours, its inverse, and its solution."""
    padded = (width + 3) // 4 * 4
    return np.empty((2 * padded + 1, padded))


class Receiver(NamedTuple):
    """Who is updated: an operand of a term, and by what besides the rows.

    Attributes
    ----------
    term, operand, width
        The term, which of all operands it is, and its K.
    keys, scale, rho, prior
        The keys, by what the messages of each are multiplied, its step and its prior; each of the
        last three may be one for all.
    at_once
        Whether a new value is seen at once.
    """

    term: int
    operand: int
    width: int
    keys: Ints
    scale: Array
    rho: Array
    prior: Array
    at_once: bool


@bare
def blend(to: Receiver, m: int, padded: int, sums: Array, own: Array, tau: Array) -> float:
    """Move a natural parameter by a step towards its prior and what the rows say.

    Write the lower triangle of its tau; return the sum of all sizes.
    """
    step, scale, width = one_of(to.rho, m), one_of(to.scale, m), to.width
    prior = to.prior[m] if len(to.prior) > 1 else to.prior[0]
    place, total = 2 * padded, 0.0
    for k in range(width):
        own[k] = (1 - step) * own[k] + step * (prior[k] + scale * sums[k])
        total += abs(own[k])
        for j in range(k, width):
            at, back = width + k * width + j, width + j * width + k
            said = sums[padded + k]
            if j > k:
                said = sums[place]
                place += 1
            both = 0.5 * (prior[at] + prior[back]) - 0.5 * scale * said
            own[at] = own[back] = (1 - step) * own[at] + step * both
            tau[j, k] = -2 * own[at]
            total += abs(own[at])
    return total


@bare
def settle(
    to: Receiver, m: int, padded: int, sums: Array, room: Array, natural: Array, moments: Array
) -> bool:
    """Update a key from the sums of its rows, and its moments with it; return if it is sound."""
    size, key, width = room.shape[1], to.keys[m], to.width
    root, mean = room[:size], room[2 * size]
    sound = blend(to, m, padded, sums, natural[key], root) < np.inf
    if not to.at_once:
        return sound
    for k in range(width):
        mean[k] = natural[key, k]
    if not (sound and solve(root[:width], mean[:width])):
        return False
    invert(root, width, room[size : 2 * size])
    own = moments[key]
    for i in range(width):
        own[i] = mean[i]
        for j in range(i + 1):
            second = mean[i] * mean[j] + root[i, j]
            own[width + i * width + j] = own[width + j * width + i] = second
    return True


@bare
def take_keys(
    taken: Ints,
    to: Receiver,
    rows: Rows,
    mean: Mean,
    room: Array,
    seen: Array,
    sums: Array,
    square: Array,
    natural: Array,
    moments: Array,
    sound: Bools,
) -> None:
    """Update keys that no thread has taken yet, until none is left."""
    padded = mean.width[to.term]
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            begin, end = rows.begin[m], rows.end[m]
            if end - begin <= LONG:
                add_rows(mean, rows, to, m, begin, end, room, seen, sums)
                if not settle(to, m, padded, sums, square, natural, moments):
                    sound[m] = False
        first = claim(taken, CHUNK)


@shared
def update(
    taken: Ints,
    to: Receiver,
    rows: Rows,
    mean: Mean,
    natural: Array,
    moments: Array,
    sound: Bools,
) -> None:
    """Update each key but long ones, `natural` and `moments` in place; say which are sound."""
    room, seen = room_for(mean), np.empty((TILE, 2), mean.packed.dtype)
    sums, square = np.empty(mean.size[to.term]), square_room(to.width)
    take_keys(taken, to, rows, mean, room, seen, sums, square, natural, moments, sound)


@shared
def add_pieces(
    taken: Ints, to: Receiver, m: int, rows: Rows, mean: Mean, piece: int, sums: Array
) -> None:
    """Make the three sums of the rows of a key, piece by piece."""
    first, last = rows.begin[m], rows.end[m]
    room, seen = room_for(mean), np.empty((TILE, 2), mean.packed.dtype)
    b = claim(taken, 1)
    while b < len(sums):
        start = first + b * piece
        add_rows(mean, rows, to, m, start, min(last, start + piece), room, seen, sums[b])
        b = claim(taken, 1)


def update_long(
    to: Receiver, m: int, rows: Rows, mean: Mean, natural: Array, moments: Array
) -> bool:
    """Update a key with very many rows: pieces of them in parallel, then their sum in order."""
    count, padded = int(rows.end[m] - rows.begin[m]), int(mean.width[to.term])
    piece = max(LONG // 8, count // 256 + 1)
    sums = np.empty((-(-count // piece), int(mean.size[to.term])))
    share(add_pieces, to, m, rows, mean, piece, sums)
    return settle(to, m, padded, sums.sum(axis=0), square_room(to.width), natural, moments)
