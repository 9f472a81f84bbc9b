"""q of a block of variables that are jointly Normal, and what their covariances add to rows.

q.natural and q.moments have the marginals of a block. Where a row depends on several elements of
it, as y ~ Normal(a + u[g], tau) does on `a` and u[g], or u[g] ~ Normal(a, tau) on both, marginals
do not suffice: with r = y - mu the residual of the row, linear in the unknowns,

    Var[r] = sum over pairs of unknowns i, j of  x_i x_j cov_ij.

The pairs within one element are in its moments. All others are added to E[mu^2] of the row, child
and mean together: E[mu^2] + 2 sum over pairs i < j of different elements of x_i x_j cov_ij. Every
message and every density that reads the squared residual is then exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np

from svmp.families.family import Array, Family
from svmp.network.grid import Ints

AT_ONCE = 1 << 21
"""Most numbers in a dense array of covariances, to bound the memory."""


Normals = Callable[[np.random.Generator, tuple[int, ...]], Array]
"""Returns standard Normals of a shape."""


class Covariances(Protocol):
    """The covariances of unknowns that are jointly Normal."""

    @property
    def precision(self) -> Any:
        """The precision matrix, sparse."""
        ...

    @property
    def variances(self) -> Array:
        """The variance of each unknown."""
        ...

    def entries(self, left: Ints, right: Ints) -> Array:
        """Return the covariance of each unknown on the left with the one on the right."""
        ...

    def dense(self, unknowns: Ints) -> Array:
        """Return the covariance matrix of some unknowns."""
        ...

    def blocks(self, places: Ints) -> Array:
        """Return the covariance matrix of each element: (elements, entries, entries)."""
        ...

    def quadratic(self, lines: Any) -> Array:
        """Return x^T cov x of each row x of a sparse matrix, as a sum of squares."""
        ...

    def draw(self, rng: np.random.Generator, size: int, normals: Normals | None = None) -> Array:
        """Return draws with mean 0, (size, unknowns)."""
        ...


class RowCovariances(Protocol):
    """The pairs of unknowns in the rows of a table, of different elements."""

    def sums(self, covariance: Covariances, independent: Ints) -> Array:
        """Return what every row adds, where some unknowns are independent of all others."""
        ...


@dataclass(frozen=True, eq=False)
class CovarianceLines(RowCovariances):
    """Rows that read many unknowns, as a regression does, by products of matrices.

    Attributes
    ----------
    lines, columns, element
        Coefficients of the lines, sparse; the unknowns of their columns, and the element of each.
    size
        Number of lines of a row.
    """

    lines: Any
    columns: Ints
    element: Ints
    size: int

    def sums(self, covariance: Covariances, independent: Ints) -> Array:
        between = covariance.dense(self.columns)
        between[self.element[:, None] == self.element] = 0.0
        alone = np.isin(self.columns, independent)
        between[alone] = between[:, alone] = 0.0
        size, (lines, width) = self.size, self.lines.shape
        found = np.empty((lines // size, size, size))
        step = max(1, AT_ONCE // (width * size))
        for start in range(0, len(found), step):
            part = self.lines[start * size : (start + step) * size].toarray()
            left, right = (a.reshape(-1, size, width) for a in (part @ between, part))
            found[start : start + step] = left @ right.swapaxes(1, 2)
        return found.reshape(len(found), size * size)


@dataclass(frozen=True, eq=False)
class CovariancePairs(RowCovariances):
    """Rows that read few unknowns, pair by pair.

    Attributes
    ----------
    shape
        Number of rows of the table, and of numbers that a row adds to the second moment of its
        mean: 1, or the square of the dimension of a vector.
    owner, left, right, coefficient
        For each pair, the number that it adds to, its unknowns, and its coefficient.
    """

    shape: tuple[int, int]
    owner: Ints
    left: Ints
    right: Ints
    coefficient: Array

    def sums(self, covariance: Covariances, independent: Ints) -> Array:
        value = self.coefficient * covariance.entries(self.left, self.right)
        if len(independent):
            alone = np.isin(self.left, independent) | np.isin(self.right, independent)
            value[alone] = 0.0
        rows, numbers = self.shape
        found = np.bincount(self.owner, value, rows * numbers)
        return found.astype(np.float64, copy=False).reshape(self.shape)


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the unknowns of each variable are.

    Attributes
    ----------
    starts, sizes, dimensions
        By variable, its first unknown, its number of elements, and the dimension of an element.
    """

    starts: dict[str, int]
    sizes: dict[str, int]
    dimensions: dict[str, int]

    @classmethod
    def of(cls, sizes: Mapping[str, int], dimensions: Mapping[str, int]) -> Layout:
        """Number the unknowns of variables, one after the other."""
        starts, count = {}, 0
        for name, size in sizes.items():
            starts[name] = count
            count += size * dimensions[name]
        return cls(starts, dict(sizes), dict(dimensions))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return tuple(self.starts)

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return sum(self.sizes[name] * self.dimensions[name] for name in self.starts)

    def places(self, name: str) -> Ints:
        """Return the unknowns of a variable, (elements, entries)."""
        size = self.dimensions[name]
        count = self.sizes[name] * size
        return self.starts[name] + np.arange(count).reshape(-1, size)

    def elements(self) -> Ints:
        """Return the number of the element that each unknown belongs to."""
        found, count = np.empty(self.size, dtype=np.int64), 0
        for name in self.starts:
            places = self.places(name)
            found[places] = count + np.arange(len(places))[:, None]
            count += len(places)
        return found


