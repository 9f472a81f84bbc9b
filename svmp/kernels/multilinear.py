"""The loops of a mean or logit that is linear in each parent: biases, dot products, tensors.

    mu_e = sum over terms t of c_te * sum_k prod over operands f of x_f[key_f(e), k]

Seen from one operand's key, a row is mu_e = a_e . x + rest_e with K slopes a_e. They are gathered
into a tile, factor by factor, in the precision of the data, and used in one of two ways.

- One element after the other: with the residual y - E[mu] beside the tile, each element takes one
  pass for its sum, which also takes the change of the element before out of the residual. All K
  together cost O(K) a row.
- All K at once (`joint`), or a key with very many rows: what the rows say about x are three sums,
  gram = sum w a a^T, linear = sum w a (y - rest) and square = sum w E[a^2], from which the K
  elements follow without reading a row again. That costs O(K^2) a row.

Keys do not depend on each other, so they run in parallel, with the same bits on any number of
threads. The plain twins are network/linear.py and inference/joint.py.

Moments are (elements, 2) arrays of E[x] and E[x^2], naturals are (tau mu, -tau / 2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange

from svmp.families.family import Array
from svmp.kernels.cholesky import solve
from svmp.kernels.compiling import CHUNK, bare, claim, inline, parallel
from svmp.kernels.terms import (
    LINE,
    TILE,
    Mean,
    Rows,
    dot,
    observe,
    one_of,
    partner_of,
    place,
    product,
    reader,
    rest,
)
from svmp.network.grid import Ints

LONG = 65_536
"""A key with more rows than this is shared between threads, block by block."""


class Receiver(NamedTuple):
    """Who is updated: an operand of a term, how far, and by what besides the rows.

    Attributes
    ----------
    term, operand, width
        The term, which of all operands it is, and its K.
    keys, scale, rho
        The keys, by what the messages of each are multiplied, and its step; or one for all.
    prior
        Natural parameters of the prior, K for each key, or one for all.
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


@inline
def shared_weight(rows: Rows) -> float:
    """Return the weight that all rows have, or 1 where each has its own."""
    return rows.weight[0] if len(rows.weight) == 1 else 1.0


@inline
def take(source: Array, at: int, width: int, root: float, line: Array, square: Array) -> None:
    """Copy the K slopes of a row, times a number, and add up their second moments."""
    for k in range(width):
        line[k] = root * source[at + k]
        square[k] += root * root * source[at + width + k]


@inline
def gather(
    mean: Mean,
    rows: Rows,
    term: int,
    operand: int,
    own: int,
    first: int,
    count: int,
    lines: Array,
    target: Array,
    square: Array,
    room: Array,
) -> None:
    """Read at most LINE rows: their slopes, their targets without other terms, and sum w E[a^2].

    Where rows have weights, slopes and targets are multiplied by their roots. Lines that are left
    over become 0. `room` has lines of twice the largest K: two, and as many as rows.
    """
    width, partner = np.uintp(mean.width[term]), partner_of(mean, term, operand)
    other, added, spare, seen = reader(mean, term, partner), room[0], room[1], room[2:]
    observe(mean, rows, own, first, count, seen, spare)
    rest(mean, rows, term, own, first, count, target, spare)
    for k in range(width):
        added[k] = 0
    for i in range(count):
        e, root = first + i, seen[i, 1]
        if partner >= 0:
            at = place(other, rows, own, e)
            take(mean.packed, at, width, root, lines[i], added)
        else:
            product(mean, rows, term, operand, own, e, spare)
            take(spare, np.uintp(0), width, root, lines[i], added)
        target[i] = root * (seen[i, 0] - target[i])
    for i in range(count, LINE):
        target[i] = 0
        for k in range(width):
            lines[i, k] = 0
    for k in range(width):
        square[k] += added[k]


@inline
def turn(lines: Array, width: int, tile: Array, stride: int, start: int) -> None:
    """Write the slopes of LINE rows factor by factor."""
    for k in range(width):
        at = k * stride + start
        for i in range(np.uintp(LINE)):
            tile[at + i] = lines[i, k]


