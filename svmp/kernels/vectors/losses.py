"""The loss of the rows of a vector, sum w E[(y - mu)^2], right after the vector was updated.

With mu_e = a_e . x + rest_e, where rest_e is a sum of biases, it is

    sum_e w ((y - E[rest] - E[a] . E[x])^2 + Var[rest])
        + E[x]^T (sum_e w Cov[a]) E[x] + tr(Cov[x] sum_e w E[a a^T]),

with sums that the update has made. Residuals are computed in double precision, as in
multilinear/losses.py. A common weight of the rows of a key is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import bare
from svmp.kernels.machine.simd import EIGHT, broadcast8, fma8, load8, sum8
from svmp.kernels.multilinear.losses import LossScratch, add_rest_alone, subtract_pair, weigh
from svmp.kernels.multilinear.terms import (
    TILE,
    LoopRows,
    Mean,
    Receiver,
    layout_of,
    place,
    shared_weight,
    weights_differ,
)


@bare
def without_biases(
    mean: Mean, rows: LoopRows, skip: int, own: int, first: int, count: int, left: Any
) -> None:
    """Write y - E[rest] and Var[rest] of some rows."""
    for i in range(count):
        left[0, i] = np.float64(rows.target[np.uintp(first + i)]) - mean.intercept
        left[1, i] = 0
    for term in range(len(mean.width)):
        if term != skip:
            add_rest_alone(mean, rows, term, own, first, count, left)


@bare
def loss_of_means(
    mean: Mean,
    rows: LoopRows,
    weights: Array,
    to: Receiver,
    m: int,
    begin: int,
    end: int,
    moments: Array,
    scratch: LossScratch,
) -> float:
    """Return the first line of the loss, for some rows of a key."""
    left, weight, weighted = scratch.left, scratch.weight, weights_differ(rows)
    term, own, padded = to.term, to.keys[m], np.uintp(mean.width[to.term])
    other = layout_of(mean, term, 2 * mean.first[term] + 1 - to.operand)
    for k in range(to.width):
        scratch.own[k] = mean.scale[term] * moments[own, k]
    total = broadcast8(0.0)
    for first in range(begin, end, TILE):
        count = min(TILE, end - first)
        without_biases(mean, rows, term, own, first, count, left)
        if weighted:
            weigh(rows, weights, first, count, weight)
        for i in range(np.uintp(count)):
            scratch.places[i] = place(other, rows, own, np.uintp(first) + i)
        subtract_pair(mean.packed, padded, count, scratch)
        for i in range(count, (count + EIGHT - 1) // EIGHT * EIGHT):  # these are no rows
            left[0, i] = left[1, i] = 0
        for i in range(np.uintp(0), np.uintp(count), np.uintp(EIGHT)):
            found = load8(left, i)
            found = fma8(found, found, load8(left, np.uintp(TILE) + i))
            total = fma8(load8(weight, i), found, total)
    return sum8(total)


@bare
def loss_of_variances(
    mean: Mean, rows: LoopRows, to: Receiver, m: int, sums: Array, moments: Array
) -> float:
    """Return the second line of the loss, from the sums that a key was updated from.

    With S = sum w E[a a^T] and G = sum w E[a] E[a]^T it is tr(S E[x x^T]) - E[x]^T G E[x].
    """
    padded, size, width = mean.width[to.term], mean.size[to.term], to.width
    own, place, loss = moments[to.keys[m]], 2 * padded, 0.0
    for k in range(width):
        gram = sums[size + k * padded + k]
        loss += sums[padded + k] * own[width + k * width + k] - gram * own[k] * own[k]
        for j in range(k + 1, width):
            gram = sums[size + j * padded + k]
            loss += 2 * (sums[place] * own[width + k * width + j] - gram * own[j] * own[k])
            place += 1
    return loss / shared_weight(rows, to.keys[m])
