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

import numba
import numpy as np
from numba import get_thread_id, prange  # type: ignore[attr-defined]
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.inference.draws import sample, stream_key
from svmp.network.grid import Ints

FAST = {"contract", "reassoc", "nsz"}
jit: Any = numba.njit(cache=True, fastmath=FAST, error_model="numpy")
inline: Any = numba.njit(cache=True, fastmath=FAST, error_model="numpy", forceinline=True)
parallel: Any = numba.njit(cache=True, parallel=True, fastmath=FAST, error_model="numpy")

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


@inline
def place(mean: Mean, rows: Rows, term: int, operand: int, own: int, e: int) -> int:
    """Return where the moments of an operand at a row begin."""
    column = mean.column[operand]
    key = own if column == OWN else rows.columns[column, e]
    return mean.start[operand] + 2 * mean.width[term] * key


@inline
def coefficient(mean: Mean, rows: Rows, term: int, e: int) -> float:
    """Return what a term is multiplied by at a row."""
    line = mean.line[term]
    return mean.scale[term] * (rows.coefficients[line, e] if line >= 0 else 1)


@inline
def product(
    mean: Mean, rows: Rows, term: int, skip: int, own: int, e: int, a: Array, square: Array
) -> None:
    """Write E[a] and E[a^2] of the product of a term's operands but one, for each of K slots."""
    width, packed = mean.width[term], mean.packed
    c = coefficient(mean, rows, term, e)
    for k in range(width):
        a[k] = c
        square[k] = c * c
    for operand in range(mean.first[term], mean.first[term + 1]):
        if operand != skip:
            at = place(mean, rows, term, operand, own, e)
            for k in range(width):
                a[k] *= packed[at + k]
            for k in range(width):
                square[k] *= packed[at + width + k]


@inline
def rest(mean: Mean, rows: Rows, skip: int, own: int, e: int, a: Array) -> float:
    """Return E[mu] of a row without one term."""
    total = mean.intercept
    for term in range(len(mean.width)):
        if term == skip:
            continue
        width = mean.width[term]
        for operand in range(mean.first[term], mean.first[term + 1]):
            at = place(mean, rows, term, operand, own, e)
            if operand == mean.first[term]:
                for k in range(width):
                    a[k] = mean.packed[at + k]
            else:
                for k in range(width):
                    a[k] *= mean.packed[at + k]
        inner = a[0]
        for k in range(1, width):
            inner += a[k]
        total += coefficient(mean, rows, term, e) * inner
    return total


@inline
def fill(
    mean: Mean,
    rows: Rows,
    term: int,
    operand: int,
    own: int,
    first: int,
    count: int,
    tile: Array,
    stride: int,
    target: Array,
    square: Array,
    room: Array,
) -> None:
    """Gather rows: slopes factor by factor, the target without the other terms, and sum w E[a^2].

    Where rows have weights, slopes and targets are multiplied by their roots. `room` holds K
    numbers for each of a few rows.
    """
    width, packed, weighted = mean.width[term], mean.packed, len(rows.weight) > 1
    alone = len(mean.width) == 1
    begin, end = mean.first[term], mean.first[term + 1]
    lines, second, added = room[:LINE], room[LINE], room[LINE + 1]
    other = room[LINE + 2]
    pair = end - begin == 2 and mean.line[term] < 0
    partner = begin if operand != begin else begin + 1
    column = mean.column[min(partner, end - 1)]
    base, scale = mean.start[min(partner, end - 1)], mean.scale[term]
    for start in range(0, count, LINE):
        here = min(LINE, count - start)
        added[:] = 0
        for i in range(here):
            e = first + start + i
            line = lines[i]
            if pair:
                key = own if column == OWN else rows.columns[column, e]
                at = base + 2 * width * key
                for k in range(width):
                    line[k] = scale * packed[at + k]
                for k in range(width):
                    second[k] = scale * scale * packed[at + width + k]
            else:
                product(mean, rows, term, operand, own, e, line, second)
            if alone:
                target[start + i] = rows.target[e] - mean.intercept
            else:
                target[start + i] = rows.target[e] - rest(mean, rows, term, own, e, other)
            if weighted:
                root = np.sqrt(rows.weight[e])
                target[start + i] *= root
                for k in range(width):
                    line[k] *= root
                    second[k] *= rows.weight[e]
            for k in range(width):
                added[k] += second[k]
        for k in range(width):
            at = k * stride + start
            for i in range(here):
                tile[at + i] = lines[i, k]
            square[k] += added[k]


