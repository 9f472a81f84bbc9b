"""A mean or logit that is linear in each parent, row by row, as the loops read it.

    mu_e = sum over terms t of c_te * sum_k prod over operands f of x_f[key_f(e), k]

Rows are sorted by the key that is updated, and the moments of all operands are in one array. This
file computes E[mu] and Var[mu] of rows, and the products that one operand is multiplied by. The
plain version is network/means/linear.py.

A Bernoulli with a logit acts as a Normal whose weight and target follow from the moments of the
logit of each row; nothing else differs. Its plain version is factors/bernoulli_logit.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.factors.bernoulli_logit import SMALL
from svmp.families.family import Array
from svmp.kernels.machine.compiling import bare, claim, shared
from svmp.kernels.machine.simd import (
    EIGHT,
    broadcast8,
    fma8,
    load8,
    mean_and_variance8,
    mul8,
    store8,
    sum8,
)
from svmp.kernels.machine.special import exp
from svmp.network.grid import Ints

TILE = 64
"""Rows of a tile that sums are made of: with K = 64 slopes each, it fits the first-level cache."""
LINE = 16
"""Rows whose slopes are transposed at a time."""
BLOCK = 1024
"""Rows that a thread claims at a time where they are not sorted by key."""
OWN, ROW, ALL = -1, -2, -3
"""In place of a column number: the key being updated, the row itself, one number for all rows."""


class LoopRows(NamedTuple):
    """Rows of a table, sorted by the key that is updated.

    Attributes
    ----------
    begin, end
        Where the rows of each key begin and end.
    columns
        The other keys of every row, one line per column.
    target, coefficients
        The value of every row, and the coefficients of the terms that have any, one line per term.
    weight, weigher
        Noise precisions, and the column that indexes them; or OWN, ROW or ALL.
    logit
        Whether the rows are Bernoullis and the mean is their logit.
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
        LoopOperand f of term t at key i has K means, then K variances, beginning at
        `start[f] + size[t] i`. In single precision, second moments would lose small variances.
    start, column
        By operand: where it begins in `packed`, and the column of the rows that holds its key.
    first, width, size, line
        By term: its first operand, its K, the packed numbers per key, and its line among the
        coefficients, or -1.
    scale
        The constant factor of each term.
    intercept
        The constant that is added to all terms.
    centred
        Whether the second moments of a vector's partner in a dot product are about its mean.
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
    centred: bool


