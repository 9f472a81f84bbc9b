"""The loops of a Normal whose mean is a dot product and biases: mu = sum_k u_ik v_jk + sum b.

A user's (or item's) rows are gathered into a small tile, factor by factor, with the residual
y - E[mu] beside it; each factor then takes one pass for its sums and one to update the residual:
O(K) a row for all K factors. Users are independent of each other, so they run in parallel with
the same bits on any number of threads. The plain twin is network/linear.py.

Moments are (elements, 2) arrays of E[x] and E[x^2], naturals are (tau mu, -tau / 2).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import prange

from svmp.families.family import Array
from svmp.inference.draws import sample, stream_key
from svmp.network.grid import Ints

jit: Any = numba.njit(cache=True, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
parallel: Any = numba.njit(
    cache=True, parallel=True, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy"
)


@jit
def dot_of(left: Array, right: Array, i: int, j: int, width: int) -> float:
    """E[u_i . v_j]."""
    total = 0.0
    for k in range(width):
        total += left[i * width + k, 0] * right[j * width + k, 0]
    return total


@jit
def offset_of(row: int, bias_keys: Ints, bias: Array, starts: Ints) -> float:
    """Sum of the biases of a row: they stand one after another in one array."""
    total = 0.0
    for b in range(len(starts)):
        total += bias[starts[b] + bias_keys[b, row], 0]
    return total


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


@parallel
def row_moments(
    rows: Ints,
    left: Array,
    left_key: Ints,
    right: Array,
    right_key: Ints,
    width: int,
    bias: Array,
    bias_keys: Ints,
    starts: Ints,
) -> Array:
    """E[mu] and E[mu^2] of each row."""
    out = np.empty((len(rows), 2))
    for e in prange(len(rows)):
        row = rows[e]
        mean = variance = 0.0
        if width > 0:
            i, j = left_key[row] * width, right_key[row] * width
            for k in range(width):
                a, b = left[i + k, 0], right[j + k, 0]
                mean += a * b
                variance += left[i + k, 1] * right[j + k, 1] - a * a * b * b
        for b in range(len(starts)):
            at = starts[b] + bias_keys[b, row]
            mean += bias[at, 0]
            variance += bias[at, 1] - bias[at, 0] ** 2
        out[e, 0] = mean
        out[e, 1] = mean * mean + variance
    return out


@parallel
def update_shared(
    keys: Ints,
    pointers: Ints,
    rows: Ints,
    scale: Array,
    rho: Array,
    at_once: bool,
    prior: Array,
    natural: Array,
    moments: Array,
    other: Array,
    other_key: Ints,
    width: int,
    slope: bool,
    target: Array,
    precision: Array,
    means: Array,
    remembered: bool,
    bias: Array,
    bias_keys: Ints,
    starts: Ints,
    left: Array,
    left_key: Ints,
    right: Array,
    right_key: Ints,
    dots: int,
    intercept: float,
) -> None:
    """Update all factors of each key from the same rows; `natural` and `moments` change in place.

    With `slope` the receiver is multiplied by `other`, read at `other_key`; without, it is a bias.
    Where E[mu] of every row is remembered in `means`, it is used and kept up to date.
    """
    for m in prange(len(keys)):
        key, first, count = keys[m], pointers[m], pointers[m + 1] - pointers[m]
        residual = np.empty(count)
        weight = np.empty(count)
        slopes = np.empty((width, count) if slope else (1, 1))
        squares = np.empty((width, count) if slope else (1, 1))
        for e in range(count):
            row = rows[first + e]
            weight[e] = precision[row] if len(precision) > 1 else precision[0]
            if remembered:
                residual[e] = target[row] - means[row]
            else:
                mean = intercept + offset_of(row, bias_keys, bias, starts)
                if dots > 0:
                    mean += dot_of(left, right, left_key[row], right_key[row], dots)
                residual[e] = target[row] - mean
            if slope:
                j = other_key[row] * width
                for k in range(width):
                    slopes[k, e] = other[j + k, 0]
                    squares[k, e] = other[j + k, 1]
        for k in range(width):
            at = key * width + k
            old = moments[at, 0]
            linear = square = 0.0
            if slope:
                for e in range(count):
                    a = slopes[k, e]
                    linear += weight[e] * a * (residual[e] + a * old)
                    square += weight[e] * squares[k, e]
            else:
                for e in range(count):
                    linear += weight[e] * (residual[e] + old)
                    square += weight[e]
            own = prior[m * width + k]
            blend(natural[at], rho[m], own[0] + scale[m] * linear, own[1] - 0.5 * scale[m] * square)
            if at_once:
                follow(natural[at], moments[at])
                change = moments[at, 0] - old
                if slope:
                    for e in range(count):
                        residual[e] -= slopes[k, e] * change
                else:
                    for e in range(count):
                        residual[e] -= change
        if remembered and at_once:
            for e in range(count):
                row = rows[first + e]
                means[row] = target[row] - residual[e]


@parallel
def update_drawn(
    seed: int,
    iteration: int,
    variable: int,
    keys: Ints,
    pointers: Ints,
    rows: Ints,
    most: Ints,
    rho: Array,
    at_once: bool,
    prior: Array,
    natural: Array,
    moments: Array,
    other: Array,
    other_key: Ints,
    width: int,
    slope: bool,
    target: Array,
    precision: Array,
    bias: Array,
    bias_keys: Ints,
    starts: Ints,
    left: Array,
    left_key: Ints,
    right: Array,
    right_key: Ints,
    dots: int,
    intercept: float,
) -> None:
    """Update each factor of each key from rows of its own, drawn anew: Algorithm 1."""
    stream = stream_key(seed, iteration, variable)
    for m in prange(len(keys)):
        key, first, count = keys[m], pointers[m], pointers[m + 1] - pointers[m]
        take = min(most[m], count)
        chosen = np.empty(take, dtype=np.int64)
        scale = count / max(take, 1)
        for k in range(width):
            at = key * width + k
            old = moments[at, 0]
            sample(stream, at, count, take, chosen)
            linear = square = 0.0
            for e in range(take):
                row = rows[first + chosen[e]]
                weight = precision[row] if len(precision) > 1 else precision[0]
                mean = intercept + offset_of(row, bias_keys, bias, starts)
                if dots > 0:
                    mean += dot_of(left, right, left_key[row], right_key[row], dots)
                a = second = 1.0
                if slope:
                    j = other_key[row] * width + k
                    a, second = other[j, 0], other[j, 1]
                linear += weight * a * (target[row] - mean + a * old)
                square += weight * second
            own = prior[m * width + k]
            blend(natural[at], rho[m], own[0] + scale * linear, own[1] - 0.5 * scale * square)
            if at_once:
                follow(natural[at], moments[at])
