"""Batches of symmetric matrices, stored as flat vectors in natural parameters and moments."""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array, Bools


def flat(matrix: Array) -> Array:
    """Flatten every matrix in C order.

    >>> flat(np.array([[1.0, 2.0], [2.0, 5.0]]))
    array([1., 2., 2., 5.])
    """
    return matrix.reshape(*matrix.shape[:-2], matrix.shape[-2] * matrix.shape[-1])


def symmetric(vector: Array, dimension: int) -> Array:
    """Undo `flat`, and remove the asymmetry of rounding errors.

    >>> symmetric(np.array([1.0, 2.0, 2.0, 5.0]), 2)
    array([[1., 2.],
           [2., 5.]])
    """
    matrix = vector.reshape(*vector.shape[:-1], dimension, dimension)
    return 0.5 * (matrix + np.swapaxes(matrix, -1, -2))


def join(*parts: Array) -> Array:
    """Concatenate vectors along the last axis, broadcasting the axes before it.

    >>> join(np.array([[1.0], [2.0]]), np.array([7.0, 8.0]))
    array([[1., 7., 8.],
           [2., 7., 8.]])
    """
    if len({part.shape[:-1] for part in parts}) == 1:
        return np.concatenate(parts, axis=-1)
    plates = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    wide = [np.broadcast_to(part, (*plates, part.shape[-1])) for part in parts]
    return np.concatenate(wide, axis=-1)


def apply(matrix: Array, vector: Array) -> Array:
    """Multiply matrix and vector, batch by batch.

    >>> apply(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([1.0, 1.0]))
    array([3., 1.])
    """
    return np.asarray(np.einsum("...ij,...j->...i", matrix, vector))


def cholesky(matrix: Array) -> Array:
    """Lower Cholesky root of every matrix, nan for those that are not positive definite.

    LAPACK refuses a whole batch for one such matrix, without saying which.
    """
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        return _columnwise_cholesky(matrix)


def _columnwise_cholesky(matrix: Array) -> Array:
    root = np.zeros_like(matrix)
    with np.errstate(all="ignore"):
        for j in range(matrix.shape[-1]):
            rest = matrix[..., j:, j] - apply(root[..., j:, :j], root[..., j, :j])
            root[..., j:, j] = rest / np.sqrt(rest[..., :1])
    sound = np.isfinite(root).all(axis=(-2, -1), keepdims=True)
    return np.where(sound, root, np.nan)


def inverse(matrix: Array) -> Array:
    """Inverse of every positive definite matrix, symmetric to the last bit.

    >>> inverse(np.array([[4.0, 0.0], [0.0, 0.5]]))
    array([[0.25, 0.  ],
           [0.  , 2.  ]])
    """
    whitener = np.linalg.inv(cholesky(matrix))
    product = np.swapaxes(whitener, -1, -2) @ whitener
    return np.asarray(0.5 * (product + np.swapaxes(product, -1, -2)))


def log_det(matrix: Array) -> Array:
    """Log-determinant of every positive definite matrix.

    >>> log_det(np.array([[[4.0, 0.0], [0.0, 0.5]]])).round(4)
    array([0.6931])
    """
    return log_det_root(cholesky(matrix))


def log_det_root(root: Array) -> Array:
    """Log-determinant of the matrices with these Cholesky roots."""
    diagonal = np.diagonal(root, axis1=-2, axis2=-1)
    return np.asarray(2 * np.log(diagonal).sum(axis=-1))


def is_positive_definite(matrix: Array) -> Bools:
    """Where a symmetric matrix is finite and positive definite.

    >>> is_positive_definite(np.array([np.eye(2), -np.eye(2)]))
    array([ True, False])
    """
    finite = np.asarray(np.isfinite(matrix).all(axis=(-2, -1)))
    sound = np.where(finite[..., None, None], matrix, np.eye(matrix.shape[-1]))
    return np.asarray(finite & np.isfinite(cholesky(sound)).all(axis=(-2, -1)))


def is_symmetric(matrix: Array) -> Bools:
    """Where a matrix equals its transpose, up to rounding.

    >>> is_symmetric(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array(False)
    """
    gap = np.abs(matrix - np.swapaxes(matrix, -1, -2)).max(axis=(-2, -1))
    return np.asarray(gap <= 1e-9 * np.abs(matrix).max(axis=(-2, -1)))
