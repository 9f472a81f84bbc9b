"""Steps of the means of a bilinear model, while all covariances stay as they are.

    r_e = u_m . v_n + noise with precision w_e,     row e of user m and item n

With everything else fixed, the bound is a concave quadratic in x = E[u_m]. With the prior precision
P and mean p, and C_m = sum w_e Cov[v_n], its gradient and its curvature along d are

    g       = P (p - x) - C_m x + sum w_e (r_e - x . E[v_n]) E[v_n]
    d^T A d = d^T (P + C_m) d + sum w_e (d . E[v_n])^2.

The covariance S_m of q is the inverse of A as it was when covariances were last updated. So
d = S_m g leads almost to the maximum, and the step s = g . d / d^T A d to the highest point on the
way. Every x + omega s d with 0 < omega < 2 raises the bound: no step can fail.

A row reads the K numbers of E[v_n] twice. Solving for the maximum itself would need K (K + 1) / 2
products for each row, which took three times as long with a million ratings and K = 32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.machine.simd import (
    EIGHT,
    accumulate8,
    broadcast8,
    fma8,
    load8,
    mul8,
    store8,
    sum8,
    sums8,
)
from svmp.kernels.vectors.means import TILE, Singles, SortedRows
from svmp.network.grid import Ints


@bare
def read_tile(
    rows: SortedRows, wide: Any, first: int, last: int, at: Any, weights: Singles, targets: Singles
) -> int:
    """Write where the lines of some rows are, and their weights and targets.

    The rows are filled up to a multiple of eight with copies that have no weight; returns how many
    there are then.
    """
    count = -(-(last - first) // EIGHT) * EIGHT
    for i in range(count):
        e = min(first + i, last - 1)
        at[i] = np.uintp(rows.other[e]) * wide
        weights[i] = rows.weight[e] if first + i < last else np.float32(0)
        targets[i] = rows.target[e]
    return count


@bare
def products8(flat: Singles, at: Any, i: int, wide: Any, vector: Singles) -> Any:
    """Return the inner products of eight lines with a vector."""
    a = b = c = d = e = f = g = h = broadcast8(np.float32(0))
    j = np.uintp(0)
    while j < wide:
        x = load8(vector, j)
        a = fma8(x, load8(flat, at[i] + j), a)
        b = fma8(x, load8(flat, at[i + 1] + j), b)
        c = fma8(x, load8(flat, at[i + 2] + j), c)
        d = fma8(x, load8(flat, at[i + 3] + j), d)
        e = fma8(x, load8(flat, at[i + 4] + j), e)
        f = fma8(x, load8(flat, at[i + 5] + j), f)
        g = fma8(x, load8(flat, at[i + 6] + j), g)
        h = fma8(x, load8(flat, at[i + 7] + j), h)
        j += np.uintp(EIGHT)
    return sums8(a, b, c, d, e, f, g, h)


@bare
def add_gradient(
    flat: Singles,
    at: Any,
    count: int,
    wide: Any,
    mean: Singles,
    weights: Singles,
    targets: Singles,
    tile: Singles,
    total: Array,
) -> None:
    """Add w (r - x . v) v of the rows of a tile; `targets` become their weighted residuals."""
    tile[:] = 0
    for i in range(0, count, EIGHT):
        place = np.uintp(i)
        minus = mul8(broadcast8(np.float32(-1)), products8(flat, at, i, wide, mean))
        residual = fma8(broadcast8(np.float32(1)), load8(targets, place), minus)
        store8(targets, place, mul8(load8(weights, place), residual))
        j = np.uintp(0)
        while j < wide:
            found = load8(tile, j)
            for row in range(i, i + EIGHT):
                found = fma8(broadcast8(targets[row]), load8(flat, at[row] + j), found)
            store8(tile, j, found)
            j += np.uintp(EIGHT)
    j = np.uintp(0)
    while j < wide:
        accumulate8(total, j, load8(tile, j))
        j += np.uintp(EIGHT)


@bare
def curvature_of(
    flat: Singles, at: Any, count: int, wide: Any, direction: Singles, weights: Singles
) -> float:
    """Return the sum of w (d . v)^2 of the rows of a tile."""
    total = broadcast8(np.float32(0))
    for i in range(0, count, EIGHT):
        found = products8(flat, at, i, wide, direction)
        total = fma8(mul8(load8(weights, np.uintp(i)), found), found, total)
    return np.float64(sum8(total))


@bare
def add_product(triangle: Singles, vector: Array, sign: float, out: Array) -> None:
    """Add a symmetric matrix, of which the lower triangle is given, times a vector."""
    place = 0
    for k in range(len(vector)):
        own, x = 0.0, sign * vector[k]
        for j in range(k):
            own += triangle[place + j] * vector[j]
            out[j] += triangle[place + j] * x
        out[k] += sign * own + triangle[place + k] * x
        place += k + 1


@shared
def move_means(
    taken: Ints,
    rows: SortedRows,
    lines: Singles,
    fixed: Singles,
    covariance: Singles,
    precision: Array,
    pull: Array,
    omega: float,
    own: Singles,
) -> None:
    """Move the means of every key of one side towards their optimum, in place.

    Parameters
    ----------
    rows, lines
        Rows sorted by the keys of this side, and the lines of the other side.
    fixed, covariance
        C_m and S_m of each key, lower triangles.
    precision, pull
        Prior precision, which is diagonal, and that times the prior mean.
    omega
        Over-relaxation of the step, in (0, 2).
    own
        Lines of this side.
    """
    width, wide, flat = len(precision), np.uintp(lines.shape[1]), lines.ravel()
    at = np.empty(TILE, np.uintp)
    weights, targets = np.empty(TILE, np.float32), np.empty(TILE, np.float32)
    tile, direction = np.empty(wide, np.float32), np.zeros(wide, np.float32)
    gradient, mean, step, curved = np.empty(wide), np.empty(width), np.empty(width), np.empty(width)
    first = claim(taken, CHUNK)
    while first < len(own):
        for m in range(first, min(first + CHUNK, len(own))):
            begin, end, line = rows.begin[m], rows.begin[m + 1], own[m]
            gradient[:] = 0
            for start in range(begin, end, TILE):
                last = min(start + TILE, end)
                count = read_tile(rows, wide, start, last, at, weights, targets)
                add_gradient(flat, at, count, wide, line, weights, targets, tile, gradient)
            for k in range(width):
                mean[k] = line[k]
                gradient[k] += pull[k] - precision[k] * mean[k]
            add_product(fixed[m], mean, -1.0, gradient[:width])
            step[:] = 0
            add_product(covariance[m], gradient[:width], 1.0, step)
            curved[:] = 0
            add_product(fixed[m], step, 1.0, curved)
            slope, curvature = 0.0, 0.0
            for k in range(width):
                direction[k] = step[k]
                slope += gradient[k] * step[k]
                curvature += step[k] * (curved[k] + precision[k] * step[k])
            for start in range(begin, end, TILE):
                last = min(start + TILE, end)
                count = read_tile(rows, wide, start, last, at, weights, targets)
                curvature += curvature_of(flat, at, count, wide, direction, weights)
            if 0 < slope < np.inf and 0 < curvature < np.inf:
                for k in range(width):
                    line[k] = mean[k] + omega * slope / curvature * step[k]
        first = claim(taken, CHUNK)