@jit
def add_outer(tile: Array, count: int, gram: Array) -> None:
    """Add a a^T of the rows of a tile, four by four factors at a time, above the diagonal."""
    for k in range(0, len(gram), 4):
        for m in range(k, len(gram), 4):
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = tile[0, 0] * 0
            s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = tile[0, 0] * 0
            for e in range(count):
                a, b, c, d = tile[k, e], tile[k + 1, e], tile[k + 2, e], tile[k + 3, e]
                x, y, z, w = tile[m, e], tile[m + 1, e], tile[m + 2, e], tile[m + 3, e]
                s00 += a * x
                s01 += a * y
                s02 += a * z
                s03 += a * w
                s10 += b * x
                s11 += b * y
                s12 += b * z
                s13 += b * w
                s20 += c * x
                s21 += c * y
                s22 += c * z
                s23 += c * w
                s30 += d * x
                s31 += d * y
                s32 += d * z
                s33 += d * w
            top, upper, lower, bottom = gram[k], gram[k + 1], gram[k + 2], gram[k + 3]
            top[m] += s00
            top[m + 1] += s01
            top[m + 2] += s02
            top[m + 3] += s03
            upper[m] += s10
            upper[m + 1] += s11
            upper[m + 2] += s12
            upper[m + 3] += s13
            lower[m] += s20
            lower[m + 1] += s21
            lower[m + 2] += s22
            lower[m + 3] += s23
            bottom[m] += s30
            bottom[m + 1] += s31
            bottom[m + 2] += s32
            bottom[m + 3] += s33


@jit
def add_sums(
    mean: Mean,
    rows: Rows,
    term: int,
    operand: int,
    own: int,
    first: int,
    last: int,
    gram: Array,
    linear: Array,
    square: Array,
) -> None:
    """Add the three sums of some rows of one key; `gram` is K by K rounded up to fours."""
    width = mean.width[term]
    tile = np.zeros((len(gram), TILE), mean.packed.dtype)
    flat = tile.reshape(len(gram) * TILE)
    target = np.empty(TILE, mean.packed.dtype)
    room = np.empty((LINE + 3, mean.width.max()), mean.packed.dtype)
    for start in range(first, last, TILE):
        count = min(TILE, last - start)
        fill(mean, rows, term, operand, own, start, count, flat, TILE, target, square, room)
        for k in range(width):
            total = target[0] * 0
            for e in range(count):
                total += tile[k, e] * target[e]
            linear[k] += total
        add_outer(tile, count, gram)


@jit
def blend(natural: Array, step: float, linear: float, square: float) -> None:
    """Move a natural parameter by a step towards what the rows say."""
    natural[0] = (1 - step) * natural[0] + step * linear
    natural[1] = (1 - step) * natural[1] + step * square


@jit
def follow(natural: Array, moments: Array) -> None:
    """Give a Normal the moments of its natural parameter."""
    moments[0] = -0.5 * natural[0] / natural[1]
    moments[1] = moments[0] * moments[0] - 0.5 / natural[1]


@jit
def solve(matrix: Array, vector: Array) -> bool:
    """Solve a system in place by Cholesky's method; return whether it is positive definite."""
    count = len(vector)
    for i in range(count):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i > j:
                matrix[i, j] = total / matrix[j, j]
            elif total > 0:
                matrix[i, i] = np.sqrt(total)
            else:
                return False
    for i in range(count):
        for k in range(i):
            vector[i] -= matrix[i, k] * vector[k]
        vector[i] /= matrix[i, i]
    for i in range(count - 1, -1, -1):
        vector[i] /= matrix[i, i]
        for k in range(i):
            vector[k] -= matrix[i, k] * vector[i]
    return True


class Receiver(NamedTuple):
    """Who is updated: an operand of a term, how far, and by what besides the rows.

    Attributes
    ----------
    keys, scale, rho
        The keys, by what the messages of each are multiplied, and its step.
    prior
        Natural parameters of the prior, K for each key.
    at_once, joint
        Whether a new value is seen at once, and whether the K elements are settled together.
    """

    term: int
    operand: int
    keys: Ints
    scale: Array
    rho: Array
    prior: Array
    at_once: bool
    joint: bool


