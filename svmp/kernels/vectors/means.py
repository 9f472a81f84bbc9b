"""Means and covariances of the vectors of a bilinear model, read from q and written to it.

The means of a side are lines, padded with zeros to a multiple of eight; covariances are lower
triangles. Both are in single precision. Sums of a tile of rows are made in single precision and
added in double.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.kernels.machine.cholesky import invert, solve
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.machine.simd import EIGHT, accumulate8, broadcast8, fma8, load8
from svmp.kernels.machine.threads import share
from svmp.kernels.vectors.update import system_for
from svmp.network.grid import Ints

TILE = 128
"""Rows whose sums are made in single precision."""

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
