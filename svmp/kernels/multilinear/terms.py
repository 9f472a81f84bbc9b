"""A mean or logit that is linear in each parent, row by row, as the loops read it.

    mu_e = sum over terms t of c_te * sum_k prod over operands f of x_f[key_f(e), k]

Rows stand those of one key after another's; the moments of all operands stand in one array. Here
are E and var of mu, row by row, and the products that one operand is multiplied by. The plain twin
is network/linear.py.

A Bernoulli with a logit acts as a Normal whose weight and target follow from the moments of its
mean, row by row; that is all by which the two differ. Its plain twin is factors/bernoulli_logit.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.factors.bernoulli_logit import SMALL
from svmp.families.family import Array
from svmp.kernels.machine.compiling import bare, claim, shared
from svmp.kernels.machine.simd import EIGHT, eight, fill, put, sum_of, times, times_plus, unzip
from svmp.kernels.machine.special import exp
from svmp.network.grid import Ints

TILE = 64
"""Rows of a tile from which sums are made: K = 64 factors of them fit the first cache."""
LINE = 16
"""Rows that are turned at a time from one after another to factor by factor."""
BLOCK = 1024
"""Rows that a thread takes at a time where they have no key."""
OWN, ROW, ALL = -1, -2, -3
"""Instead of a column: the key whose rows are read, the row itself, and one for all."""


class Rows(NamedTuple):
    """Rows of a table, those of one key after another's.

    Attributes
    ----------
    begin, end
        Where the rows of each receiving key begin and end.
    columns
        The keys of every row, a line for each column.
    target, coefficients
        The value of every row, and the coefficients of terms that have any, a line each.
    weight, weigher
        Precisions, and by which column they go; or OWN, ROW or ALL.
    logit
        Whether the values are those of a Bernoulli, and the mean is their logit.
    """

    begin: Ints
    end: Ints
    columns: NDArray[np.int32]
    target: NDArray[Any]
    coefficients: NDArray[Any]
    weight: NDArray[Any]
    weigher: int
    logit: bool


class Mean(NamedTuple):
    """The terms of a mean, and the moments of all operands in one array.

    Attributes
    ----------
    packed
        Operand f of term t at key i has K means and then K second moments from
        `start[f] + size[t] i` on.
    start, column
        By operand: where it begins in `packed`, and which column of the rows is its key.
    first, width, size, line
        By term: its first operand, its K, how many numbers a key of its operands has, and its line
        among the coefficients, -1 for none.
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
    size: Ints
    line: Ints
    scale: NDArray[Any]
    intercept: float


@bare
def pack_key(key: int, moments: Array, width: int, padded: int, packed: Array) -> None:
    """Write K means and then K second moments, each with zeros after them."""
    at, start, apart = np.uintp(key * width), np.uintp(2 * key * padded), np.uintp(padded)
    if padded % EIGHT == 0 and key * width + padded <= len(moments):
        for k in range(np.uintp(0), apart, np.uintp(EIGHT)):
            means, squares = unzip(moments, at + k, np.uintp(width) - k, packed)
            put(packed, start + k, means)
            put(packed, start + apart + k, squares)
        return
    for k in range(np.uintp(width)):
        packed[start + k] = moments[at + k, 0]
        packed[start + apart + k] = moments[at + k, 1]
    for k in range(np.uintp(width), apart):
        packed[start + k] = packed[start + apart + k] = 0


@shared
def pack(taken: Ints, moments: Array, width: int, padded: int, packed: Array) -> None:
    """Write the moments of every key as the loops read them."""
    keys = len(moments) // width
    first = claim(taken, TILE)
    while first < keys:
        for key in range(first, min(first + TILE, keys)):
            pack_key(key, moments, width, padded, packed)
        first = claim(taken, TILE)


@bare
def one_of(numbers: Array, m: int) -> float:
    """Return that of a key, where there may be one for all."""
    return numbers[m] if len(numbers) > 1 else numbers[0]


class Reader(NamedTuple):
    """Where the moments of an operand are: its column, where it begins, and how many a key has."""

    column: int
    start: int
    size: int


@bare
def reader(mean: Mean, term: int, operand: int) -> Reader:
    """Return how an operand of a term is read."""
    return Reader(mean.column[operand], mean.start[operand], mean.size[term])


