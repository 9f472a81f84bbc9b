"""Small positive definite systems, solved inside the loops."""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.compiling import bare


@bare
def factorise(matrix: Array) -> bool:
    """Replace the lower triangle by its Cholesky factor; return whether it has one."""
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
        for i in range(j + 1, whole, 4):  # four rows share what is read of this one
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
    """Solve a system in place by Cholesky's method; return whether it is positive definite."""
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
