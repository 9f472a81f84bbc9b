"""The loops of a mean or logit that is linear in each parent: biases, dot products, tensors.

    mu_e = sum over terms t of c_te * sum_k prod over operands f of x_f[key_f(e), k]

Seen from one operand's key, a row is mu_e = a_e . x + rest_e with K slopes a_e. They are read in
the precision of the data, and used in one of two ways.

- From three sums over the rows: gram = sum w a a^T, linear = sum w a (y - rest) and square =
  sum w E[a^2]. The K elements follow without reading a row again, one after the other or all at
  once (`joint`). That costs O(K^2) a row, but for few elements less than what comes next.
- With the slopes turned into a tile, factor by factor, and the residual y - E[mu] beside it, each
  element takes one pass for its sum, which also takes the change of the element before out of the
  residual. All K together cost O(K) a row.

Keys do not depend on each other, so they run in parallel, with the same bits on any number of
threads. The plain twins are network/linear.py and inference/joint.py.

Moments are (elements, 2) arrays of E[x] and E[x^2], naturals are (tau mu, -tau / 2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmp.families.family import Array, Bools
from svmp.kernels.machine.cholesky import solve
from svmp.kernels.machine.compiling import CHUNK, bare, claim, jit, shared
from svmp.kernels.machine.simd import EIGHT, eight, fill, put, sum_of, times_plus, turn
from svmp.kernels.machine.threads import share
from svmp.kernels.multilinear.slopes import Room, gather, in_eights, room_for
from svmp.kernels.multilinear.sums import add_sums, sums_for
from svmp.kernels.multilinear.terms import LINE, Mean, Rows, one_of, shared_weight
from svmp.network.grid import Ints

LONG = 65_536
"""A key with more rows than this is shared between threads, block by block."""
FEW = 16
"""So many elements are settled from sums, even one after the other."""


class Receiver(NamedTuple):
    """Who is updated: an operand of a term, how far, and by what besides the rows.

    Attributes
    ----------
    term, operand, width
        The term, which of all operands it is, and its K.
    keys, scale, rho
        The keys, by what the messages of each are multiplied, and its step; or one for all.
    prior
        Natural parameters of the prior, K for each key, or for all of them.
    at_once, joint
        Whether a new value is seen at once, and whether the K elements are settled together.
    """

    term: int
    operand: int
    width: int
    keys: Ints
    scale: Array
    rho: Array
    prior: Array
    at_once: bool
    joint: bool


@bare
def follow(natural: Array, moments: Array, at: int) -> float:
    """Give a Normal the moments of its natural parameter; return its mean."""
    variance = -0.5 / natural[at, 1]
    mean = variance * natural[at, 0]
    moments[at, 0] = mean
    moments[at, 1] = mean * mean + variance
    return mean


@bare
def blend(
    to: Receiver, m: int, k: int, at: int, linear: float, square: float, natural: Array
) -> None:
    """Move an element by a step towards its prior and what the rows say."""
    prior = to.prior[np.uintp(k if len(to.prior) == to.width else m * to.width + k)]
    step = one_of(to.rho, m)
    natural[at, 0] = (1 - step) * natural[at, 0] + step * (prior[0] + linear)
    natural[at, 1] = (1 - step) * natural[at, 1] + step * (prior[1] + square)


@bare
def are_normals(natural: Array, first: int, width: int) -> bool:
    """Whether the natural parameters of some elements are those of Normals."""
    sound = True
    for at in range(np.uintp(first), np.uintp(first + width)):
        linear, square = natural[at, 0], natural[at, 1]
        sound &= (abs(linear) < np.inf) & (square < 0) & (square > -np.inf)
    return sound


@bare
def mirror(gram: Array) -> None:
    """Write the blocks of a a^T above the diagonal, which are made up to it, eight by eight."""
    for k in range(EIGHT, len(gram)):
        for j in range(k // EIGHT * EIGHT):
            gram[j, k] = gram[k, j]


@bare
def in_turn_by_sums(
    to: Receiver, m: int, scale: float, sums: Array, natural: Array, moments: Array
) -> None:
    """Update the K elements of a key one after the other, from its sums with the prior in them.

    Beside them stands what all elements together explain, gram E[x], and follows each that moves.
    """
    padded, width = np.uintp(sums.shape[1]), np.uintp(to.width)
    gram, explained = sums[:padded], sums[padded]
    linear, square, means = sums[2 * padded], sums[2 * padded + 1], sums[2 * padded + 2]
    at, step = np.uintp(to.keys[m]) * width, one_of(to.rho, m)
    mirror(gram)
    for k in range(width):
        means[k] = moments[at + k, 0]
    for j in range(np.uintp(0), padded, np.uintp(EIGHT)):
        found = fill(0.0)
        for k in range(width):
            found = times_plus(fill(means[k]), eight(gram[k], j), found)
        put(explained, j, found)
    for k in range(width):
        total = linear[k] - scale * (explained[k] - gram[k, k] * means[k])
        natural[at + k, 0] = (1 - step) * natural[at + k, 0] + step * total
        natural[at + k, 1] = (1 - step) * natural[at + k, 1] - 0.5 * step * square[k]
        if to.at_once:
            change = fill(follow(natural, moments, at + k) - means[k])
            for j in range(np.uintp(0), padded, np.uintp(EIGHT)):
                put(explained, j, times_plus(change, eight(gram[k], j), eight(explained, j)))


@bare
def settle(
    to: Receiver, m: int, weight: float, sums: Array, natural: Array, moments: Array
) -> None:
    """Update the K elements of a key from the three sums of its rows."""
    padded, width = sums.shape[1], to.width
    gram, system = sums[:padded], sums[padded : padded + width]
    linear, square, means = sums[2 * padded], sums[2 * padded + 1], sums[2 * padded + 2]
    at, step, scale = to.keys[m] * width, one_of(to.rho, m), one_of(to.scale, m) * weight
    for k in range(width):
        prior = to.prior[k if len(to.prior) == width else m * width + k]
        linear[k] = prior[0] + scale * linear[k]
        square[k] = scale * square[k] - 2 * prior[1]
        means[k] = linear[k]
    together = False
    if to.joint:
        for k in range(width):
            row, found = system[k], gram[k]
            for j in range(k):
                row[j] = scale * found[j]
            row[k] = square[k]
        together = solve(system, means[:width])
    if not together:
        in_turn_by_sums(to, m, scale, sums, natural, moments)
        return
    for k in range(width):
        total = square[k] * means[k]
        natural[at + k, 0] = (1 - step) * natural[at + k, 0] + step * total
        natural[at + k, 1] = (1 - step) * natural[at + k, 1] - 0.5 * step * square[k]
        if to.at_once:
            follow(natural, moments, at + k)


@bare
def turn_lines(
    room: Room, padded: int, count: int, residual: Array, tile: Array, stride: int, start: int
) -> None:
    """Write the slopes of at most LINE rows factor by factor, and their residuals."""
    for i in range(count, LINE):
        room.target[i] = 0
        for k in range(padded):
            room.lines[np.uintp(i) * padded + k] = 0
    for i in range(np.uintp(0), np.uintp(LINE), np.uintp(EIGHT)):
        left = eight(room.target, i)
        for k in range(np.uintp(0), padded, np.uintp(EIGHT)):
            turn(room.lines, i * padded + k, padded, tile, k * stride + start + i, stride)
        for k in range(padded):
            left = times_plus(fill(-room.own[k]), eight(tile, k * stride + start + i), left)
        put(residual, start + i, left)


@bare
def settle_in_turn(
    to: Receiver,
    m: int,
    rows: Rows,
    mean: Mean,
    scratch: Array,
    room: Room,
    natural: Array,
    moments: Array,
) -> None:
    """Update the elements of a key one after the other, with the residuals beside the tile."""
    width, padded, own = to.width, np.uintp(in_eights(to.width)), to.keys[m]
    first, count = rows.begin[m], rows.end[m] - rows.begin[m]
    scale, at = one_of(to.scale, m) * shared_weight(rows, own), np.uintp(own * width)
    whole = np.uintp((count + LINE - 1) // LINE * LINE)
    stride = whole | np.uintp(LINE)  # factors fall into different cache sets
    residual, tile = scratch[:whole], scratch[whole:]
    room.square[:] = 0
    for k in range(np.uintp(width)):
        room.own[k] = moments[at + k, 0]
    for start in range(0, count, LINE):
        here = min(LINE, count - start)
        gather(mean, rows, to.term, to.operand, own, first + start, here, room, room.square)
        turn_lines(room, padded, here, residual, tile, stride, np.uintp(start))
    zero = tile.dtype.type(0)
    change, before, half = zero, np.uintp(0), np.uintp(EIGHT)
    for k in range(np.uintp(width)):
        this, back = k * stride, fill(-change)
        inner = other = power = rest = fill(zero)
        for e in range(np.uintp(0), whole, np.uintp(LINE)):
            left = times_plus(back, eight(tile, before + e), eight(residual, e))
            right = times_plus(back, eight(tile, before + e + half), eight(residual, e + half))
            put(residual, e, left)
            put(residual, e + half, right)
            a, b = eight(tile, this + e), eight(tile, this + e + half)
            inner, other = times_plus(a, left, inner), times_plus(b, right, other)
            power, rest = times_plus(a, a, power), times_plus(b, b, rest)
        squares = sum_of(power) + sum_of(rest)
        linear = scale * (sum_of(inner) + sum_of(other) + squares * moments[at + k, 0])
        blend(to, m, k, at + k, linear, -0.5 * scale * room.square[k], natural)
        if to.at_once:
            change = tile.dtype.type(follow(natural, moments, at + k) - room.own[k])
            before = this


@bare
def by_sums(to: Receiver) -> bool:
    """Whether the elements of a key are settled from sums."""
    return to.joint or to.width <= FEW


@bare
def settle_whole(
    to: Receiver,
    m: int,
    rows: Rows,
    mean: Mean,
    sums: Array,
    scratch: Array,
    room: Room,
    natural: Array,
    moments: Array,
) -> bool:
    """Update a key from all of its rows; return whether it is sound."""
    if by_sums(to):
        place = (to.term, to.operand, to.keys[m], rows.begin[m], rows.end[m])
        add_sums(mean, rows, *place, sums, room)
        settle(to, m, shared_weight(rows, to.keys[m]), sums, natural, moments)
    else:
        settle_in_turn(to, m, rows, mean, scratch, room, natural, moments)
    return are_normals(natural, to.keys[m] * to.width, to.width)


@jit
def scratch_for(to: Receiver, rows: Rows, most: Ints) -> int:
    """Return the room that the tile and the residuals of a key need, at most.

    Keys that have more rows than `most` of them, or than LONG, need none.
    """
    longest = 0
    if by_sums(to):
        return longest
    for m in range(len(to.keys)):
        count = rows.end[m] - rows.begin[m]
        if count <= LONG and (len(most) == 0 or count <= most[m]):
            longest = max(longest, count)
    return (longest // LINE + 3) * LINE * (in_eights(to.width) + 1)


@bare
def take_keys(
    taken: Ints,
    to: Receiver,
    rows: Rows,
    mean: Mean,
    sums: Array,
    scratch: Array,
    room: Room,
    natural: Array,
    moments: Array,
    sound: Bools,
) -> None:
    """Update keys that no thread has taken yet, until none is left."""
    own = (sums, scratch, room, natural, moments)
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            short = rows.end[m] - rows.begin[m] <= LONG
            if short and not settle_whole(to, m, rows, mean, *own):
                sound[m] = False  # hardly ever: threads do not write side by side
        first = claim(taken, CHUNK)


@shared
def update_whole(
    taken: Ints, to: Receiver, rows: Rows, mean: Mean, natural: Array, moments: Array, sound: Bools
) -> None:
    """Update each key but long ones; `natural`, `moments` and `sound` change in place."""
    scratch = np.empty(scratch_for(to, rows, taken[:0]), mean.packed.dtype)
    room, sums = room_for(mean, to.width), sums_for(to.width)
    take_keys(taken, to, rows, mean, sums, scratch, room, natural, moments, sound)


@shared
def add_pieces(
    taken: Ints, to: Receiver, m: int, rows: Rows, mean: Mean, piece: int, sums: Array
) -> None:
    """Make the three sums of the rows of a key, piece by piece."""
    first, last, room = rows.begin[m], rows.end[m], room_for(mean, to.width)
    b = claim(taken, 1)
    while b < len(sums):
        start = first + b * piece
        place = (to.term, to.operand, to.keys[m], start, min(last, start + piece))
        add_sums(mean, rows, *place, sums[b], room)
        b = claim(taken, 1)


def update_long(
    to: Receiver, m: int, rows: Rows, mean: Mean, natural: Array, moments: Array
) -> bool:
    """Update a key with very many rows: pieces of them in parallel, then their sum in order."""
    count = int(rows.end[m] - rows.begin[m])
    piece = max(LONG // 4, count // 256 + 1)
    sums = np.zeros((-(-count // piece), *sums_for(to.width).shape))
    share(add_pieces, to, m, rows, mean, piece, sums)
    weight = shared_weight(rows, int(to.keys[m]))
    settle(to, m, weight, sums.sum(axis=0), natural, moments)
    return are_normals(natural, int(to.keys[m]) * to.width, to.width)
