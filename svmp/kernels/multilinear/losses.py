"""The loss of the rows of a key, sum w E[(y - mu)^2], right after its elements were updated.

With mu_e = a_e . x + rest_e, where x, a_e and rest_e are independent, it is

    sum_e w ((y - E[rest] - E[a] . E[x])^2 + Var[rest])
        + sum_k (E[x_k^2] sum_e w Var[a_k] + Var[x_k] sum_e w E[a_k]^2).

The second line follows from sums that the update has made, and the slopes of the first are in the
cache still: this costs a part of a pass over all rows. Slopes are read in the precision of the
data, but residuals are computed in double precision: their rounding errors would not cancel over
rows. `residuals.py` computes the same from moments in double precision.

A common weight of the rows of a key is left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import bare, jit
from svmp.kernels.machine.simd import (
    EIGHT,
    broadcast8,
    convert8,
    fma8,
    load8,
    mul8,
    store8,
    sum8,
    sums8,
)
from svmp.kernels.multilinear.terms import (
    ROW,
    TILE,
    LoopRows,
    Mean,
    coefficient,
    is_alone,
    layout_of,
    partner_of,
    place,
    weights_differ,
)
from svmp.network.grid import Ints


class Losses(NamedTuple):
    """Where the loss of each key is written, and the weights of rows in double precision.

    Attributes
    ----------
    weight
        Noise precisions, indexed like `LoopRows.weight`.
    out
        The loss of each key; empty if none is asked for.
    """

    weight: Array
    out: Array


class LossScratch(NamedTuple):
    """Scratch arrays of one thread.

    Attributes
    ----------
    left
        The residuals of TILE rows, and the variances of their other terms.
    weight
        Weights of these rows.
    places
        Where their slopes begin in `Mean.packed`.
    own
        The means of the key, padded with zeros.
    """

    left: Array
    weight: Array
    places: Ints
    own: Array


@jit
def loss_scratch(mean: Mean, term: int) -> LossScratch:
    """Return scratch arrays for the losses of keys of a term."""
    padded = (mean.width[term] + EIGHT - 1) // EIGHT * EIGHT
    return LossScratch(
        np.zeros((2, TILE)),
        np.ones(TILE),
        np.zeros(TILE, np.uintp),
        np.zeros(padded),
    )


@bare
def add_rest_alone(
    mean: Mean, rows: LoopRows, term: int, own: int, first: int, count: int, left: Any
) -> None:
    """Subtract E of a term with one operand and K = 1 from residuals, and add its Var."""
    this = layout_of(mean, term, mean.first[term])
    for i in range(count):
        at = place(this, rows, own, first + i)
        c = np.float64(coefficient(mean, rows, term, first + i))
        left[0, i] -= c * mean.packed[at]
        left[1, i] += c * c * mean.packed[at + np.uintp(1)]


@bare
def add_rest_of_pair(
    mean: Mean, rows: LoopRows, term: int, partner: int, own: int, first: int, count: int, left: Any
) -> None:
    """Subtract E of a plain dot product from residuals, and add its Var to variances."""
    this, that = layout_of(mean, term, mean.first[term + 1] - 1), layout_of(mean, term, partner)
    packed, width = mean.packed, np.uintp(mean.width[term])
    for i in range(count):
        at, other = place(this, rows, own, first + i), place(that, rows, own, first + i)
        ones = variances = broadcast8(0.0)
        for k in range(np.uintp(0), width, np.uintp(EIGHT)):
            one = convert8(load8(packed, at + k), left)
            two = convert8(load8(packed, other + k), left)
            apart = convert8(load8(packed, other + width + k), left)
            ones = fma8(one, two, ones)
            variances = fma8(mul8(one, one), apart, variances)
            apart = fma8(two, two, apart)
            variances = fma8(convert8(load8(packed, at + width + k), left), apart, variances)
        left[0, i] -= sum8(ones)
        left[1, i] += sum8(variances)


@bare
def add_rest_of_term(
    mean: Mean, rows: LoopRows, term: int, own: int, first: int, count: int, left: Any
) -> None:
    """Subtract E of any term from residuals, and add its Var to variances."""
    width = np.uintp(mean.width[term])
    for i in range(count):
        c = np.float64(coefficient(mean, rows, term, first + i))
        for k in range(width):
            expected, variance = c, 0.0
            for operand in range(mean.first[term], mean.first[term + 1]):
                at = place(layout_of(mean, term, operand), rows, own, first + i) + k
                one, apart = np.float64(mean.packed[at]), np.float64(mean.packed[at + width])
                variance = variance * (one * one + apart) + expected * expected * apart
                expected *= one
            left[0, i] -= expected
            left[1, i] += variance


@bare
def without_rest(
    mean: Mean, rows: LoopRows, skip: int, own: int, first: int, count: int, left: Any
) -> None:
    """Write y - E[rest] and Var[rest] of some rows; the rest is all terms but one."""
    at, whole = np.uintp(first), np.uintp(count // EIGHT * EIGHT)
    for i in range(np.uintp(0), whole, np.uintp(EIGHT)):
        store8(left, i, convert8(load8(rows.target, at + i), left))
    for i in range(whole, np.uintp(count)):
        left[0, i] = rows.target[at + i]
    if len(mean.width) == 1 and mean.intercept == 0:
        return
    for i in range(count):
        left[0, i] -= mean.intercept
        left[1, i] = 0
    for term in range(len(mean.width)):
        if term == skip:
            continue
        partner = partner_of(mean, term, mean.first[term + 1] - 1)
        if is_alone(mean, term):
            add_rest_alone(mean, rows, term, own, first, count, left)
        elif partner >= 0 and mean.width[term] % EIGHT == 0:
            add_rest_of_pair(mean, rows, term, partner, own, first, count, left)
        else:
            add_rest_of_term(mean, rows, term, own, first, count, left)


@bare
def weigh(rows: LoopRows, weights: Array, first: int, count: int, out: Array) -> None:
    """Write the weights of some rows, where they differ."""
    for i in range(np.uintp(count)):
        e = np.uintp(first) + i
        out[i] = weights[e if rows.weigher == ROW else np.uintp(rows.columns[rows.weigher, e])]


@bare
def subtract_pair(packed: Array, width: int, count: int, scratch: LossScratch) -> None:
    """Subtract E[a] . E[x] from residuals, eight rows at a time."""
    left, places, own = scratch.left, scratch.places, scratch.own
    for i in range(np.uintp(0), np.uintp(count), np.uintp(EIGHT)):
        a, b = places[i], places[i + np.uintp(1)]
        c, d = places[i + np.uintp(2)], places[i + np.uintp(3)]
        e, f = places[i + np.uintp(4)], places[i + np.uintp(5)]
        g, h = places[i + np.uintp(6)], places[i + np.uintp(7)]
        s = t = u = v = w = x = y = z = broadcast8(0.0)
        for k in range(np.uintp(0), width, np.uintp(EIGHT)):
            mean = load8(own, k)
            s = fma8(convert8(load8(packed, a + k), own), mean, s)
            t = fma8(convert8(load8(packed, b + k), own), mean, t)
            u = fma8(convert8(load8(packed, c + k), own), mean, u)
            v = fma8(convert8(load8(packed, d + k), own), mean, v)
            w = fma8(convert8(load8(packed, e + k), own), mean, w)
            x = fma8(convert8(load8(packed, f + k), own), mean, x)
            y = fma8(convert8(load8(packed, g + k), own), mean, y)
            z = fma8(convert8(load8(packed, h + k), own), mean, z)
        explained = sums8(s, t, u, v, w, x, y, z)
        store8(left, i, fma8(broadcast8(-1.0), explained, load8(left, i)))


@bare
def subtract_term(
    mean: Mean,
    rows: LoopRows,
    term: int,
    operand: int,
    own: int,
    first: int,
    count: int,
    scratch: LossScratch,
) -> None:
    """Do the same for any product of operands, row by row."""
    width = np.uintp(mean.width[term])
    for i in range(count):
        c = np.float64(coefficient(mean, rows, term, first + i))
        for k in range(width):
            expected = c
            for other in range(mean.first[term], mean.first[term + 1]):
                if other != operand:
                    at = place(layout_of(mean, term, other), rows, own, first + i) + k
                    expected *= mean.packed[at]
            scratch.left[0, i] -= expected * scratch.own[k]


@bare
def loss_of_means(
    mean: Mean,
    rows: LoopRows,
    weights: Array,
    term: int,
    operand: int,
    width: int,
    own: int,
    begin: int,
    end: int,
    moments: Array,
    scratch: LossScratch,
) -> float:
    """Return the first line of the loss, for some rows of a key with `width` elements."""
    left, weight, weighted = scratch.left, scratch.weight, weights_differ(rows)
    partner = partner_of(mean, term, operand)
    aligned = partner >= 0 and mean.width[term] % EIGHT == 0
    other = layout_of(mean, term, partner if aligned else operand)
    at = np.uintp(own * width)
    for k in range(np.uintp(width)):
        scratch.own[k] = moments[at + k, 0]
    total = broadcast8(0.0)
    for first in range(begin, end, TILE):
        count = min(TILE, end - first)
        without_rest(mean, rows, term, own, first, count, left)
        if weighted:
            weigh(rows, weights, first, count, weight)
        if aligned:
            for i in range(np.uintp(count)):
                scratch.places[i] = place(other, rows, own, np.uintp(first) + i)
            subtract_pair(mean.packed, np.uintp(mean.width[term]), count, scratch)
        else:
            subtract_term(mean, rows, term, operand, own, first, count, scratch)
        for i in range(count, (count + EIGHT - 1) // EIGHT * EIGHT):  # these are no rows
            left[0, i] = left[1, i] = 0
        for i in range(np.uintp(0), np.uintp(count), np.uintp(EIGHT)):
            found = load8(left, i)
            found = fma8(found, found, load8(left, np.uintp(TILE) + i))
            total = fma8(load8(weight, i), found, total)
    return sum8(total)


@bare
def loss_of_variances(sums: Array, own: int, width: int, moments: Array) -> float:
    """Return the second line of the loss, from the sums that a key was updated from."""
    lines, at, loss = 2 * sums.shape[1], np.uintp(own * width), 0.0
    for k in range(np.uintp(width)):
        one, second = moments[at + k, 0], moments[at + k, 1]
        loss += second * sums[lines + 3, k] + (second - one * one) * sums[lines + 4, k]
    return loss
