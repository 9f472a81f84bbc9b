"""Sweeps over the means of a bilinear model, while all covariances stay as they are.

    r_e = u_m . v_n + noise with precision w_e,     row e of user m and item n

With everything else fixed, the bound is a concave quadratic in x = E[u_m]. With the prior precision
P and mean p, and C_m = sum w_e Cov[v_n], it is greatest at

    x* = (P + sum w_e E[v_n] E[v_n]^T + C_m)^-1 (P p + sum w_e r_e E[v_n]).

Every x + omega (x* - x) with 0 < omega < 2 raises it: no step can fail. C_m does not change in
such sweeps, so that a row reads K numbers, instead of the K + K (K + 1) / 2 of a vector with
its covariance.

The means of a side are lines, padded with zeros to a multiple of eight; covariances are lower
triangles. Sums of a tile of rows are made in single precision and added in double.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array, Bools
from svmp.kernels.machine.cholesky import invert, solve
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.machine.simd import EIGHT, accumulate8, broadcast8, fma8, load8, store8
from svmp.kernels.machine.threads import share
from svmp.kernels.vectors.update import system_for
from svmp.network.grid import Ints

TILE = 128
"""Rows whose sums are made in single precision."""
FOUR = 4
"""Rows that are added at a time."""

Singles = NDArray[np.float32]


class SortedRows(NamedTuple):
    """Rows sorted by the key of one side; all but `begin` are read-only.

    Attributes
    ----------
    begin
        Where the rows of each key begin, and the number of rows.
    other
        Key of the other side.
    target, weight
        Value and precision of each row.
    """

    begin: Ints
    other: NDArray[np.int32]
    target: Singles
    weight: Singles


def padded(size: int) -> int:
    """Return a size rounded up to a multiple of eight.

    >>> padded(8), padded(34)
    (8, 40)
    """
    return -(-size // EIGHT) * EIGHT


@bare
def add_four(
    flat: Singles, wide: Any, at: Any, first: int, weights: Singles, size: int, sums: Any
) -> None:
    """Add w v v^T of four rows to the blocks of eight on and above the diagonal of a matrix."""
    a, b, c, d = at[first], at[first + 1], at[first + 2], at[first + 3]
    for k in range(size):
        one = np.uintp(k)
        e = broadcast8(weights[first] * flat[a + one])
        f = broadcast8(weights[first + 1] * flat[b + one])
        g = broadcast8(weights[first + 2] * flat[c + one])
        h = broadcast8(weights[first + 3] * flat[d + one])
        j = np.uintp(k // EIGHT * EIGHT)
        while j < wide:
            to = one * wide + j
            found = fma8(e, load8(flat, a + j), load8(sums, to))
            found = fma8(f, load8(flat, b + j), found)
            found = fma8(g, load8(flat, c + j), found)
            store8(sums, to, fma8(h, load8(flat, d + j), found))
            j += np.uintp(EIGHT)


@bare
def add_tile(
    rows: SortedRows,
    flat: Singles,
    width: int,
    first: int,
    last: int,
    at: Any,
    weights: Singles,
    sums: Singles,
    pulls: Singles,
) -> None:
    """Write sum w v v^T and sum w r v of the rows of a tile; `flat` are the lines of v."""
    wide, count = np.uintp(len(pulls)), last - first
    sums[:] = 0
    pulls[:] = 0
    for i in range(-(-count // FOUR) * FOUR):  # the rows that fill up the last four have no weight
        e = min(first + i, last - 1)
        at[i] = np.uintp(rows.other[e]) * wide
        weights[i] = rows.weight[e] if first + i < last else np.float32(0)
        pull = weights[i] * rows.target[e]
        j = np.uintp(0)
        while j < wide:
            found = fma8(broadcast8(pull), load8(flat, at[i] + j), load8(pulls, j))
            store8(pulls, j, found)
            j += np.uintp(EIGHT)
    for i in range(0, count, FOUR):
        add_four(flat, wide, at, i, weights, width, sums)


@shared
def move_means(
    taken: Ints,
    rows: SortedRows,
    lines: Singles,
    fixed: Singles,
    precision: Array,
    pull: Array,
    omega: float,
    own: Singles,
    sound: Bools,
) -> None:
    """Move the means of every key of one side towards their optimum, in place.

    Parameters
    ----------
    rows, lines
        Rows sorted by the keys of this side, and the lines of the other side.
    fixed
        C_m of each key, lower triangles.
    precision, pull
        Prior precision, which is diagonal, and that times the prior mean.
    omega
        Step, in (0, 2).
    own
        Lines of this side.
    sound
        Set to False where a system is not positive definite; such a key stays where it is.
    """
    width, wide, flat = len(precision), lines.shape[1], lines.ravel()
    at, weights = np.empty(TILE, np.uintp), np.empty(TILE, np.float32)
    tile, pulls = np.empty(wide * wide, np.float32), np.empty(wide, np.float32)
    total, right = np.empty(wide * wide), np.empty(wide)
    system = np.empty((width, width))
    first = claim(taken, CHUNK)
    while first < len(own):
        for m in range(first, min(first + CHUNK, len(own))):
            total[:] = 0
            right[:] = 0
            for start in range(rows.begin[m], rows.begin[m + 1], TILE):
                end = min(start + TILE, rows.begin[m + 1])
                add_tile(rows, flat, width, start, end, at, weights, tile, pulls)
                for j in range(0, wide * wide, EIGHT):
                    accumulate8(total, np.uintp(j), load8(tile, np.uintp(j)))
                for j in range(wide):
                    right[j] += pulls[j]
            place = 0
            for k in range(width):
                for j in range(k + 1):
                    system[k, j] = total[j * wide + k] + fixed[m, place]
                    place += 1
                system[k, k] += precision[k]
                right[k] += pull[k]
            if solve(system, right[:width]):
                for k in range(width):
                    own[m, k] += omega * (right[k] - own[m, k])
            else:
                sound[m] = False
        first = claim(taken, CHUNK)


@bare
def add_columns(
    rows: SortedRows, flat: Singles, size: int, first: int, last: int, total: Array
) -> None:
    """Add the weighted triangles of the other keys of some rows, 32 numbers at a time."""
    eight, whole = np.uintp(EIGHT), np.uintp(size)
    k = np.uintp(0)
    while k + np.uintp(4) * eight <= whole:
        a = b = c = d = broadcast8(np.float32(0))
        for e in range(first, last):
            at, weight = np.uintp(rows.other[e]) * whole + k, broadcast8(rows.weight[e])
            a = fma8(weight, load8(flat, at), a)
            b = fma8(weight, load8(flat, at + eight), b)
            c = fma8(weight, load8(flat, at + np.uintp(2) * eight), c)
            d = fma8(weight, load8(flat, at + np.uintp(3) * eight), d)
        for found in (a, b, c, d):
            accumulate8(total, k, found)
            k += eight
    while k < whole:
        a = broadcast8(np.float32(0))
        for e in range(first, last):
            at = np.uintp(rows.other[e]) * whole + k
            a = fma8(broadcast8(rows.weight[e]), load8(flat, at), a)
        accumulate8(total, k, a)
        k += eight


@shared
def sum_triangles(taken: Ints, rows: SortedRows, triangles: Singles, out: Singles) -> None:
    """Write C_m = sum w_e Cov[v_n] of every key."""
    size, flat = triangles.shape[1], triangles.ravel()
    total = np.empty(size)
    first = claim(taken, CHUNK)
    while first < len(out):
        for m in range(first, min(first + CHUNK, len(out))):
            total[:] = 0
            for start in range(rows.begin[m], rows.begin[m + 1], TILE):
                end = min(start + TILE, rows.begin[m + 1])
                add_columns(rows, flat, size, start, end, total)
            for k in range(size):
                out[m, k] = total[k]
        first = claim(taken, CHUNK)


@shared
def read_side(taken: Ints, moments: Array, width: int, lines: Singles, triangles: Singles) -> None:
    """Write the means and the covariances of every vector, from E[x] and E[x x^T]."""
    first = claim(taken, CHUNK)
    while first < len(moments):
        for m in range(first, min(first + CHUNK, len(moments))):
            own, place = moments[m], 0
            for k in range(width):
                lines[m, k] = own[k]
                for j in range(k + 1):
                    triangles[m, place] = own[width + k * width + j] - own[k] * own[j]
                    place += 1
        first = claim(taken, CHUNK)


@shared
def write_side(taken: Ints, lines: Singles, width: int, natural: Array, moments: Array) -> None:
    """Write new means to the natural parameters and the moments; covariances stay."""
    first = claim(taken, CHUNK)
    while first < len(moments):
        for m in range(first, min(first + CHUNK, len(moments))):
            own, line = moments[m], lines[m]
            for k in range(width):
                total = 0.0
                for j in range(width):
                    total -= 2 * natural[m, width + k * width + j] * line[j]
                    at = width + k * width + j
                    own[at] += np.float64(line[k]) * line[j] - own[k] * own[j]
                natural[m, k] = total
            for k in range(width):
                own[k] = line[k]
        first = claim(taken, CHUNK)


def vector_means(natural: Array, width: int) -> Singles:
    """Return the means of MvNormals, in single precision."""
    mean = np.empty((len(natural), width), np.float32)
    share(write_means, np.ascontiguousarray(natural, np.float64).view(), width, mean)
    return mean


@shared
def write_means(taken: Ints, natural: Array, width: int, mean: Singles) -> None:
    """Write the mean of every vector, from natural parameters; NaN where there is none."""
    root, vector = np.empty((width, width)), np.empty(width)
    first = claim(taken, CHUNK)
    while first < len(natural):
        for m in range(first, min(first + CHUNK, len(natural))):
            own = natural[m]
            for k in range(width):
                vector[k] = own[k]
                for j in range(k + 1):
                    root[k, j] = -own[width + k * width + j] - own[width + j * width + k]
            if not solve(root, vector):
                vector[:] = np.nan
            for k in range(width):
                mean[m, k] = vector[k]
        first = claim(taken, CHUNK)


def mean_and_covariance(natural: Array, width: int) -> tuple[Singles, Singles]:
    """Return the means and the covariances of MvNormals, in single precision."""
    mean = np.empty((len(natural), width), np.float32)
    covariance = np.empty((len(natural), width, width), np.float32)
    own = np.ascontiguousarray(natural, np.float64).view()
    share(write_standard, own, width, mean, covariance)
    return mean, covariance


@shared
def write_standard(
    taken: Ints, natural: Array, width: int, mean: Singles, covariance: Singles
) -> None:
    """Write the mean and the covariance of every vector, from natural parameters."""
    system = system_for(width)
    size = system.shape[1]
    root, vector = system[:size], system[2 * size]
    first = claim(taken, CHUNK)
    while first < len(natural):
        for m in range(first, min(first + CHUNK, len(natural))):
            own = natural[m]
            for k in range(width):
                vector[k] = own[k]
                for j in range(k + 1):
                    root[k, j] = -own[width + k * width + j] - own[width + j * width + k]
            if solve(root[:width], vector[:width]):
                invert(root, width, system[size : 2 * size])
            else:
                vector[:] = np.nan
                root[:] = np.nan
            for k in range(width):
                mean[m, k] = vector[k]
                for j in range(k + 1):
                    covariance[m, k, j] = covariance[m, j, k] = root[k, j]
        first = claim(taken, CHUNK)
