"""L D L^T of the columns of a symmetric matrix that are eliminated sparsely, and what follows.

The unknowns are in the order of elimination. The first, "sparse", ones have columns in the pattern
of L; the rest, the "tail", is what they leave as a dense matrix, for LAPACK. Entries of L on its
diagonal are 1, and are not stored.

    factorise     L and D, left-looking, and the Schur complement of the tail
    invert        Takahashi's recursion: the entries of the inverse in the pattern of L alone
    forward, ...  products with inverses of L

A left-looking column is made in a dense work vector, to which all earlier columns with an entry in
its row add: they are in linked lists, each at its next row. So there is no search for an entry.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.gaussian.equations import Lower
from svmp.kernels.machine.compiling import shared
from svmp.network.grid import Ints


@shared
def factorise(
    matrix: Lower, values: Array, pattern: Lower, lower: Array, pivots: Array, tail: Array
) -> int:
    """Write L and D, and the Schur complement of the tail; return the first bad column or -1.

    Parameters
    ----------
    matrix, values
        The lower triangle of the matrix, with its diagonal.
    pattern, lower, pivots
        The pattern of L, and where L and D are written.
    tail
        The Schur complement, rows of its upper triangle.
    """
    sparse, size = len(pivots), len(matrix.starts) - 1
    work = np.zeros(size)
    head, after = np.full(sparse, -1), np.full(sparse, -1)
    place = pattern.starts.copy()
    for j in range(sparse):
        for k in range(matrix.starts[j], matrix.starts[j + 1]):
            work[matrix.row[k]] = values[k]
        i = head[j]
        while i >= 0:
            following, first, last = after[i], place[i], pattern.starts[i + 1]
            c = lower[first] * pivots[i]
            for k in range(first, last):
                work[pattern.row[k]] -= c * lower[k]
            place[i] = first + 1
            if first + 1 < last and pattern.row[first + 1] < sparse:
                at = pattern.row[first + 1]
                after[i], head[at] = head[at], i
            i = following
        pivot = work[j]
        work[j] = 0.0
        if not (pivot > 0 and pivot < np.inf):
            return j
        pivots[j] = pivot
        first, last = pattern.starts[j], pattern.starts[j + 1]
        for k in range(first, last):
            lower[k] = work[pattern.row[k]] / pivot
            work[pattern.row[k]] = 0.0
        if first < last and pattern.row[first] < sparse:
            at = pattern.row[first]
            after[j], head[at] = head[at], j
    for j in range(sparse, size):
        for k in range(matrix.starts[j], matrix.starts[j + 1]):
            tail[j - sparse, matrix.row[k] - sparse] += values[k]
    for j in range(sparse):
        last = pattern.starts[j + 1]
        for k in range(place[j], last):  # where the rows of the tail begin
            c, line = lower[k] * pivots[j], tail[pattern.row[k] - sparse]
            for m in range(k, last):
                line[pattern.row[m] - sparse] -= c * lower[m]
    return -1


@shared
def invert(pattern: Lower, lower: Array, pivots: Array, tail: Array, out: Array) -> Array:
    """Write the inverse in the pattern of L; return its diagonal in the sparse part.

    With S the rows of column k, inv_Sk = -inv_SS L_Sk and inv_kk = 1 / d_k - L_Sk^T inv_Sk.
    """
    sparse = len(pivots)
    diagonal, place = np.empty(sparse), np.full(sparse + len(tail), -1)
    for k in range(sparse - 1, -1, -1):
        first, last = pattern.starts[k], pattern.starts[k + 1]
        for m in range(first, last):
            out[m] = 0.0
            place[pattern.row[m]] = m
        for m in range(first, last):
            j, x = pattern.row[m], lower[m]
            if j < sparse:
                out[m] -= diagonal[j] * x
                for e in range(pattern.starts[j], pattern.starts[j + 1]):
                    other = place[pattern.row[e]]
                    if other >= 0:
                        out[other] -= out[e] * x
                        out[m] -= out[e] * lower[other]
            else:
                line, total = tail[j - sparse], tail[j - sparse, j - sparse] * x
                for e in range(m + 1, last):
                    value = line[pattern.row[e] - sparse]
                    out[e] -= value * x
                    total += value * lower[e]
                out[m] -= total
        total = 1 / pivots[k]
        for m in range(first, last):
            total -= lower[m] * out[m]
            place[pattern.row[m]] = -1
        diagonal[k] = total
    return diagonal


@shared
def forward(pattern: Lower, lower: Array, sparse: int, b: Array) -> None:
    """Take the vectors of the columns of b to L^-1 b."""
    for k in range(sparse):
        for m in range(pattern.starts[k], pattern.starts[k + 1]):
            i, x = pattern.row[m], lower[m]
            for c in range(b.shape[1]):
                b[i, c] -= x * b[k, c]


@shared
def backward(pattern: Lower, lower: Array, sparse: int, b: Array) -> None:
    """Take the vectors of the columns of b to L^-T b."""
    for k in range(sparse - 1, -1, -1):
        for m in range(pattern.starts[k], pattern.starts[k + 1]):
            i, x = pattern.row[m], lower[m]
            for c in range(b.shape[1]):
                b[k, c] -= x * b[i, c]


@shared
def inverse_entries(
    pattern: Lower,
    lower: Array,
    pivots: Array,
    tail: Array,
    columns: Ints,
    ends: Ints,
    rows: Ints,
    out: Array,
) -> None:
    """Write any entries of the inverse.

    Only what an entry depends on is computed: of L^-1 e_j the ancestors of j, and of the inverse
    the ancestors of each row.

    Parameters
    ----------
    pattern, lower, pivots, tail
        The factor, and the inverse of the tail.
    columns, ends, rows
        The columns, and the rows that are asked for of each: those of the first are the first.
    out
        The entry of each row.
    """
    sparse, size = len(pivots), len(pivots) + len(tail)
    work, z = np.zeros(size), np.zeros(size)
    known, path, met = np.full(size, -1), np.empty(size, np.int64), np.empty(size, np.int64)
    begin = 0
    for c in range(len(columns)):
        k, touched = columns[c], 0
        work[k] = 1.0
        if k >= sparse:
            met[0], touched = k, 1
            known[k] = -2 - c
        while k < sparse:  # L^-1 e_j, along the ancestors of j
            known[k] = -2 - c  # not 0 there
            for m in range(pattern.starts[k], pattern.starts[k + 1]):
                i = pattern.row[m]
                if i >= sparse and known[i] != -2 - c:
                    known[i], met[touched] = -2 - c, i
                    touched += 1
                work[i] -= lower[m] * work[k]
            k = (
                pattern.row[pattern.starts[k]]
                if pattern.starts[k] < pattern.starts[k + 1]
                else size
            )
        z[sparse:] = 0.0
        for m in range(touched):
            z[sparse:] += work[met[m]] * tail[met[m] - sparse]
            work[met[m]] = 0.0
        for e in range(begin, ends[c]):
            i, depth = rows[e], 0
            while i < sparse and known[i] != c:
                path[depth] = i
                depth += 1
                first = pattern.starts[i]
                i = pattern.row[first] if first < pattern.starts[i + 1] else size
            for at in range(depth - 1, -1, -1):
                i = path[at]
                total = work[i] / pivots[i] if known[i] == -2 - c else 0.0
                for m in range(pattern.starts[i], pattern.starts[i + 1]):
                    total -= lower[m] * z[pattern.row[m]]
                z[i] = total
                known[i] = c
            out[e] = z[rows[e]]
        k = columns[c]
        while k < sparse:
            work[k] = 0.0
            first = pattern.starts[k]
            k = pattern.row[first] if first < pattern.starts[k + 1] else size
        begin = ends[c]