@jit
def settle(
    to: Receiver, m: int, gram: Array, linear: Array, square: Array, natural: Array, moments: Array
) -> None:
    """Update the K elements of a key from the three sums of its rows."""
    width = len(linear)
    at, step, scale = to.keys[m] * width, to.rho[m], to.scale[m]
    prior = to.prior[m * width : (m + 1) * width]
    for k in range(width):
        linear[k] = prior[k, 0] + scale * linear[k]
        square[k] = scale * square[k] - 2 * prior[k, 1]
        for j in range(k, width):
            gram[k, j] *= scale
            gram[j, k] = gram[k, j]
    together = False
    if to.joint:
        system, means = gram[:width, :width].copy(), linear.copy()
        for k in range(width):
            system[k, k] = square[k]
        together = solve(system, means)
    if not together:  # one after the other
        means = moments[at : at + width, 0].copy()
    for k in range(width):
        total = square[k] * means[k]
        if not together:
            total = linear[k] + gram[k, k] * means[k]
            for j in range(width):
                total -= gram[k, j] * means[j]
        blend(natural[at + k], step, total, -0.5 * square[k])
        if to.at_once:
            follow(natural[at + k], moments[at + k])
            means[k] = moments[at + k, 0]


@parallel
def update_jointly(to: Receiver, rows: Rows, mean: Mean, natural: Array, moments: Array) -> None:
    """Update each key from the three sums of its rows; `natural` and `moments` change in place."""
    width = mean.width[to.term]
    padded = (width + 3) // 4 * 4
    weight = rows.weight[0] if len(rows.weight) == 1 else 1.0
    for m in prange(len(to.keys)):
        gram, linear, square = np.zeros((padded, padded)), np.zeros(width), np.zeros(width)
        first, last = rows.begin[m], rows.end[m]
        add_sums(mean, rows, to.term, to.operand, to.keys[m], first, last, gram, linear, square)
        gram *= weight
        linear *= weight
        square *= weight
        settle(to, m, gram, linear, square, natural, moments)


