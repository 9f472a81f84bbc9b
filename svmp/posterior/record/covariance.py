"""Posterior covariances of the entries of some variables, as `Fit.covariance` returns them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.network.grid import Ints
from svmp.network.validation import shown


class NothingToCorrect(ModelError):
    """A fit has no variables whose variances linear response would change."""


@dataclass(frozen=True, eq=False)
class Covariance:
    """Means and covariances of all entries of some variables.

    Attributes
    ----------
    names, shapes
        The variables, and the shape of the mean of each.
    mean
        The means, of all variables one after the other.
    matrix
        The covariance matrix, in the same order.
    covariances
        What the covariances are those of: "q", "a joint block" or "linear response".
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    mean: Array
    matrix: Array
    covariances: str = "linear response"

    def var(self, name: str) -> Array:
        """Return the variance of each entry of a variable, with its dims."""
        place = self._place(name)
        shape = self.shapes[self.names.index(name)]
        return np.array(np.diagonal(self.matrix)[place]).reshape(shape)

    def std(self, name: str) -> Array:
        """Return the standard deviation of each entry of a variable, with its dims."""
        return np.asarray(np.sqrt(self.var(name)))

    def between(self, name: str, other: str) -> Array:
        """Return the covariances of the entries of two variables, flattened."""
        return self.matrix[self._place(name), self._place(other)].copy()

    def of(self, names: Sequence[str]) -> Array:
        """Return the covariance matrix of some of the variables, in the order of their names."""
        at = np.concatenate([np.zeros(0, dtype=np.int64), *map(self.places, names)])
        return self.matrix[np.ix_(at, at)]

    @property
    def correlation(self) -> Array:
        """The correlation matrix."""
        std = np.sqrt(np.diagonal(self.matrix))
        return np.asarray(self.matrix / np.outer(std, std))

    def _place(self, name: str) -> slice:
        if name not in self.names:
            raise ModelError(f"there are covariances of {list(self.names)}, not of {shown(name)}")
        at = self.names.index(name)
        start = sum(map(prod, self.shapes[:at]))
        return slice(start, start + prod(self.shapes[at]))

    def places(self, name: str) -> Ints:
        """Return where the entries of a variable are in the matrix."""
        return np.arange(len(self.mean))[self._place(name)]

    def __repr__(self) -> str:
        return (
            f"<Covariance of {', '.join(self.names)}: {len(self.matrix)} numbers, covariances of "
            f"{self.covariances}>"
        )
