"""Cholesky factorisation, solution and inversion of small systems, inside the loops.

Four rows at a time: they share the loads of a fifth, and their sums are independent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import bare


@bare
def factorise(matrix: Array) -> bool:
    """Replace the lower triangle by its Cholesky factor; return whether the matrix has one."""
    count = len(matrix)
    for j in range(count):
        row = matrix[j]
        square = row[j]
        for k in range(j):
            square -= row[k] * row[k]
        if not square > 0:
            return False
        row[j] = np.sqrt(square)
        inverse = 1 / row[j]
        whole = j + 1 + (count - j - 1) // 4 * 4
        for i in range(j + 1, whole, 4):
            w, x, y, z = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
            a, b, c, d = w[j], x[j], y[j], z[j]
            for k in range(j):
                a -= w[k] * row[k]
                b -= x[k] * row[k]
                c -= y[k] * row[k]
                d -= z[k] * row[k]
            w[j], x[j], y[j], z[j] = a * inverse, b * inverse, c * inverse, d * inverse
        for i in range(whole, count):
            w = matrix[i]
            a = w[j]
            for k in range(j):
                a -= w[k] * row[k]
            w[j] = a * inverse
    return True


@bare
def solve(matrix: Array, vector: Array) -> bool:
    """Solve a symmetric system in place; return whether it is positive definite."""
    if not factorise(matrix):
        return False
    for i in range(len(vector)):
        row, total = matrix[i], vector[i]
        for k in range(i):
            total -= row[k] * vector[k]
        vector[i] = total / row[i]
    for i in range(len(vector) - 1, -1, -1):
        row = matrix[i]
        found = vector[i] = vector[i] / row[i]
        for k in range(i):
            vector[k] -= row[k] * found
    return True


@bare
def four_dots(matrix: Array, i: int, row: Array, first: int, last: int) -> Any:
    """Return the inner products of four rows of a matrix with another, over some columns."""
    w, x, y, z = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
    a = b = c = d = 0.0
    for k in range(first, last):
        a += w[k] * row[k]
        b += x[k] * row[k]
        c += y[k] * row[k]
        d += z[k] * row[k]
    return a, b, c, d


@bare
def invert(root: Array, size: int, scratch: Array) -> None:
    """Replace a lower Cholesky factor L by the lower triangle of (L L^T)^-1.

    Both arrays are padded to a multiple of four rows and columns.
    """
    scratch[:] = 0
    for i in range(size):  # the inverse of L, transposed
        row, inverse = root[i], -1 / root[i, i]
        for j in range(0, i, 4):
            a, b, c, d = four_dots(scratch, j, row, j, i)
            scratch[j, i], scratch[j + 1, i] = a * inverse, b * inverse
            scratch[j + 2, i], scratch[j + 3, i] = c * inverse, d * inverse
        scratch[i, i] = -inverse
    for j in range(size):
        row = root[j]
        for i in range(0, j + 1, 4):
            row[i], row[i + 1], row[i + 2], row[i + 3] = four_dots(scratch, i, scratch[j], j, size)
