"""Sums over rows as products of matrices, with the same bits on any number of threads.

With x the coefficients of a row and w its weight, messages are sums over rows of w x and w x x^T,
and the variance of a row's mean is x^T S x. These are products of matrices, which BLAS computes an
order of magnitude faster than row by row.

BLAS divides a large product among threads, and how it does so changes the order of its additions
and so the last bits. Rows are therefore taken in blocks of a fixed size, each short enough that
every number of the product is added up in one pass, whoever computes it; the blocks are added in
their order. (Measured with the OpenBLAS of NumPy's wheels, one to four threads: products of whole
tables differ in the last bits, products of blocks do not.)
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.network.grid import Ints, column_sums

BLOCK = 256
"""Rows of a block; more where rows are short."""
SINGLE = 8192
"""Numbers of a matrix up to which BLAS uses one thread for its product with a vector."""
PRODUCT = 1 << 18
"""Products of numbers up to which BLAS uses one thread for the product of two matrices. How larger
ones are divided changes last bits: those of (500, 200) times (200, 64) differ with two threads."""
TILE = 32
"""Rows of a tile, if the second matrix is wide."""
NARROW = 8
"""Columns up to which each is summed on its own."""
SEGMENT = 3000
"""Products of numbers that take as long as the calls for one product of matrices."""


def block_rows(width: int) -> int:
    """Return the number of rows of a block."""
    return max(BLOCK, SINGLE // max(width, 1) // BLOCK * BLOCK)


def times_vector(x: Array, vector: Array) -> Array:
    """Return x . v of each row.

    >>> times_vector(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, -1.0]))
    array([-1., -1.])
    """
    step, out = block_rows(x.shape[1]), np.empty(len(x))
    for start in range(0, len(x), step):
        np.matmul(x[start : start + step], vector, out=out[start : start + step])
    return out


def times_matrix(x: Array, matrix: Array) -> Array:
    """Return the product of two matrices.

    >>> times_matrix(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [-1.0]]))
    array([[-1.],
           [-1.]])
    """
    (rows, inner), columns = x.shape, matrix.shape[1]
    inner = max(1, min(inner, BLOCK))
    wide = max(1, min(columns, PRODUCT // (TILE * inner)))
    high = max(1, PRODUCT // (wide * inner))
    out = np.empty((rows, columns))
    for left in range(0, columns, wide):
        for top in range(0, rows, high):
            here, there = x[top : top + high], matrix[:, left : left + wide]
            part = out[top : top + high, left : left + wide]
            np.matmul(here[:, :BLOCK], there[:BLOCK], out=part)
            for start in range(BLOCK, x.shape[1], BLOCK):
                part += here[:, start : start + BLOCK] @ there[start : start + BLOCK]
    return out


def sum_of_products(x: Array, y: Array) -> Array:
    """Return x^T y, the sum over rows of x y^T.

    >>> sum_of_products(np.ones((600, 1)), np.full((600, 2), 0.5))
    array([[300., 300.]])
    """
    whole = len(x) // BLOCK * BLOCK
    blocks = x[:whole].reshape(-1, BLOCK, x.shape[1]).swapaxes(1, 2)
    total = np.matmul(blocks, y[:whole].reshape(-1, BLOCK, y.shape[1])).sum(axis=0)
    return np.asarray(total + x[whole:].T @ y[whole:])


def weighted_sum(x: Array, weight: Array) -> Array:
    """Return the sum over rows of w x.

    >>> weighted_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, -1.0]))
    array([-2., -2.])
    """
    step, total = block_rows(x.shape[1]), np.zeros(x.shape[1])
    for start in range(0, len(x), step):
        total += x[start : start + step].T @ weight[start : start + step]
    return total


def weighted_gram(x: Array, weight: Array | None = None) -> Array:
    """Return the sum over rows of w x x^T, with weights of 1 if there are none.

    >>> weighted_gram(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[10., 14.],
           [14., 20.]])
    """
    step, total = block_rows(x.shape[1]), np.zeros((x.shape[1], x.shape[1]))
    for start in range(0, len(x), step):
        part = x[start : start + step]
        scaled = part if weight is None else weight[start : start + step, None] * part
        total += part.T @ scaled
    return total


def quadratic_forms(x: Array, matrix: Array) -> Array:
    """Return x^T S x of each row.

    >>> quadratic_forms(np.array([[1.0, 2.0], [3.0, 4.0]]), np.diag([1.0, 10.0]))
    array([ 41., 169.])
    """
    step, out = block_rows(x.shape[1]), np.empty(len(x))
    for start in range(0, len(x), step):
        part = x[start : start + step]
        np.einsum("rk,rk->r", part @ matrix, part, out=out[start : start + step])
    return out


def sum_by_owner(values: Array, owner: Ints, count: int) -> Array:
    """Return the sum of the rows of each owner; owners are ascending.

    >>> sum_by_owner(np.array([[1.0], [2.0], [5.0]]), np.array([0, 0, 2]), 3)
    array([[3.],
           [0.],
           [5.]])
    """
    if count == 1:
        return column_sums(values)[None]
    if len(owner) == count and (owner[1:] > owner[:-1]).all():  # one row each
        return np.array(values, dtype=np.float64)
    total = np.zeros((count, values.shape[1]))
    if values.shape[1] <= NARROW:
        for column in range(values.shape[1]):
            total[:, column] = np.bincount(owner, values[:, column], count)
    elif len(values):
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        total[owner[starts]] = np.add.reduceat(values, starts, axis=0)
    return total


def sums_by_owner(x: Array, weight: Array, owner: Ints, count: int) -> Array:
    """Return the sum of w x over the rows of each owner; owners are ascending."""
    if count == 1:
        return weighted_sum(x, weight)[None]
    return sum_by_owner(weight[:, None] * x, owner, count)


def grams_by_owner(x: Array, weight: Array | None, owner: Ints, count: int) -> Array:
    """Return the sum of w x x^T over the rows of each owner; owners are ascending.

    >>> grams_by_owner(np.array([[1.0], [2.0], [5.0]]), None, np.array([0, 0, 2]), 3).ravel()
    array([ 5.,  0., 25.])
    """
    size = x.shape[1]
    if count == 1:
        return weighted_gram(x, weight)[None]
    total = np.zeros((count, size, size))
    if in_segments(len(x), size, count):
        bounds = np.searchsorted(owner, np.arange(count + 1))
        for place in range(count):
            here = slice(bounds[place], bounds[place + 1])
            total[place] = weighted_gram(x[here], None if weight is None else weight[here])
        return total
    if size <= NARROW:
        columns = np.ascontiguousarray(x.T)
        left = columns if weight is None else weight * columns
        for i in range(size):
            for j in range(i + 1):
                found = np.bincount(owner, left[i] * columns[j], count)
                total[:, i, j] = total[:, j, i] = found
        return total
    step = max(1, (1 << 20) // size**2)
    for start in range(0, len(x), step):
        part, who = x[start : start + step], owner[start : start + step]
        left = part if weight is None else weight[start : start + step, None] * part
        products = (left[:, :, None] * part[:, None, :]).reshape(len(part), -1)
        first, last = who[0], who[-1] + 1
        sums = sum_by_owner(products, who - first, int(last - first))
        total[first:last] += sums.reshape(-1, size, size)
    return total


def quadratic_forms_by_owner(x: Array, matrices: Array, owner: Ints) -> Array:
    """Return x^T S x of each row, with S the matrix of its owner; owners are in any order."""
    count, size = matrices.shape[:2]
    if count == 1:
        return quadratic_forms(x, matrices[0])
    out = np.empty(len(x))
    if in_segments(len(x), size, count):
        order = np.argsort(owner, kind="stable")
        bounds = np.searchsorted(owner[order], np.arange(count + 1))
        for place in range(count):
            here = order[bounds[place] : bounds[place + 1]]
            out[here] = quadratic_forms(x[here], matrices[place])
        return out
    step = max(1, (1 << 20) // size**2)
    for start in range(0, len(x), step):
        part, own = x[start : start + step], matrices[owner[start : start + step]]
        out[start : start + step] = np.einsum("rk,rk->r", np.einsum("rkl,rl->rk", own, part), part)
    return out


def in_segments(rows: int, size: int, owners: int) -> bool:
    """Whether owners have enough rows each for a product of matrices of their own."""
    return rows * size**2 >= SEGMENT * owners
