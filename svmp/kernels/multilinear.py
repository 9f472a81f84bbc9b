"""The loops of a Normal whose mean is linear in each parent: biases, dot products, tensors.

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
from numba import get_thread_id, prange  # type: ignore[attr-defined]
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.inference.draws import sample, stream_key
from svmp.kernels.compiling import bare, inline, parallel
from svmp.network.grid import Ints

TILE = 64
"""Rows of a tile from which sums are made: K = 64 factors of them fit the first cache."""
LINE = 16
"""Rows that are turned at a time from one after another to factor by factor."""
LONG = 65_536
"""A key with more rows than this is shared between threads, block by block."""
OWN = -1
"""The column of an operand that stands at the key whose rows are read."""


class Rows(NamedTuple):
    """Rows of a table, those of one key after another's.

    Attributes
    ----------
    begin, end
        Where the rows of each receiving key begin and end.
    columns
        The keys of every row, a line for each column.
    target, weight, coefficients
        The value of every row; its precision, or one number for all; the coefficients of terms
        that have any, a line each.
    """

    begin: Ints
    end: Ints
    columns: NDArray[np.int32]
    target: NDArray[Any]
    weight: NDArray[Any]
    coefficients: NDArray[Any]


class Mean(NamedTuple):
    """The terms of a mean, and the moments of all operands in one array.

    Attributes
    ----------
    packed
        Operand f at key i has K means and then K second moments from `start[f] + 2 K i` on.
    start, column
        By operand: where it begins in `packed`, and which column of the rows is its key.
    first, width, line
        By term: its first operand, its K, and its line among the coefficients, -1 for none.
    scale
        A number by which each term is multiplied.
    intercept
        A number that is added to all of them.
    """

    packed: NDArray[Any]
    start: Ints
    column: Ints
    first: Ints
    width: Ints
    line: Ints
    scale: NDArray[Any]
    intercept: float


class Receiver(NamedTuple):
    """Who is updated: an operand of a term, how far, and by what besides the rows.

    Attributes
    ----------
    term, operand, width
        The term, which of all operands it is, and its K.
    keys, scale, rho
        The keys, by what the messages of each are multiplied, and its step.
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