@parallel
def update_long(
    to: Receiver, m: int, rows: Rows, mean: Mean, natural: Array, moments: Array
) -> None:
    """Update a key with very many rows: blocks of them in parallel, then their sum in order."""
    width = mean.width[to.term]
    padded = (width + 3) // 4 * 4
    weight = rows.weight[0] if len(rows.weight) == 1 else 1.0
    first, last = rows.begin[m], rows.end[m]
    block = max(LONG // 4, (last - first) // 256 + 1)
    blocks = (last - first + block - 1) // block
    grams, linears = np.zeros((blocks, padded, padded)), np.zeros((blocks, width))
    squares = np.zeros((blocks, width))
    for b in prange(blocks):
        start = first + b * block
        end = min(last, start + block)
        add_sums(
            mean,
            rows,
            to.term,
            to.operand,
            to.keys[m],
            start,
            end,
            grams[b],
            linears[b],
            squares[b],
        )
    for b in range(1, blocks):
        grams[0] += grams[b]
        linears[0] += linears[b]
        squares[0] += squares[b]
    settle(to, m, weight * grams[0], weight * linears[0], weight * squares[0], natural, moments)


@parallel
def update_in_turn(
    to: Receiver, rows: Rows, mean: Mean, scratch: Array, natural: Array, moments: Array
) -> None:
    """Update the elements of each key one after the other, with the residuals beside the tile.

    `scratch` has room for the tile of the longest key, once for each thread.
    """
    width, widest = mean.width[to.term], mean.width.max()
    weight = rows.weight[0] if len(rows.weight) == 1 else 1.0
    for m in prange(len(to.keys)):
        own, first = to.keys[m], rows.begin[m]
        count = rows.end[m] - first
        stride = ((count + LINE - 1) // LINE | 1) * LINE  # factors fall into different cache sets
        mine = scratch[get_thread_id()]
        tile, residual = mine[: width * stride], mine[width * stride : width * stride + count]
        room = np.empty((LINE + 3, widest), mean.packed.dtype)
        square = np.zeros(width)
        fill(
            mean, rows, to.term, to.operand, own, first, count, tile, stride, residual, square, room
        )
        at = own * width
        for k in range(width):
            slope, old = tile[k * stride :], tile.dtype.type(moments[at + k, 0])
            for e in range(count):
                residual[e] -= old * slope[e]
        change = residual.dtype.type(0)
        before = tile
        for k in range(width):
            slope, old = tile[k * stride :], moments[at + k, 0]
            inner = power = residual.dtype.type(0)
            for e in range(count):
                residual[e] -= change * before[e]
                inner += slope[e] * residual[e]
                power += slope[e] * slope[e]
            prior, step, scale = to.prior[m * width + k], to.rho[m], to.scale[m] * weight
            blend(
                natural[at + k],
                step,
                prior[0] + scale * (inner + power * old),
                prior[1] - 0.5 * scale * square[k],
            )
            if to.at_once:
                follow(natural[at + k], moments[at + k])
                change = residual.dtype.type(moments[at + k, 0] - old)
                before = slope


@parallel
def update_drawn(
    to: Receiver,
    seed: int,
    iteration: int,
    variable: int,
    most: Ints,
    rows: Rows,
    mean: Mean,
    natural: Array,
    moments: Array,
) -> None:
    """Update each element of each key from rows of its own, drawn anew: Algorithm 1."""
    stream = stream_key(seed, iteration, variable)
    width, widest = mean.width[to.term], mean.width.max()
    for m in prange(len(to.keys)):
        own, first = to.keys[m], rows.begin[m]
        count = rows.end[m] - first
        take = min(most[m], count)
        chosen = np.empty(take, dtype=np.int64)
        slope, second = np.empty(width), np.empty(width)
        other = np.empty(widest)
        scale = count / max(take, 1)
        for k in range(width):
            at = own * width + k
            sample(stream, at, count, take, chosen)
            linear = square = 0.0
            for i in range(take):
                e = first + chosen[i]
                weight = rows.weight[e] if len(rows.weight) > 1 else rows.weight[0]
                product(mean, rows, to.term, to.operand, own, e, slope, second)
                residual = rows.target[e] - rest(mean, rows, to.term, own, e, other)
                for j in range(width):
                    residual -= slope[j] * moments[own * width + j, 0]
                linear += weight * slope[k] * (residual + slope[k] * moments[at, 0])
                square += weight * second[k]
            prior = to.prior[m * width + k]
            blend(
                natural[at], to.rho[m], prior[0] + scale * linear, prior[1] - 0.5 * scale * square
            )
            if to.at_once:
                follow(natural[at], moments[at])


@parallel
def row_moments(rows: Rows, mean: Mean) -> Array:
    """E[mu] and E[mu^2] of each row."""
    count, widest = rows.columns.shape[1], mean.width.max()
    out = np.empty((count, 2))
    for block in prange((count + TILE - 1) // TILE):
        a, square = np.empty(widest), np.empty(widest)
        for e in range(block * TILE, min(count, (block + 1) * TILE)):
            out[e, 0], out[e, 1] = moments_of(mean, rows, 0, e, a, square)
    return out


@inline
def moments_of(
    mean: Mean, rows: Rows, own: int, e: int, a: Array, square: Array
) -> tuple[float, float]:
    """E[mu] and E[mu^2] of one row; slots of a term are independent, and so are terms."""
    total, variance = mean.intercept, 0.0
    for term in range(len(mean.width)):
        begin, width = mean.first[term], mean.width[term]
        if mean.first[term + 1] - begin == 2 and mean.line[term] < 0:
            left = place(mean, rows, term, begin, own, e)
            right = place(mean, rows, term, begin + 1, own, e)
            first = second = 0.0
            for k in range(width):
                inner = mean.packed[left + k] * mean.packed[right + k]
                first += inner
                second -= inner * inner
            for k in range(width, 2 * width):
                second += mean.packed[left + k] * mean.packed[right + k]
            total += mean.scale[term] * first
            variance += mean.scale[term] ** 2 * second
            continue
        product(mean, rows, term, -1, own, e, a, square)
        for k in range(width):
            total += a[k]
            variance += square[k] - a[k] * a[k]
    return total, total * total + variance


@parallel
def squared_residuals(rows: Rows, mean: Mean, keys: Ints) -> Array:
    """Sum of E[(y - mu)^2] over the rows of each key, for known y."""
    out, widest = np.zeros(len(keys)), mean.width.max()
    for m in prange(len(keys)):
        a, square = np.empty(widest), np.empty(widest)
        for e in range(rows.begin[m], rows.end[m]):
            first, second = moments_of(mean, rows, keys[m], e, a, square)
            out[m] += (rows.target[e] - first) ** 2 + (second - first * first)
    return out