class Receiver(NamedTuple):
    """The operand that is updated, and everything its update needs besides the rows.

    Attributes
    ----------
    term, operand, width
        The term, the number of the operand among all operands, and its K.
    keys, scale, rho
        The keys; the factor of each key's messages and its step, or one for all keys.
    prior
        Natural parameters of the prior, of every key or one for all keys.
    at_once
        Whether moments are refreshed at once, so that later updates use them.
    joint
        Whether the K elements of a key are solved for together, not in turn; vectors always are.
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
def pack_key(key: int, moments: Array, width: int, padded: int, packed: Array) -> None:
    """Write K means, then K variances, each padded with zeros."""
    at, start, apart = np.uintp(key * width), np.uintp(2 * key * padded), np.uintp(padded)
    if padded % EIGHT == 0 and key * width + padded <= len(moments):
        for k in range(np.uintp(0), apart, np.uintp(EIGHT)):
            means, variances = mean_and_variance8(moments, at + k, np.uintp(width) - k, packed)
            store8(packed, start + k, means)
            store8(packed, start + apart + k, variances)
        return
    for k in range(np.uintp(width)):
        one = moments[at + k, 0]
        packed[start + k] = one
        packed[start + apart + k] = moments[at + k, 1] - one * one
    for k in range(np.uintp(width), apart):
        packed[start + k] = packed[start + apart + k] = 0


@shared
def pack(taken: Ints, moments: Array, width: int, padded: int, packed: Array) -> None:
    """Write the moments of every key in the layout of `Mean.packed`."""
    keys = len(moments) // width
    first = claim(taken, TILE)
    while first < keys:
        for key in range(first, min(first + TILE, keys)):
            pack_key(key, moments, width, padded, packed)
        first = claim(taken, TILE)


@bare
def per_key(numbers: Array, m: int) -> float:
    """Return the number of a key, from an array of one per key or one for all."""
    return numbers[m] if len(numbers) > 1 else numbers[0]


class OperandLayout(NamedTuple):
    """Where the packed moments of an operand are: key column, start, and numbers per key."""

    column: int
    start: int
    size: int


@bare
def layout_of(mean: Mean, term: int, operand: int) -> OperandLayout:
    """Return the layout of an operand of a term."""
    return OperandLayout(mean.column[operand], mean.start[operand], mean.size[term])


@bare
def place(of: OperandLayout, rows: LoopRows, own: int, e: int) -> Any:
    """Return where the moments of an operand at a row begin.

    Unsigned, so that indexing does not check for negative places.
    """
    key = own if of.column == OWN else rows.columns[of.column, e]
    return np.uintp(of.start + of.size * key)


@bare
def coefficient(mean: Mean, rows: LoopRows, term: int, e: int) -> float:
    """Return the coefficient of a term at a row."""
    line = mean.line[term]
    return mean.scale[term] * (rows.coefficients[line, e] if line >= 0 else 1)


@bare
def weights_differ(rows: LoopRows) -> bool:
    """Whether the weight may differ between rows of one key."""
    return rows.logit or rows.weigher >= 0 or rows.weigher == ROW


@bare
def shared_weight(rows: LoopRows, own: int) -> float:
    """Return the common weight of all rows of a key, or 1 if weights differ."""
    return 1.0 if weights_differ(rows) else rows.weight[own if rows.weigher == OWN else 0]


@bare
def own_weight(rows: LoopRows, e: int) -> float:
    """Return the weight of a row, or 1 if it is common to all rows of the key."""
    if rows.weigher >= 0:
        return rows.weight[np.uintp(rows.columns[rows.weigher, e])]
    return rows.weight[e] if rows.weigher == ROW else 1


@bare
def widest(mean: Mean) -> int:
    """Return the largest padded K of a term; `max` of NumPy takes a second to compile."""
    found = 1
    for term in range(len(mean.width)):
        found = max(found, mean.width[term])
    return found


@bare
def is_alone(mean: Mean, term: int) -> bool:
    """Whether a term has one operand with K = 1, such as a bias."""
    return mean.first[term + 1] - mean.first[term] == 1 and mean.width[term] == 1


@bare
def partner_of(mean: Mean, term: int, operand: int) -> int:
    """Return the other operand of a plain dot product of two, or -1 for any other term."""
    first = mean.first[term]
    pair = mean.first[term + 1] - first == 2 and mean.line[term] < 0 and mean.scale[term] == 1
    return 2 * first + 1 - operand if pair else -1


@bare
def product(
    mean: Mean, rows: LoopRows, term: int, operand: int, own: int, e: int, scratch: Array
) -> None:
    """Write E[a] and then Var[a] of the K slopes: the product of all operands but one."""
    width, packed = np.uintp(mean.width[term]), mean.packed
    c = packed.dtype.type(coefficient(mean, rows, term, e))
    for k in range(width):
        scratch[k] = c
        scratch[width + k] = 0
    for other in range(mean.first[term], mean.first[term + 1]):
        if other != operand:
            at = place(layout_of(mean, term, other), rows, own, e)
            for k in range(width):
                one, variance, before = packed[at + k], packed[at + width + k], scratch[k]
                spread = scratch[width + k] * (one * one + variance) + before * before * variance
                scratch[k], scratch[width + k] = before * one, spread


@bare
def dot(a: Array, at: int, b: Array, start: int, width: int) -> Any:
    """Return the inner product of K numbers of one array and K of another."""
    whole, sums = width // np.uintp(EIGHT) * np.uintp(EIGHT), broadcast8(a.dtype.type(0))
    for k in range(np.uintp(0), whole, np.uintp(EIGHT)):
        sums = fma8(load8(a, at + k), load8(b, start + k), sums)
    found = sum8(sums)
    for k in range(whole, width):
        found += a[at + k] * b[start + k]
    return found


@bare
def add_alone(
    mean: Mean, rows: LoopRows, term: int, own: int, first: int, count: int, out: Array
) -> None:
    """Add a term with one operand and K = 1 to E[mu] of some rows."""
    this, line, c = layout_of(mean, term, mean.first[term]), mean.line[term], mean.scale[term]
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
    mean: Mean,
    rows: LoopRows,
    term: int,
    partner: int,
    own: int,
    first: int,
    count: int,
    out: Array,
) -> None:
    """Add a plain dot product of two operands to E[mu] of some rows."""
    this, that = layout_of(mean, term, mean.first[term + 1] - 1), layout_of(mean, term, partner)
    packed, width = mean.packed, np.uintp(mean.width[term])
    for i in range(count):
        at, other = place(this, rows, own, first + i), place(that, rows, own, first + i)
        out[i] += dot(packed, at, packed, other, width)


@bare
def rest(
    mean: Mean,
    rows: LoopRows,
    skip: int,
    own: int,
    first: int,
    count: int,
    out: Array,
    scratch: Array,
) -> None:
    """Write E[mu] of some rows, leaving out one term."""
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
            this, width = layout_of(mean, term, last), np.uintp(mean.width[term])
            for i in range(count):
                at = place(this, rows, own, first + i)
                product(mean, rows, term, last, own, first + i, scratch)
                out[i] += dot(mean.packed, at, scratch, np.uintp(0), width)


@bare
def spread(a: Array, at: int, b: Array, start: int, width: int) -> tuple[float, float]:
    """Return E and Var of a sum of K independent products, from K means and variances each."""
    whole = width // np.uintp(EIGHT) * np.uintp(EIGHT)
    ones = variances = broadcast8(a.dtype.type(0))
    for k in range(np.uintp(0), whole, np.uintp(EIGHT)):
        one, other, apart = load8(a, at + k), load8(b, start + k), load8(b, start + width + k)
        ones = fma8(one, other, ones)
        variances = fma8(load8(a, at + width + k), fma8(other, other, apart), variances)
        variances = fma8(mul8(one, one), apart, variances)
    first, second = sum8(ones), sum8(variances)
    for k in range(whole, width):
        one, other, apart = a[at + k], b[start + k], b[start + width + k]
        first += one * other
        second += a[at + width + k] * (other * other + apart) + one * one * apart
    return first, second


@bare
def add_moments(
    mean: Mean,
    rows: LoopRows,
    term: int,
    own: int,
    first: int,
    count: int,
    out: Array,
    scratch: Array,
) -> None:
    """Add E and Var of one term to those of some rows; its K products are independent."""
    packed, zero = mean.packed, np.uintp(0)
    last, width = mean.first[term + 1] - 1, np.uintp(mean.width[term])
    partner, this = partner_of(mean, term, last), layout_of(mean, term, last)
    if is_alone(mean, term):
        line, c = mean.line[term], mean.scale[term]
        for i in range(count):
            at = place(this, rows, own, first + i)
            slope = c if line < 0 else c * rows.coefficients[line, first + i]
            out[0, i] += slope * packed[at]
            out[1, i] += slope * slope * packed[at + np.uintp(1)]
    elif partner >= 0:
        that = layout_of(mean, term, partner)
        for i in range(count):
            at, other = place(this, rows, own, first + i), place(that, rows, own, first + i)
            expected, variance = spread(packed, at, packed, other, width)
            out[0, i] += expected
            out[1, i] += variance
    else:
        for i in range(count):
            at = place(this, rows, own, first + i)
            product(mean, rows, term, last, own, first + i, scratch)
            expected, variance = spread(packed, at, scratch, zero, width)
            out[0, i] += expected
            out[1, i] += variance


@bare
def moments_of(
    mean: Mean,
    rows: LoopRows,
    skip: int,
    own: int,
    first: int,
    count: int,
    out: Array,
    rest: Array,
    scratch: Array,
) -> None:
    """Write E[mu] and Var[mu] of some rows, and E[mu] without term `skip`, if that is not -1."""
    terms = len(mean.width)
    for i in range(count):
        out[0, i] = mean.intercept
        out[1, i] = 0
    for shift in range(1, terms + 1):  # the skipped term comes last
        term = (skip + shift) % terms
        if term == skip:
            for i in range(count):
                rest[i] = out[0, i]
        add_moments(mean, rows, term, own, first, count, out, scratch)


@bare
def tangent(mean: float, variance: float, value: float) -> tuple[float, float]:
    """Return the target and the root of the weight of a Bernoulli, given E and Var of its logit."""
    square = mean * mean + variance
    xi = max(np.sqrt(square), SMALL)
    tail = exp(-xi)
    over, under = 1 - tail, 2 * xi * (1 + tail)  # the weight is over / under
    one = 1 / (over * under)
    weight, inverse = over * over * one, under * under * one
    if xi <= SMALL:
        weight = 0.25 + square * (square * (1 / 480) - 1 / 48)
        inverse = 4 + square * (1 / 3 - square * (1 / 180))
    return (value - 0.5) * inverse, np.sqrt(weight)


@bare
def tangents(rows: LoopRows, first: int, count: int, out: Array) -> None:
    """Replace the moments of the logits of some rows by `tangent` of them."""
    for i in range(np.uintp(count)):
        out[0, i], out[1, i] = tangent(out[0, i], out[1, i], rows.target[np.uintp(first) + i])