@bare
def place(of: Reader, rows: Rows, own: int, e: int) -> Any:
    """Return where the moments of an operand at a row begin; unsigned, as no place is negative."""
    key = own if of.column == OWN else rows.columns[of.column, e]
    return np.uintp(of.start + of.size * key)


@bare
def coefficient(mean: Mean, rows: Rows, term: int, e: int) -> float:
    """Return what a term is multiplied by at a row."""
    line = mean.line[term]
    return mean.scale[term] * (rows.coefficients[line, e] if line >= 0 else 1)


@bare
def differ(rows: Rows) -> bool:
    """Whether rows of one key may differ in weight."""
    return rows.logit or rows.weigher >= 0 or rows.weigher == ROW


@bare
def shared_weight(rows: Rows, own: int) -> float:
    """Return the weight that all rows of a key have, or 1 where they differ."""
    return 1.0 if differ(rows) else rows.weight[own if rows.weigher == OWN else 0]


@bare
def own_weight(rows: Rows, e: int) -> float:
    """Return the weight of a row, or 1 where all of a key have the same."""
    if rows.weigher >= 0:
        return rows.weight[np.uintp(rows.columns[rows.weigher, e])]
    return rows.weight[e] if rows.weigher == ROW else 1


@bare
def is_alone(mean: Mean, term: int) -> bool:
    """Whether a term is one number of one operand, such as a bias."""
    return mean.first[term + 1] - mean.first[term] == 1 and mean.width[term] == 1


@bare
def partner_of(mean: Mean, term: int, operand: int) -> int:
    """Return the one by which an operand is multiplied, or -1 where it is by more or by less."""
    first = mean.first[term]
    pair = mean.first[term + 1] - first == 2 and mean.line[term] < 0 and mean.scale[term] == 1
    return 2 * first + 1 - operand if pair else -1


@bare
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


@bare
def dot(a: Array, at: int, b: Array, start: int, width: int) -> Any:
    """Return the inner product of K numbers of one array and K of another."""
    whole, sums = width // np.uintp(EIGHT) * np.uintp(EIGHT), fill(a.dtype.type(0))
    for k in range(np.uintp(0), whole, np.uintp(EIGHT)):
        sums = times_plus(eight(a, at + k), eight(b, start + k), sums)
    found = sum_of(sums)
    for k in range(whole, width):
        found += a[at + k] * b[start + k]
    return found


@bare
def add_alone(
    mean: Mean, rows: Rows, term: int, own: int, first: int, count: int, out: Array
) -> None:
    """Add to E[mu] of some rows a term that is one number."""
    this, line, c = reader(mean, term, mean.first[term]), mean.line[term], mean.scale[term]
    if this.column == OWN and line < 0:
        same = c * mean.packed[place(this, rows, own, first)]
        for i in range(count):
            out[i] += same
        return
    for i in range(count):
        slope = c if line < 0 else c * rows.coefficients[line, first + i]
        out[i] += slope * mean.packed[place(this, rows, own, first + i)]


@bare
def add_pair(
    mean: Mean, rows: Rows, term: int, partner: int, own: int, first: int, count: int, out: Array
) -> None:
    """Add to E[mu] of some rows a term that is a dot product of two operands."""
    this, that = reader(mean, term, mean.first[term + 1] - 1), reader(mean, term, partner)
    packed, width = mean.packed, np.uintp(mean.width[term])
    for i in range(count):
        at, other = place(this, rows, own, first + i), place(that, rows, own, first + i)
        out[i] += dot(packed, at, packed, other, width)


@bare
def rest(
    mean: Mean, rows: Rows, skip: int, own: int, first: int, count: int, out: Array, room: Array
) -> None:
    """Write E[mu] of some rows without one term."""
    for i in range(count):
        out[i] = mean.intercept
    for term in range(len(mean.width)):
        last = mean.first[term + 1] - 1
        partner = partner_of(mean, term, last)
        if term == skip:
            continue
        if is_alone(mean, term):
            add_alone(mean, rows, term, own, first, count, out)
        elif partner >= 0:
            add_pair(mean, rows, term, partner, own, first, count, out)
        else:
            this, width = reader(mean, term, last), np.uintp(mean.width[term])
            for i in range(count):
                at = place(this, rows, own, first + i)
                product(mean, rows, term, last, own, first + i, room)
                out[i] += dot(mean.packed, at, room, np.uintp(0), width)


