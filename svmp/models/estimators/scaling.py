"""Units of the data: estimators fit standardised columns, and transform the answer back.

So the priors suit any units, and a fit is equivariant: with a target or column in other units, or
shifted, the answer is the same one in those units.

    Standard     z = (x - centre) / scale      each column alone
    Basis        Z = X R^-1, Z'Z / n = I       each column less what earlier ones explain
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array

ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Size of what is left of a column that others explain, relative to the column, by rounding."""


@dataclass(frozen=True, eq=False)
class Standard:
    """Columns less their mean, divided by their standard deviation.

    Attributes
    ----------
    centre, scale
        Of each column. The scale of a constant column is 1.

    >>> standard = Standard.of(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> standard.apply(np.array([[4.0, 5.0]]))
    array([[2., 0.]])
    """

    centre: Array
    scale: Array

    @classmethod
    def of(cls, X: Array, centred: bool = True) -> Self:
        """Return the units of columns; without a centre, the scale is the root mean square."""
        largest = np.abs(X).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)  # so that no square overflows or vanishes
        centre = unit * (X / unit).mean(axis=0) if centred else np.zeros(X.shape[1:])
        scale = unit * np.sqrt((((X - centre) / unit) ** 2).mean(axis=0))
        return cls(centre, np.where(scale > ROUNDING * largest, scale, 1.0))

    def apply(self, X: Array) -> Array:
        """Return columns in standard units."""
        return np.asarray((X - self.centre) / self.scale)


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthogonal columns that span the same space as those of a design.

    Attributes
    ----------
    inverse
        Z = X @ inverse, upper triangular, without the columns of X that earlier ones explain.
        Coefficients of Z become those of X by `inverse @ z`.
    kept
        Which columns of X earlier ones do not explain.

    >>> X = np.array([[1.0, 4.0, 5.0], [1.0, 6.0, 7.0]])
    >>> basis = Basis.of(X)
    >>> X @ basis.inverse
    array([[ 1., -1.],
           [ 1.,  1.]])
    >>> basis.kept
    array([0, 1])
    """

    inverse: Array
    kept: NDArray[np.int64]

    @classmethod
    def of(cls, X: Array) -> Self:
        """Return an orthogonal basis of columns, by Gram and Schmidt, each step taken twice."""
        n, width = X.shape
        Z, inverse, kept = np.empty((n, 0)), np.empty((width, 0)), list[int]()
        for j in range(width):
            column, unit = X[:, j], float(np.abs(X[:, j]).max(initial=0.0)) or 1.0
            left, weights = column / unit, np.eye(width)[:, j] / unit
            size = np.sqrt((left**2).mean())
            for _ in range(2):
                along = Z.T @ left / n
                left, weights = left - Z @ along, weights - inverse @ along
            length = np.sqrt((left**2).mean())
            if length > ROUNDING * size:
                Z = np.column_stack([Z, left / length])
                inverse = np.column_stack([inverse, weights / length])
                kept.append(j)
        return cls(inverse, np.array(kept, dtype=np.int64))


def coefficients_in_units(columns: Standard, intercept: bool) -> Array:
    """Return the matrix that takes coefficients of standardised columns to those of the columns.

    >>> coefficients_in_units(Standard(np.array([10.0]), np.array([2.0])), True)
    array([[ 1. , -5. ],
           [ 0. ,  0.5]])
    """
    slopes = np.diag(1 / columns.scale)
    if not intercept:
        return slopes
    first = np.append(1.0, -columns.centre / columns.scale)
    return np.vstack([first, np.column_stack([np.zeros(len(slopes)), slopes])])
