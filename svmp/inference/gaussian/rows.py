"""Rows of a linear model as a Gaussian system reads them: lines of coefficients X.

A row has `size` lines, with a precision matrix W of (size, size): it adds X^T W X to the precision
matrix of the unknowns, and under q its residual has the covariance X cov X^T. Both are sums over
the pairs of unknowns of each row. Where they are few, the pairs are listed; where rows read nearly
all unknowns, they are a product of dense matrices; and else compiled loops go through them
(kernels/gaussian/equations.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.inference.gaussian.analysis import Analysis
from svmp.inference.gaussian.factor import Factor
from svmp.kernels.gaussian.equations import Columns, add_covariances, add_products
from svmp.kernels.machine.threads import share
from svmp.network.grid import Ints, ragged
from svmp.network.joint_normal import AT_ONCE, Covariances, RowCovariances

FEW = 1 << 17
"""Most pairs of unknowns in all rows of a table that are listed: no loop must be compiled for them,
and a product takes less than a millisecond."""
WIDE = 24
"""Number of unknowns in a row from which products of dense matrices are faster than pairs."""
FULL = 0.5
"""Share of coefficients that are not 0 from which products of dense matrices are faster."""


class Pairs(NamedTuple):
    """Pairs of unknowns i, j of the same row, i before j in the order of elimination, or i = j.

    Attributes
    ----------
    row, number
        The row, and the place in its W.
    earlier, later, entry
        Both unknowns by their place in the order, and the entry of the pattern.
    coefficient
        x_i x_j.
    """

    row: Ints
    number: Ints
    earlier: Ints
    later: Ints
    entry: Ints
    coefficient: Array


@dataclass(frozen=True, eq=False)
class Rows(RowCovariances):
    """The lines of all rows of a table.

    Attributes
    ----------
    analysis
        The order of the unknowns, and the pattern of their precision matrix.
    lines
        X, sparse, with the unknowns as columns.
    size
        Number of lines of a row.
    element
        The element that each unknown belongs to.
    """

    analysis: Analysis
    lines: Any
    size: int
    element: Ints
    _even: list[Any] = field(default_factory=list, repr=False)

    def __len__(self) -> int:
        return int(self.lines.shape[0] // self.size)

    @cached_property
    def joins(self) -> bool:
        """Whether some row reads several elements."""
        if not self.lines.nnz:
            return False
        ends = self.lines.indptr[:: self.size]
        own = self.element[self.lines.indices]
        starts = ends[:-1][np.diff(ends) > 0]
        return bool((np.minimum.reduceat(own, starts) != np.maximum.reduceat(own, starts)).any())

    def products(self, weight: Array) -> Array:
        """Return the lower triangle of the sum of X^T W X, in the pattern of the matrix.

        Parameters
        ----------
        weight
            W of each row, (rows, size * size); of zeros for rows that do not count.
        """
        top = float(weight.max(initial=0.0)) if self.size == 1 else 0.0
        if not (top > 0 and ((weight == top) | (weight == 0)).all()):
            return self._products(weight)
        counting = weight > 0  # one precision for all rows: the sum is made once, and scaled
        if not self._even or not np.array_equal(self._even[0], counting):
            self._even[:] = [counting, self._products(counting.astype(np.float64))]
        return np.asarray(top * self._even[1])

    def sums(self, covariance: Covariances, independent: Ints) -> Array:
        """Return the sum over unknowns of different elements of x_i cov_ij x_j^T for each row.

        Parameters
        ----------
        covariance
            The factor of a matrix of this analysis.
        independent
            Unknowns that are taken as independent of all others.
        """
        assert isinstance(covariance, Factor)
        assert covariance.analysis is self.analysis
        found, analysis = np.zeros((len(self), self.size**2)), self.analysis
        alone = np.zeros(analysis.size, dtype=np.bool_)
        alone[analysis.position[independent]] = True
        one = None if covariance.scale is None else covariance.scale[analysis.order]
        if not self._few:
            x = self._columns
            if one is not None:
                x = x._replace(value=x.value * one[x.column])
            selected = covariance.selected[0], covariance.tail
            add_covariances(x, self._element, alone, analysis.lower, *selected, found)
            return found
        row, number, i, j, _, value = self._pairs
        value = np.where((self._element[i] == self._element[j]) | alone[i] | alone[j], 0.0, value)
        value = value * covariance.tail[i, j]
        if one is not None:
            value *= one[i] * one[j]
        first, other = np.divmod(number, self.size)
        for place in (number, other * self.size + first):
            at = row * self.size**2 + place
            found += np.bincount(at, value, found.size).reshape(found.shape)
        return found

    def _products(self, weight: Array) -> Array:
        pattern = self.analysis.matrix
        if self._dense is not None:
            x, unknowns, entry = self._dense
            found, matrix = np.zeros(len(pattern.row)), np.zeros((len(unknowns),) * 2)
            step = max(1, AT_ONCE // len(unknowns))
            for start in range(0, len(x), step):
                part = x[start : start + step]
                matrix += part.T @ (weight[start : start + step] * part)
            found[entry] = matrix[np.tril_indices(len(unknowns))]
            return found
        if self._few:
            pairs = self._pairs
            value = weight[pairs.row, pairs.number] * pairs.coefficient
            return np.bincount(pairs.entry, value, len(pattern.row)).astype(np.float64, copy=False)
        found = np.zeros(len(pattern.row))
        share(add_products, self._columns, weight, pattern, self.analysis.size, found)
        return found

    @cached_property
    def _few(self) -> bool:
        """Whether the pairs are listed."""
        count = np.diff(self.lines.indptr[:: self.size]).astype(np.float64)
        return not self.analysis.sparse and float(count @ count) <= FEW

    @cached_property
    def _dense(self) -> tuple[Array, Ints, Ints] | None:
        """X, its unknowns, and the entries of its products, where it is nearly full."""
        count, lines = np.diff(self.lines.indptr), self.lines
        if self.size > 1 or count.max(initial=0) < WIDE:
            return None
        unknowns = np.unique(self._ordered.indices).astype(np.int64)
        if self.lines.nnz < FULL * len(self) * len(unknowns):
            return None
        x = self._ordered[:, unknowns].toarray() if lines.nnz else np.zeros((len(self), 0))
        later, earlier = np.tril_indices(len(unknowns))
        return x, unknowns, self._entry(unknowns[earlier], unknowns[later])

    @cached_property
    def _ordered(self) -> Any:
        """X with its columns in the order of elimination."""
        found = self.lines.copy()
        found.indices = self.analysis.position[found.indices]
        found.has_sorted_indices = False
        found.sort_indices()
        return found

    @cached_property
    def _element(self) -> Ints:
        """The element of each unknown in the order of elimination."""
        return self.element[self.analysis.order]

    def _entry(self, earlier: Ints, later: Ints) -> Ints:
        """Return the entries of the pattern in some columns and rows."""
        size, pattern = self.analysis.size, self.analysis
        return np.searchsorted(pattern.column * size + pattern.matrix.row, earlier * size + later)

    @cached_property
    def _pairs(self) -> Pairs:
        x = self._ordered
        line = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
        ends = x.indptr[:: self.size].astype(np.int64)
        row, number = np.divmod(line, self.size)
        one, two = ragged(ends[row], np.diff(ends)[row])
        i, j = x.indices[one].astype(np.int64), x.indices[two].astype(np.int64)
        kept = i <= j
        one, two, i, j = one[kept], two[kept], i[kept], j[kept]
        place = number[one] * self.size + number[two]
        return Pairs(row[one], place, i, j, self._entry(i, j), x.data[one] * x.data[two])

    @cached_property
    def _columns(self) -> Columns:
        x = self._ordered
        places = x.copy()
        places.data = np.arange(x.nnz)
        places = places.tocsc()
        unknowns = np.flatnonzero(np.diff(places.indptr))
        return Columns(
            unknowns,
            np.append(places.indptr[unknowns], x.nnz).astype(np.int64),
            places.data.astype(np.int64),
            places.indices.astype(np.int64),
            x.indptr[1:].astype(np.int64),
            x.indices.astype(np.int64),
            np.asarray(x.data, dtype=np.float64),
            self.size,
        )
