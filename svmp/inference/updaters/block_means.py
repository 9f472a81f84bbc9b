"""The means of a linear block that maximise a quadratic: bound(m + d) = g . d - d^T A d / 2."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from svmp.families.family import Array
from svmp.network.grid import Ints

FARTHEST = 3e6
"""Largest term of a row's mean, in standard deviations of the row: with a larger one, E[mu^2] has
too few digits for a variance."""


def natural_of(precision: Array, means: Array, places: Ints) -> Array:
    """Return the natural parameters of elements, given A, all means, and their unknowns."""
    own = precision[places[:, :, None], places[:, None, :]]
    linear = np.einsum("eij,ej->ei", own, means[places])
    return np.concatenate([linear, -0.5 * own.reshape(len(own), -1)], axis=1)


def block_step(precision: Array, gradient: Array, means: Array, row: Array) -> Array:
    """Return the change of the means to the optimum, or that of a sweep of coordinate ascent.

    The optimum must be finite, and near enough to 0 for the precision of a row in each mean. The
    step length is 1 up to rounding, see `linear_block.solve_means`.
    """
    step = newton_step(precision, gradient)
    if not np.all((means + step) ** 2 * row <= FARTHEST**2):
        step = coordinate_step(precision, gradient)
    curvature = float(step @ precision @ step)
    return np.asarray(step * (float(gradient @ step) / curvature if curvature > 0 else 0.0))


def newton_step(precision: Array, gradient: Array) -> Array:
    """Solve A d = g, scaled so that the diagonal of A is 1; NaN if the solution fails.

    >>> newton_step(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([3.0, 3.0]))
    array([1., 1.])
    """
    scale = 1 / np.sqrt(precision.diagonal())
    scaled = precision * scale[:, None] * scale
    try:
        factor = linalg.cho_factor(scaled)
    except (linalg.LinAlgError, ValueError):  # not positive definite as rounded; not finite
        return np.full_like(gradient, np.nan)
    return np.asarray(scale * linalg.cho_solve(factor, scale * gradient))


def coordinate_step(precision: Array, gradient: Array) -> Array:
    """Return the changes of the means when they are updated one after the other.

    >>> coordinate_step(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([3.0, 3.0]))
    array([1.5 , 0.75])
    """
    return np.asarray(linalg.solve_triangular(precision, gradient, lower=True, check_finite=False))
