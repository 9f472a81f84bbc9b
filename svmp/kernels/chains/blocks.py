"""Products and triangular solutions of small matrices, as the recursions of Gaussian chains need.

The innermost loops run along rows, so that they are vectorised where blocks are large.
"""

from __future__ import annotations

from svmp.families.family import Array
from svmp.kernels.machine.compiling import bare


@bare
def multiply(left: Array, right: Array, out: Array, size: int) -> None:
    """Write the product of two matrices."""
    for i in range(size):
        for j in range(size):
            out[i, j] = 0.0
        for k in range(size):
            value = left[i, k]
            for j in range(size):
                out[i, j] += value * right[k, j]


@bare
def multiply_transposed(left: Array, right: Array, out: Array, size: int) -> None:
    """Write the product of a matrix and the transpose of another."""
    for i in range(size):
        for j in range(size):
            total = 0.0
            for k in range(size):
                total += left[i, k] * right[j, k]
            out[i, j] = total


@bare
def add_gram(root: Array, out: Array, size: int) -> None:
    """Add root' root to the lower triangle of a matrix."""
    for k in range(size):
        for i in range(size):
            value = root[k, i]
            for j in range(i + 1):
                out[i, j] += value * root[k, j]


@bare
def mirror(matrix: Array, size: int) -> None:
    """Copy the lower triangle to the upper one."""
    for i in range(size):
        for j in range(i):
            matrix[j, i] = matrix[i, j]


@bare
def solve_lower(root: Array, matrix: Array, size: int) -> None:
    """Replace a matrix by root^-1 matrix, with a lower triangular root."""
    for i in range(size):
        for k in range(i):
            value = root[i, k]
            for j in range(size):
                matrix[i, j] -= value * matrix[k, j]
        inverse = 1 / root[i, i]
        for j in range(size):
            matrix[i, j] *= inverse