@bare
def pack(moments: Array, width: int, packed: Array) -> None:
    """Write for each key K means and then K second moments."""
    for key in range(len(moments) // width):
        at, start = np.uintp(key * width), np.uintp(2 * key * width)
        for k in range(np.uintp(width)):
            packed[start + k] = moments[at + k, 0]
            packed[start + np.uintp(width) + k] = moments[at + k, 1]


class Reader(NamedTuple):
    """Where the moments of an operand are: its column, where it begins, and how many a key has."""

    column: int
    start: int
    size: int


@inline
def reader(mean: Mean, term: int, operand: int) -> Reader:
    """Return how an operand of a term is read."""
    return Reader(mean.column[operand], mean.start[operand], 2 * mean.width[term])


@inline
def place(of: Reader, rows: Rows, own: int, e: int) -> Any:
    """Return where the moments of an operand at a row begin; unsigned, as no place is negative."""
    key = own if of.column == OWN else rows.columns[of.column, e]
    return np.uintp(of.start + of.size * key)


@inline
def coefficient(mean: Mean, rows: Rows, term: int, e: int) -> float:
    """Return what a term is multiplied by at a row."""
    line = mean.line[term]
    return mean.scale[term] * (rows.coefficients[line, e] if line >= 0 else 1)


@inline
def partner_of(mean: Mean, term: int, operand: int) -> int:
    """Return the one by which an operand is multiplied, or -1 where it is by more or by less."""
    first = mean.first[term]
    pair = mean.first[term + 1] - first == 2 and mean.line[term] < 0 and mean.scale[term] == 1
    return 2 * first + 1 - operand if pair else -1


@inline
def product(mean: Mean, rows: Rows, term: int, operand: int, own: int, e: int, room: Array) -> None:
    """Write K times E[a] and then K times E[a^2], a being what an operand is multiplied by."""
    width, packed = np.uintp(mean.width[term]), mean.packed
    c = packed.dtype.type(coefficient(mean, rows, term, e))
    for k in range(width):
        room[k] = c
        room[width + k] = c * c
    for other in range(mean.first[term], mean.first[term + 1]):
        if other != operand:
            at = place(reader(mean, term, other), rows, own, e)
            for k in range(2 * width):
                room[k] *= packed[at + k]


@inline
def dot(a: Array, at: int, b: Array, start: int, width: int) -> Any:
    """Return the inner product of K numbers of one array and K of another."""
    total = a.dtype.type(0)
    for k in range(width):
        total += a[at + k] * b[start + k]
    return total


@inline
def rest(
    mean: Mean, rows: Rows, skip: int, own: int, first: int, count: int, out: Array, room: Array
) -> None:
    """Write E[mu] of some rows without one term."""
    packed = mean.packed
    for i in range(count):
        out[i] = mean.intercept
    for term in range(len(mean.width)):
        if term != skip:
            last, width = mean.first[term + 1] - 1, np.uintp(mean.width[term])
            partner, this = partner_of(mean, term, last), reader(mean, term, last)
            that = reader(mean, term, partner)
            for i in range(count):
                at = place(this, rows, own, first + i)
                if partner >= 0:
                    other = place(that, rows, own, first + i)
                    out[i] += dot(packed, at, packed, other, width)
                else:
                    product(mean, rows, term, last, own, first + i, room)
                    out[i] += dot(packed, at, room, np.uintp(0), width)


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
    over become 0. `room` has two lines of twice the largest K.
    """
    width, real = np.uintp(mean.width[term]), mean.packed.dtype.type
    partner, weighted = partner_of(mean, term, operand), len(rows.weight) > 1
    other, added, spare = reader(mean, term, partner), room[0], room[1]
    rest(mean, rows, term, own, first, count, target, spare)
    for k in range(width):
        added[k] = 0
    for i in range(count):
        e = first + i
        root = real(np.sqrt(rows.weight[e])) if weighted else real(1)
        if partner >= 0:
            at = place(other, rows, own, e)
            take(mean.packed, at, width, root, lines[i], added)
        else:
            product(mean, rows, term, operand, own, e, spare)
            take(spare, np.uintp(0), width, root, lines[i], added)
        target[i] = root * (rows.target[e] - target[i])
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
    lines, target = room[2:], tile[padded * TILE :]
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


@bare
def factorise(matrix: Array) -> bool:
    """Replace the lower triangle by its Cholesky factor; return whether it has one."""
    count = len(matrix)
    for j in range(count):
        row = matrix[j]
        square = row[j]
        for k in range(j):
            square -= row[k] * row[k]
        if not square > 0:
            return False
        row[j] = np.sqrt(square)
        inverse = 1 / row[j]
        whole = j + 1 + (count - j - 1) // 4 * 4
        for i in range(j + 1, whole, 4):  # four rows share what is read of this one
            w, x, y, z = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
            a, b, c, d = w[j], x[j], y[j], z[j]
            for k in range(j):
                a -= w[k] * row[k]
                b -= x[k] * row[k]
                c -= y[k] * row[k]
                d -= z[k] * row[k]
            w[j], x[j], y[j], z[j] = a * inverse, b * inverse, c * inverse, d * inverse
        for i in range(whole, count):
            w = matrix[i]
            a = w[j]
            for k in range(j):
                a -= w[k] * row[k]
            w[j] = a * inverse
    return True


@bare
def solve(matrix: Array, vector: Array) -> bool:
    """Solve a system in place by Cholesky's method; return whether it is positive definite."""
    if not factorise(matrix):
        return False
    for i in range(len(vector)):
        row, total = matrix[i], vector[i]
        for k in range(i):
            total -= row[k] * vector[k]
        vector[i] = total / row[i]
    for i in range(len(vector) - 1, -1, -1):
        row = matrix[i]
        found = vector[i] = vector[i] / row[i]
        for k in range(i):
            vector[k] -= row[k] * found
    return True


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
    prior, step = to.prior[min(i, np.uintp(len(to.prior) - 1))], to.rho[m]
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
    at, step, scale = to.keys[m] * width, to.rho[m], to.scale[m] * weight
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
    weight = rows.weight[0] if len(rows.weight) == 1 else 1.0
    sums = np.empty((threads, 2 * padded + 3, padded))
    tiles = np.zeros((threads, (padded + 1) * TILE), mean.packed.dtype)
    rooms = np.empty((threads, LINE + 2, 2 * mean.width.max()), mean.packed.dtype)
    for m in prange(len(to.keys)):
        t = get_thread_id()
        add_sums(mean, rows, to, m, rows.begin[m], rows.end[m], sums[t], tiles[t], rooms[t])
        settle(to, m, weight, sums[t], natural, moments)


@parallel
def update_long(
    to: Receiver, m: int, rows: Rows, mean: Mean, natural: Array, moments: Array
) -> None:
    """Update a key with very many rows: blocks of them in parallel, then their sum in order."""
    padded = padded_width(mean, to.term)
    weight = rows.weight[0] if len(rows.weight) == 1 else 1.0
    first, last = rows.begin[m], rows.end[m]
    block = max(LONG // 4, (last - first) // 256 + 1)
    blocks = (last - first + block - 1) // block
    sums = np.empty((blocks, 2 * padded + 3, padded))
    for b in prange(blocks):
        start = first + b * block
        tile = np.zeros((padded + 1) * TILE, mean.packed.dtype)
        room = np.empty((LINE + 2, 2 * mean.width.max()), mean.packed.dtype)
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
    scale = to.scale[m] * (rows.weight[0] if len(rows.weight) == 1 else 1.0)
    count = rows.end[m] - first
    whole = np.uintp((count + LINE - 1) // LINE * LINE)
    stride = whole | np.uintp(LINE)  # factors fall into different cache sets
    residual, tile = scratch[:whole], scratch[whole:]
    lines, old = room[2 : LINE + 2], room[LINE + 2]
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


@parallel
def update_in_turn(
    to: Receiver, rows: Rows, mean: Mean, scratch: Array, natural: Array, moments: Array
) -> None:
    """Update each key, its elements one after the other.

    `scratch` has room for the tile of the longest key, once for each thread.
    """
    rooms = np.empty((len(scratch), LINE + 3, 2 * mean.width.max()), mean.packed.dtype)
    squares = np.empty((len(scratch), mean.width[to.term]))
    for m in prange(len(to.keys)):
        t = get_thread_id()
        settle_in_turn(to, m, rows, mean, scratch[t], rooms[t], squares[t], natural, moments)


@bare
def settle_drawn(
    to: Receiver,
    m: int,
    stream: np.uint64,
    most: int,
    rows: Rows,
    mean: Mean,
    chosen: Ints,
    room: Array,
    natural: Array,
    moments: Array,
) -> None:
    """Update the elements of a key one after the other, each from rows that it draws."""
    packed, term, operand, own = mean.packed, to.term, to.operand, to.keys[m]
    width, zero = np.uintp(mean.width[term]), np.uintp(0)
    partner, weighted = partner_of(mean, term, operand), len(rows.weight) > 1
    other, alone = reader(mean, term, partner), len(mean.width) == 1
    x, slopes, others, spare = room[0], room[1], room[2], room[3]
    others[0] = mean.intercept
    first, count = rows.begin[m], rows.end[m] - rows.begin[m]
    take = min(most, count)
    scale = count / max(take, 1)
    begin: Any = np.uintp(own) * width
    for k in range(width):
        x[k] = moments[begin + k, 0]
    for k in range(width):
        sample(stream, begin + k, count, take, chosen)
        linear = square = 0.0
        for i in range(take):
            e = first + chosen[i]
            weight = rows.weight[e] if weighted else rows.weight[0]
            if partner >= 0:
                at = place(other, rows, own, e)
                inner = dot(packed, at, x, zero, width)
                slope, second = packed[at + k], packed[at + width + k]
            else:
                product(mean, rows, term, operand, own, e, slopes)
                inner = dot(slopes, zero, x, zero, width)
                slope, second = slopes[k], slopes[width + k]
            if not alone:
                rest(mean, rows, term, own, e, 1, others, spare)
            linear += weight * slope * (rows.target[e] - others[0] - inner + slope * x[k])
            square += weight * second
        linear, square = scale * linear, -0.5 * scale * square
        blend(to, m, np.uintp(m) * width + k, begin + k, linear, square, natural)
        if to.at_once:
            x[k] = follow(natural, moments, begin + k)


@parallel
def update_drawn(
    to: Receiver,
    seed: int,
    iteration: int,
    variable: int,
    most: Ints,
    rows: Rows,
    mean: Mean,
    threads: int,
    natural: Array,
    moments: Array,
) -> None:
    """Update each element of each key from rows of its own, drawn anew: Algorithm 1."""
    stream = stream_key(seed, iteration, variable)
    rooms = np.empty((threads, 4, 2 * mean.width.max()), mean.packed.dtype)
    picks = np.empty((threads, most.max()), dtype=np.int64)
    for m in prange(len(to.keys)):
        t = get_thread_id()
        settle_drawn(to, m, stream, most[m], rows, mean, picks[t], rooms[t], natural, moments)


@inline
def spread(a: Array, at: int, b: Array, start: int, width: int) -> tuple[float, float]:
    """E and var of the sum of K independent products, from K means and K second moments each."""
    first = second = 0.0
    for k in range(width):
        inner = a[at + k] * b[start + k]
        first += inner
        second += a[at + width + k] * b[start + width + k] - inner * inner
    return first, second


@inline
def moments_of(
    mean: Mean, rows: Rows, own: int, first: int, count: int, out: Array, room: Array
) -> None:
    """Write E and var of the means of some rows; terms are independent, and so are their slots."""
    for i in range(count):
        out[i, 0] = mean.intercept
        out[i, 1] = 0
    for term in range(len(mean.width)):
        last, width = mean.first[term + 1] - 1, np.uintp(mean.width[term])
        partner, this = partner_of(mean, term, last), reader(mean, term, last)
        that = reader(mean, term, partner)
        for i in range(count):
            at = place(this, rows, own, first + i)
            if partner >= 0:
                other = place(that, rows, own, first + i)
                expected, variance = spread(mean.packed, at, mean.packed, other, width)
            else:
                product(mean, rows, term, last, own, first + i, room)
                expected, variance = spread(mean.packed, at, room, np.uintp(0), width)
            out[i, 0] += expected
            out[i, 1] += variance


@parallel
def row_moments(rows: Rows, mean: Mean) -> Array:
    """E[mu] and E[mu^2] of each row."""
    count = rows.columns.shape[1]
    out = np.empty((count, 2))
    for block in prange((count + TILE - 1) // TILE):
        room, first = np.empty(2 * mean.width.max()), block * TILE
        found = out[first : first + TILE]
        moments_of(mean, rows, 0, first, len(found), found, room)
        for i in range(len(found)):
            found[i, 1] += found[i, 0] * found[i, 0]
    return out


@parallel
def squared_residuals(rows: Rows, mean: Mean, keys: Ints, threads: int) -> Array:
    """Sum of E[(y - mu)^2] over the rows of each key, for known y."""
    out = np.empty(len(keys))
    rooms, founds = np.empty((threads, 2 * mean.width.max())), np.empty((threads, LINE, 2))
    for m in prange(len(keys)):
        room, found, total = rooms[get_thread_id()], founds[get_thread_id()], 0.0
        for first in range(rows.begin[m], rows.end[m], LINE):
            count = min(LINE, rows.end[m] - first)
            moments_of(mean, rows, keys[m], first, count, found, room)
            for i in range(count):
                total += (rows.target[first + i] - found[i, 0]) ** 2 + found[i, 1]
        out[m] = total
    return out