@bare
def spread(a: Array, at: int, b: Array, start: int, width: int) -> tuple[float, float]:
    """E and var of the sum of K independent products, from K means and K second moments each."""
    whole, minus = width // np.uintp(EIGHT) * np.uintp(EIGHT), fill(a.dtype.type(-1))
    ones = squares = fill(a.dtype.type(0))
    for k in range(np.uintp(0), whole, np.uintp(EIGHT)):
        one, other = eight(a, at + k), eight(b, start + k)
        ones, inner = times_plus(one, other, ones), times(one, other)
        squares = times_plus(eight(a, at + width + k), eight(b, start + width + k), squares)
        squares = times_plus(times(minus, inner), inner, squares)
    first, second = sum_of(ones), sum_of(squares)
    for k in range(whole, width):
        product = a[at + k] * b[start + k]
        first += product
        second += a[at + width + k] * b[start + width + k] - product * product
    return first, second


@bare
def add_moments(
    mean: Mean, rows: Rows, term: int, own: int, first: int, count: int, out: Array, room: Array
) -> None:
    """Add E and var of one term of some rows; its slots are independent."""
    packed, zero = mean.packed, np.uintp(0)
    last, width = mean.first[term + 1] - 1, np.uintp(mean.width[term])
    partner, this = partner_of(mean, term, last), reader(mean, term, last)
    if is_alone(mean, term):
        line, c = mean.line[term], mean.scale[term]
        for i in range(count):
            at = place(this, rows, own, first + i)
            slope = c if line < 0 else c * rows.coefficients[line, first + i]
            expected, square = packed[at], packed[at + np.uintp(1)]
            out[0, i] += slope * expected
            out[1, i] += slope * slope * (square - expected * expected)
    elif partner >= 0:
        that = reader(mean, term, partner)
        for i in range(count):
            at, other = place(this, rows, own, first + i), place(that, rows, own, first + i)
            expected, variance = spread(packed, at, packed, other, width)
            out[0, i] += expected
            out[1, i] += variance
    else:
        for i in range(count):
            at = place(this, rows, own, first + i)
            product(mean, rows, term, last, own, first + i, room)
            expected, variance = spread(packed, at, room, zero, width)
            out[0, i] += expected
            out[1, i] += variance


@bare
def moments_of(
    mean: Mean,
    rows: Rows,
    skip: int,
    own: int,
    first: int,
    count: int,
    out: Array,
    rest: Array,
    room: Array,
) -> None:
    """Write E and var of the means of some rows, and E without one term, or with all for -1."""
    terms = len(mean.width)
    for i in range(count):
        out[0, i] = mean.intercept
        out[1, i] = 0
    for turn in range(1, terms + 1):  # that term comes last
        term = (skip + turn) % terms
        if term == skip:
            for i in range(count):
                rest[i] = out[0, i]
        add_moments(mean, rows, term, own, first, count, out, room)


@bare
def tangent(mean: float, variance: float, value: float) -> tuple[float, float]:
    """Return the target and the root of the weight of a Bernoulli, by the moments of its logit."""
    square = mean * mean + variance
    xi = max(np.sqrt(square), SMALL)
    tail = exp(-xi)
    over, under = 1 - tail, 2 * xi * (1 + tail)  # the weight is their ratio
    one = 1 / (over * under)
    weight, inverse = over * over * one, under * under * one
    if xi <= SMALL:
        weight = 0.25 + square * (square * (1 / 480) - 1 / 48)
        inverse = 4 + square * (1 / 3 - square * (1 / 180))
    return (value - 0.5) * inverse, np.sqrt(weight)


@bare
def tangents(rows: Rows, first: int, count: int, out: Array) -> None:
    """Write the same of some rows in the place of the moments of their logits."""
    for i in range(np.uintp(count)):
        out[0, i], out[1, i] = tangent(out[0, i], out[1, i], rows.target[np.uintp(first) + i])