def described(layout: Layout, pair: str | None, left_out: Mapping[str, str]) -> str:
    """Say what the q of a block is, in a line.

    >>> described(Layout.of({"a": 1, "u": 3000, "v": 9}, dict.fromkeys("auv", 1)), None, {})
    'q: one Normal of a, 3,000 u and 9 v'
    """
    sizes = layout.sizes.items()
    names = [name if size == 1 else f"{size:,} {name}" for name, size in sizes]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    found = f"q: one Normal of {listed}" + ("" if pair is None else f", given {pair}")
    reasons = "; ".join(f"{name}, {reason}" for name, reason in left_out.items())
    return f"{found}; left out of it: {reasons}" if reasons else found


@dataclass(frozen=True, eq=False)
class Paired:
    """The precision that a block is joint with: its name, and the element of each unknown."""

    name: str
    classes: Ints


@dataclass(frozen=True, eq=False)
class JointNormal:
    """The covariances of a block under q; its means are those of its variables.

    Attributes
    ----------
    layout, covariance
        The unknowns, and their covariances.
    pairs
        By table, the pairs of its rows.
    own
        By variable, the covariance matrix of each of its elements.
    total_correlation
        Sum of the entropies of the elements, less the joint entropy of the block, in nats.
    barren
        Log determinant of the precisions of the rows of elements without observed descendants.
    pair
        The precision that the block is joint with, if there is one: the covariances are then those
        at its mean.
    independent
        Unknowns that are taken as independent of all others.
    """

    layout: Layout
    covariance: Covariances
    pairs: Mapping[str, RowCovariances]
    own: Mapping[str, Array]
    total_correlation: float
    barren: float = 0.0
    pair: Paired | None = None
    independent: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _sums: dict[str, Array] = field(default_factory=dict)

    def added(self, table: str, rows: Ints) -> Array:
        """Return what covariances add to the second moment of the mean of some rows."""
        if table not in self._sums:
            self._sums[table] = self.pairs[table].sums(self.covariance, self.independent)
        return self._sums[table][rows]

    def without(self, elements: Mapping[str, Ints]) -> JointNormal:
        """Return it with some elements as if they were independent of all others."""
        found = [self.independent]
        for name in set(elements) & set(self.layout.starts):
            found.append(self.layout.places(name)[elements[name]].ravel())
        chosen = np.unique(np.concatenate(found))
        if len(chosen) == len(self.independent):
            return self
        return replace(self, independent=chosen, _sums={})


def spread(natural: Array, family: Any) -> Array:
    """Return E[tau] E[1 / tau] of each precision: the factor by which a marginal t is wider.

    1 where the variance of the t is not finite.
    """
    gamma = family.precision == "number"
    total = np.asarray(family.standard(natural)["alpha" if gamma else "nu"])
    more = total - (1 if gamma else family.dimension + 1)
    return np.where(more > 0, total / np.where(more > 0, more, 1.0), 1.0)


@dataclass(frozen=True, eq=False)
class GivenPrecision:
    """Takes draws of a block with expected covariances to those given draws of its precision.

    With E the expected covariance of an element whose precision is tau, A E A^T = tau^-1.

    Attributes
    ----------
    matrix, inverse
        A and its inverse for each draw and each precision: numbers for Gammas.
    """

    matrix: Array
    inverse: Array

    @classmethod
    def of(cls, family: Family, natural: Array, tau: Array) -> Self:
        """Return it for draws of a precision, where E has E[tau] as its inverse."""
        mean = np.asarray(family.mean(natural))
        if family.precision == "number":
            matrix = np.sqrt(mean / tau)
            return cls(matrix, 1 / matrix)
        lower = np.linalg.cholesky(tau).swapaxes(-1, -2)  # its transpose
        root = np.linalg.cholesky(np.linalg.inv(mean))
        return cls(np.linalg.inv(lower) @ np.linalg.inv(root), root @ lower)

    def apply(self, x: Array, classes: Ints) -> Array:
        """Return draws (size, elements, entries), with the precision of each element."""
        return times(self.matrix, x, classes)

    def undo(self, x: Array, classes: Ints) -> tuple[Array, Array]:
        """Return the draws that `apply` takes to x, and the log determinant of that map."""
        if self.inverse.ndim == 2:
            log_det = x.shape[-1] * np.log(self.inverse)
        else:
            log_det = np.linalg.slogdet(self.inverse)[1]
        return times(self.inverse, x, classes), log_det[:, classes].sum(axis=1)


def times(matrix: Array, x: Array, classes: Ints) -> Array:
    """Return matrices of each draw and each class times vectors of elements."""
    if matrix.ndim == 2:
        return np.asarray(x * matrix[:, classes, None])
    return np.einsum("seij,sej->sei", matrix[:, classes], x)


def natural_of(matrices: Array, means: Array) -> Array:
    """Return the natural parameters of Normals with covariance matrices and means."""
    precision = np.linalg.inv(matrices)
    precision = 0.5 * (precision + precision.swapaxes(1, 2))
    linear = np.einsum("eij,ej->ei", precision, means)
    return np.concatenate([linear, -0.5 * precision.reshape(len(linear), -1)], axis=1)