@bare
def add_outer(tile: Array, stride: int, count: int, gram: Array) -> None:
    """Add a a^T of the rows of a tile, four by two factors at a time, below the diagonal."""
    for k in range(0, len(gram), 2):
        a, b = tile[k * stride :], tile[(k + 1) * stride :]
        for m in range(k // 4 * 4, len(gram), 4):
            w, x = tile[m * stride :], tile[(m + 1) * stride :]
            y, z = tile[(m + 2) * stride :], tile[(m + 3) * stride :]
            aw = ax = ay = az = bw = bx = by = bz = tile.dtype.type(0)
            for e in range(count):
                aw += a[e] * w[e]
                ax += a[e] * x[e]
                ay += a[e] * y[e]
                az += a[e] * z[e]
                bw += b[e] * w[e]
                bx += b[e] * x[e]
                by += b[e] * y[e]
                bz += b[e] * z[e]
            gram[m, k] += aw
            gram[m + 1, k] += ax
            gram[m + 2, k] += ay
            gram[m + 3, k] += az
            gram[m, k + 1] += bw
            gram[m + 1, k + 1] += bx
            gram[m + 2, k + 1] += by
            gram[m + 3, k + 1] += bz


@bare
def add_sums(
    mean: Mean,
    rows: Rows,
    to: Receiver,
    m: int,
    first: int,
    last: int,
    sums: Array,
    tile: Array,
    room: Array,
) -> None:
    """Make the three sums of some rows of one key.

    `sums` has lines of K rounded up to fours: as many for the sum of a a^T, as many for the system
    that is made of it, and one each for the other two sums and the solution. `tile` has room for
    TILE rows of as many factors and their targets, and begins as zeros.
    """
    width, padded, stride = np.uintp(mean.width[to.term]), sums.shape[1], np.uintp(TILE)
    gram, linear, square = sums[:padded], sums[2 * padded], sums[2 * padded + 1]
    lines, target = room[LINE + 2 :], tile[padded * TILE :]
    gram[:] = 0
    linear[:] = 0
    square[:] = 0
    for start in range(first, last, TILE):
        count = min(TILE, last - start)
        for i in range(0, count, LINE):
            here, at, part = min(LINE, count - i), start + i, target[i:]
            gather(mean, rows, to.term, to.operand, to.keys[m], at, here, lines, part, square, room)
            turn(lines, width, tile, stride, np.uintp(i))
        whole = np.uintp((count + LINE - 1) // LINE * LINE)
        for k in range(width):
            linear[k] += dot(tile, k * stride, target, np.uintp(0), whole)
        add_outer(tile, TILE, whole, gram)


@inline
def follow(natural: Array, moments: Array, at: int) -> float:
    """Give a Normal the moments of its natural parameter; return its mean."""
    variance = -0.5 / natural[at, 1]
    mean = variance * natural[at, 0]
    moments[at, 0] = mean
    moments[at, 1] = mean * mean + variance
    return mean


@inline
def blend(
    to: Receiver, m: int, i: Any, at: int, linear: float, square: float, natural: Array
) -> None:
    """Move an element by a step towards its prior and what the rows say."""
    prior, step = to.prior[min(i, np.uintp(len(to.prior) - 1))], one_of(to.rho, m)
    natural[at, 0] = (1 - step) * natural[at, 0] + step * (prior[0] + linear)
    natural[at, 1] = (1 - step) * natural[at, 1] + step * (prior[1] + square)


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
        prior = to.prior[min(m * width + k, len(to.prior) - 1)]
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
        for k in range(width):
            means[k] = moments[at + k, 0]
    for k in range(width):
        total = square[k] * means[k]
        if not together:  # one after the other
            total = linear[k]
            for j in range(width):
                if j != k:
                    total -= scale * gram[max(j, k), min(j, k)] * means[j]
        natural[at + k, 0] = (1 - step) * natural[at + k, 0] + step * total
        natural[at + k, 1] = (1 - step) * natural[at + k, 1] - 0.5 * step * square[k]
        if to.at_once:
            means[k] = follow(natural, moments, at + k)


@inline
def padded_width(mean: Mean, term: int) -> int:
    """Return K rounded up to fours, in which the sums of a a^T are made."""
    return (mean.width[term] + 3) // 4 * 4


@parallel
def update_jointly(
    to: Receiver, rows: Rows, mean: Mean, threads: int, natural: Array, moments: Array
) -> None:
    """Update each key from the three sums of its rows; `natural` and `moments` change in place."""
    padded = padded_width(mean, to.term)
    weight = shared_weight(rows)
    taken = np.zeros(1, np.int64)
    for _ in prange(threads):
        sums = np.empty((2 * padded + 3, padded))
        tile = np.zeros((padded + 1) * TILE, mean.packed.dtype)
        room = np.empty((2 * LINE + 2, 2 * mean.width.max()), mean.packed.dtype)
        first = claim(taken)
        while first < len(to.keys):
            for m in range(first, min(first + CHUNK, len(to.keys))):
                begin, end = rows.begin[m], rows.end[m]
                if end - begin <= LONG:
                    add_sums(mean, rows, to, m, begin, end, sums, tile, room)
                    settle(to, m, weight, sums, natural, moments)
            first = claim(taken)


@parallel
def update_long(
    to: Receiver, m: int, rows: Rows, mean: Mean, natural: Array, moments: Array
) -> None:
    """Update a key with very many rows: blocks of them in parallel, then their sum in order."""
    padded = padded_width(mean, to.term)
    weight = shared_weight(rows)
    first, last = rows.begin[m], rows.end[m]
    block = max(LONG // 4, (last - first) // 256 + 1)
    blocks = (last - first + block - 1) // block
    sums = np.empty((blocks, 2 * padded + 3, padded))
    for b in prange(blocks):
        start = first + b * block
        tile = np.zeros((padded + 1) * TILE, mean.packed.dtype)
        room = np.empty((2 * LINE + 2, 2 * mean.width.max()), mean.packed.dtype)
        add_sums(mean, rows, to, m, start, min(last, start + block), sums[b], tile, room)
    for b in range(1, blocks):
        sums[0] += sums[b]
    settle(to, m, weight, sums[0], natural, moments)


@bare
def settle_in_turn(
    to: Receiver,
    m: int,
    rows: Rows,
    mean: Mean,
    scratch: Array,
    room: Array,
    square: Array,
    natural: Array,
    moments: Array,
) -> None:
    """Update the elements of a key one after the other, with the residuals beside the tile."""
    width, own, first = np.uintp(mean.width[to.term]), to.keys[m], rows.begin[m]
    scale = one_of(to.scale, m) * shared_weight(rows)
    count = rows.end[m] - first
    whole = np.uintp((count + LINE - 1) // LINE * LINE)
    stride = whole | np.uintp(LINE)  # factors fall into different cache sets
    residual, tile = scratch[:whole], scratch[whole:]
    lines, old = room[LINE + 2 : 2 * LINE + 2], room[2 * LINE + 2]
    at = np.uintp(own) * width
    for k in range(width):
        square[k] = 0
        old[k] = moments[at + k, 0]
    for start in range(0, count, LINE):
        here, part = min(LINE, count - start), residual[start : start + LINE]
        gather(mean, rows, to.term, to.operand, own, first + start, here, lines, part, square, room)
        for i in range(LINE):
            part[i] -= dot(lines[i], np.uintp(0), old, np.uintp(0), width)
        turn(lines, width, tile, stride, np.uintp(start))
    change, before = residual.dtype.type(0), tile
    for k in range(width):
        slope = tile[k * stride : k * stride + whole]
        inner = power = residual.dtype.type(0)
        for e in range(whole):
            residual[e] -= change * before[e]
            inner += slope[e] * residual[e]
            power += slope[e] * slope[e]
        linear = scale * (inner + power * moments[at + k, 0])
        blend(to, m, np.uintp(m) * width + k, at + k, linear, -0.5 * scale * square[k], natural)
        if to.at_once:
            change = residual.dtype.type(follow(natural, moments, at + k) - old[k])
            before = slope


@inline
def scratch_for(rows: Rows, m: int, width: int) -> int:
    """Return the room that a key needs for its tile and its residuals."""
    return ((rows.end[m] - rows.begin[m]) // LINE + 3) * LINE * (width + 1)


@parallel
def update_in_turn(
    to: Receiver, rows: Rows, mean: Mean, threads: int, natural: Array, moments: Array
) -> None:
    """Update each key, its elements one after the other."""
    taken, most = np.zeros(1, np.int64), 0
    for m in range(len(to.keys)):
        if rows.end[m] - rows.begin[m] <= LONG:
            most = max(most, scratch_for(rows, m, to.width))
    for _ in prange(threads):
        scratch, square = np.empty(most, mean.packed.dtype), np.empty(to.width)
        room = np.empty((2 * LINE + 3, 2 * mean.width.max()), mean.packed.dtype)
        first = claim(taken)
        while first < len(to.keys):
            for m in range(first, min(first + CHUNK, len(to.keys))):
                if rows.end[m] - rows.begin[m] <= LONG:
                    settle_in_turn(to, m, rows, mean, scratch, room, square, natural, moments)
            first = claim(taken)
