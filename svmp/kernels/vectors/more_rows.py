"""More rows of a bilinear model whose q is known: q before is the prior of its vectors.

    r_e = u_m . v_n + noise with precision w_e,     row e of user m and item n

With the precision P and the mean p of u_m before, and q of the items, the bound is greatest at

    P* = P + sum w_e (E[v_n] E[v_n]^T + Cov[v_n]),    E[u_m] = P*^-1 (P p + sum w_e r_e E[v_n]),

and Cov[u_m] = P*^-1. If q is a product over the entries of a vector, these are updated one after
another: with rest_e = r_e - sum over j != k of E[u_mj] E[v_nj],

    E[u_mk] = (P_kk p_k + sum w_e E[v_nk] rest_e) / P*_kk,    Var[u_mk] = 1 / P*_kk.

Means are lines, as in means.py. Spreads are lower triangles of covariances, or variances, padded
with zeros to a multiple of eight. Only vectors that have rows are read and written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array, Bools
from svmp.kernels.machine.cholesky import factorise, invert, solve
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.machine.simd import EIGHT, accumulate8, broadcast8, fma8, load8, store8
from svmp.kernels.vectors.means import TILE, Singles, SortedRows, add_columns
from svmp.kernels.vectors.update import system_for
from svmp.network.grid import Ints

BLOCK = 1024
"""Rows that a thread takes at a time."""
FOUR = 4
"""Rows that are added at a time."""


@shared
def read_vectors(
    taken: Ints,
    keys: Ints,
    mean: Singles,
    cov: Singles,
    lines: Singles,
    spreads: Singles,
    precision: Array,
    pull: Array,
    sound: Bools,
) -> None:
    """Write q at some keys as lines and spreads, and as a prior: P, laid out as spreads, and P p.

    `cov` has the variances of a vector in a line, or its covariance matrix.
    """
    width = mean.shape[1]
    full, system = cov.shape[1] != width, system_for(width)
    size = system.shape[1]
    root, scratch = system[:size], system[size : 2 * size]
    first = claim(taken, CHUNK)
    while first < len(keys):
        for m in range(first, min(first + CHUNK, len(keys))):
            key, place = keys[m], 0
            for k in range(width):
                lines[m, k] = mean[key, k]
                for j in range(0 if full else k, k + 1):
                    found = cov[key, k * width + j if full else k]
                    root[k, j] = spreads[m, place] = found
                    place += 1
                if not full:
                    precision[m, k] = 1 / found
                    pull[m, k] = mean[key, k] / found
            if not full:
                continue
            sound[m] = factorise(root[:width])
            if sound[m]:
                invert(root, width, scratch)
            place = 0
            for k in range(width):
                total = 0.0
                for j in range(width):
                    total += root[max(j, k), min(j, k)] * mean[key, j]
                pull[m, k] = total
                for j in range(k + 1):
                    precision[m, place] = root[k, j]
                    place += 1
        first = claim(taken, CHUNK)


@shared
def write_vectors(
    taken: Ints, keys: Ints, lines: Singles, spreads: Singles, mean: Singles, cov: Singles
) -> None:
    """Write lines and spreads to the means and the variances, or covariances, at some keys."""
    width = mean.shape[1]
    full = cov.shape[1] != width
    first = claim(taken, CHUNK)
    while first < len(keys):
        for m in range(first, min(first + CHUNK, len(keys))):
            key, place = keys[m], 0
            for k in range(width):
                mean[key, k] = lines[m, k]
                for j in range(0 if full else k, k + 1):
                    cov[key, k * width + j if full else k] = spreads[m, place]
                    cov[key, j * width + k if full else k] = spreads[m, place]
                    place += 1
        first = claim(taken, CHUNK)


@bare
def variance(
    one: Singles, of_one: Singles, other: Singles, of_other: Singles, width: int, full: bool
) -> float:
    """Return Var[u . v], a sum over pairs of entries of which each pair counts twice."""
    total, place = 0.0, 0
    for k in range(width):
        for j in range(0 if full else k, k + 1):
            a, b = np.float64(of_one[place]), np.float64(of_other[place])
            found = (one[k] * one[j] + a) * b + a * (other[k] * other[j])
            total += found if j == k else 2 * found
            place += 1
    return total


@shared
def score_rows(
    taken: Ints,
    user: NDArray[np.int32],
    item: NDArray[np.int32],
    lines: Singles,
    spreads: Singles,
    item_lines: Singles,
    item_spreads: Singles,
    width: int,
    full: bool,
    out: Array,
) -> None:
    """Write E[u . v] and Var[u . v] of each row."""
    first = claim(taken, BLOCK)
    while first < len(out):
        for e in range(first, min(first + BLOCK, len(out))):
            m, n = user[e], item[e]
            one, other, total = lines[m], item_lines[n], 0.0
            for k in range(width):
                total += np.float64(one[k]) * other[k]
            out[e, 0] = total
            out[e, 1] = variance(one, spreads[m], other, item_spreads[n], width, full)
        first = claim(taken, BLOCK)


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
def update_vectors(
    taken: Ints,
    rows: SortedRows,
    lines: Singles,
    spreads: Singles,
    precision: Array,
    pull: Array,
    own: Singles,
    own_spreads: Singles,
    sound: Bools,
) -> None:
    """Update every vector of one side from its prior and its rows, in place; q has covariances.

    Parameters
    ----------
    rows, lines, spreads
        Rows sorted by the keys of this side, and q of the other side.
    precision, pull
        P and P p of each vector.
    own, own_spreads
        q of this side, which is written.
    sound
        Set to False where P* is not positive definite; such a vector stays as it is.
    """
    width, wide, size = pull.shape[1], lines.shape[1], spreads.shape[1]
    at, weights = np.empty(TILE, np.uintp), np.empty(TILE, np.float32)
    tile, pulls = np.empty(wide * wide, np.float32), np.empty(wide, np.float32)
    total, right, spread = np.empty(wide * wide), np.empty(wide), np.empty(size)
    system, flat, flat_spreads = system_for(width), lines.ravel(), spreads.ravel()
    padded = system.shape[1]
    root, scratch = system[:padded], system[padded : 2 * padded]
    first = claim(taken, CHUNK)
    while first < len(own):
        for m in range(first, min(first + CHUNK, len(own))):
            total[:] = 0
            right[:] = 0
            spread[:] = 0
            for start in range(rows.begin[m], rows.begin[m + 1], TILE):
                end = min(start + TILE, rows.begin[m + 1])
                add_tile(rows, flat, width, start, end, at, weights, tile, pulls)
                for j in range(0, wide * wide, EIGHT):
                    accumulate8(total, np.uintp(j), load8(tile, np.uintp(j)))
                for j in range(wide):
                    right[j] += pulls[j]
                add_columns(rows, flat_spreads, size, start, end, spread)
            place = 0
            for k in range(width):
                right[k] += pull[m, k]
                for j in range(k + 1):
                    root[k, j] = total[j * wide + k] + precision[m, place] + spread[place]
                    place += 1
            if solve(root[:width], right[:width]):
                invert(root, width, scratch)
                place = 0
                for k in range(width):
                    own[m, k] = right[k]
                    for j in range(k + 1):
                        own_spreads[m, place] = root[k, j]
                        place += 1
            else:
                sound[m] = False
        first = claim(taken, CHUNK)


@shared
def update_entries(
    taken: Ints,
    rows: SortedRows,
    lines: Singles,
    spreads: Singles,
    precision: Array,
    pull: Array,
    own: Singles,
    own_spreads: Singles,
    sound: Bools,
) -> None:
    """Do the same entry by entry, where q is a product over entries."""
    width, size, most = pull.shape[1], spreads.shape[1], 0
    for m in range(len(own)):
        most = max(most, rows.begin[m + 1] - rows.begin[m])
    columns, rest, spread = np.empty((width, most)), np.empty(most), np.empty(size)
    flat_spreads = spreads.ravel()
    first = claim(taken, CHUNK)
    while first < len(own):
        for m in range(first, min(first + CHUNK, len(own))):
            begin, end = rows.begin[m], rows.begin[m + 1]
            line, weights = own[m], rows.weight[begin:end]
            spread[:] = 0
            add_columns(rows, flat_spreads, size, begin, end, spread)
            for i in range(end - begin):
                other, found = lines[rows.other[begin + i]], 0.0
                for k in range(width):
                    columns[k, i] = other[k]
                    found += other[k] * line[k]
                rest[i] = rows.target[begin + i] - found
            for k in range(width):
                column, square, product = columns[k], 0.0, 0.0
                for i in range(end - begin):
                    scaled = weights[i] * column[i]
                    square += scaled * column[i]
                    product += scaled * rest[i]
                total = precision[m, k] + spread[k] + square
                change = np.float32((pull[m, k] + product + square * line[k]) / total) - line[k]
                for i in range(end - begin):
                    rest[i] -= change * column[i]
                line[k] += change
                own_spreads[m, k] = 1 / total
                if not total > 0:
                    sound[m] = False
        first = claim(taken, CHUNK)
