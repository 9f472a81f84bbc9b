"""The factor of a precision matrix: solutions, log determinant, covariances and draws.

With the unknowns in the order of elimination,

    P = L [D      ] L^T,        S = R R^T
          [    S  ]

where L and D are sparse (kernels/gaussian/factor.py), and S, the Schur complement of the tail, is
dense (LAPACK). Standard deviations can be scaled afterwards: see `scaled`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import lapack

from svmp.families.family import Array
from svmp.inference.gaussian.analysis import Analysis
from svmp.kernels.gaussian import factor as loops
from svmp.network.grid import Ints
from svmp.network.joint_normal import AT_ONCE, Covariances, Normals

TILE = 64
"""Rows of a matrix that are mirrored at its diagonal at a time."""


@dataclass(frozen=True, eq=False)
class Factor(Covariances):
    """The covariances of a joint Normal, from its precision matrix.

    Attributes
    ----------
    analysis
        The order and the patterns.
    values
        The lower triangle of P.
    lower, pivots
        The entries of L below its diagonal, and D, of the unknowns that are eliminated sparsely.
    root
        R, lower triangular.
    scale
        What standard deviations are multiplied by, for each unknown; None for ones.
    """

    analysis: Analysis
    values: Array
    lower: Array
    pivots: Array
    root: Array
    scale: Array | None = None

    @classmethod
    def of(cls, analysis: Analysis, values: Array) -> Factor:
        """Factorise a matrix.

        Raises
        ------
        numpy.linalg.LinAlgError
            If it is not positive definite, up to rounding.
        """
        count, size = analysis.sparse, analysis.size - analysis.sparse
        lower, pivots = np.empty(len(analysis.lower.row)), np.empty(count)
        tail = np.zeros((size, size))
        if count:
            bad = loops.factorise(analysis.matrix, values, analysis.lower, lower, pivots, tail)
        else:
            bad, tail[analysis.column, analysis.matrix.row] = -1, values
        width = np.sqrt(np.maximum(np.diagonal(tail), 0.0))
        if bad >= 0 or not np.isfinite(width).all() or not (width > 0).all():
            raise np.linalg.LinAlgError("not positive definite")
        tail /= width[:, None] * width
        root, bad = lapack.dpotrf(tail.T, lower=1, clean=1, overwrite_a=1) if size else (tail.T, 0)
        if bad:
            raise np.linalg.LinAlgError("not positive definite")
        return cls(analysis, values, lower, pivots, root * width[:, None])

    @classmethod
    def of_matrix(cls, precision: Array) -> Factor:
        """Factorise a dense matrix."""
        size = len(precision)
        analysis = Analysis.of(None, np.arange(size), [], small=size)
        return cls.of(analysis, precision[analysis.matrix.row, analysis.column])

    def scaled(self, scale: Array) -> Factor:
        """Return the factor with the standard deviations of all unknowns multiplied."""
        return replace(self, scale=scale if self.scale is None else scale * self.scale)

    @property
    def unscaled(self) -> Factor:
        """The factor of P itself."""
        return replace(self, scale=None)

    @property
    def sparse(self) -> int:
        """Number of unknowns that are eliminated sparsely."""
        return self.analysis.sparse

    @cached_property
    def log_det(self) -> float:
        """Logarithm of the determinant of the precision matrix."""
        found = np.log(self.pivots).sum() + 2 * np.log(np.diagonal(self.root)).sum()
        return float(found - (0.0 if self.scale is None else 2 * np.log(self.scale).sum()))

    @cached_property
    def precision(self) -> Any:
        """The precision matrix, sparse."""
        row, column, values = self.analysis.matrix.row, self.analysis.column, self.values
        order, size = self.analysis.order, self.analysis.size
        if self.scale is not None:
            values = values / (self.scale[order[row]] * self.scale[order[column]])
        off = row != column
        row, column = (
            np.concatenate([order[row], order[column][off]]),
            np.concatenate([order[column], order[row][off]]),
        )
        values = np.concatenate([values, values[off]])
        found = sparse.csr_array((values, (row, column)), shape=(size, size))
        found.sort_indices()
        return found

    @cached_property
    def tail(self) -> Array:
        """The inverse of S: covariances of the unknowns of the tail, not scaled."""
        if not len(self.root):
            return np.zeros((0, 0))
        found, _ = lapack.dpotri(self.root, lower=1)
        found, size = found.T, len(found)  # the upper triangle, by rows
        for first in range(0, size, TILE):  # tiles stay in the cache while they are turned
            last = min(first + TILE, size)
            own = np.triu(found[first:last, first:last])
            found[first:last, first:last] = own + np.triu(own, 1).T
            found[last:, first:last] = found[first:last, last:].T
        return found

    @cached_property
    def selected(self) -> tuple[Array, Array]:
        """The covariances in the pattern of L, and the variances of the sparse part, not scaled."""
        found = np.empty_like(self.lower)
        if not self.sparse:
            return found, np.zeros(0)
        diagonal = loops.invert(self.analysis.lower, self.lower, self.pivots, self.tail, found)
        return found, diagonal

    @cached_property
    def variances(self) -> Array:
        """The variance of each unknown."""
        found = np.empty(self.analysis.size)
        found[self.analysis.order] = np.r_[self.selected[1], np.diagonal(self.tail)]
        return found if self.scale is None else found * self.scale**2

    @cached_property
    def inflation(self) -> Array:
        """Variance of each unknown, divided by its variance given all others.

        Both are rounded to that many times the rounding of one number: the more collinear the
        coefficients are, the fewer digits are left.
        """
        on = self.analysis.matrix.row == self.analysis.column
        own = np.empty(self.analysis.size)
        own[self.analysis.order] = self.values[on]
        return self.variances * (own if self.scale is None else own / self.scale**2)

    def solve(self, vectors: Array) -> Array:
        """Return the covariance matrix times a vector, or times the columns of a matrix."""
        order, shape = self.analysis.order, vectors.shape
        b = self._scale(vectors.reshape(shape[0], -1))[order]
        self._forward(b)
        b[: self.sparse] /= self.pivots[:, None]
        if len(self.root):
            b[self.sparse :] = linalg.cho_solve((self.root, True), b[self.sparse :])
        self._backward(b)
        found = np.empty_like(b)
        found[order] = b
        return self._scale(found).reshape(shape)

    def quadratic(self, lines: Any) -> Array:
        """Return x^T cov x of each row x of a sparse matrix, as a sum of squares.

        Unlike the sum over the entries of cov it has all of its digits where these cancel.
        """
        found = np.zeros(lines.shape[0])
        step = max(1, AT_ONCE // max(1, self.analysis.size))
        for start in range(0, len(found), step):
            part = lines[start : start + step].toarray().T
            b = self._scale(part)[self.analysis.order]
            self._forward(b)
            found[start : start + step] = (b[: self.sparse] ** 2 / self.pivots[:, None]).sum(axis=0)
            if len(self.root):
                white = linalg.solve_triangular(self.root, b[self.sparse :], lower=True)
                found[start : start + step] += (white**2).sum(axis=0)
        return found

    def draw(self, rng: np.random.Generator, size: int, normals: Normals | None = None) -> Array:
        """Return draws with mean 0, (size, unknowns).

        Parameters
        ----------
        rng, size
            Random numbers, and the number of draws.
        normals
            Returns standard Normals of a shape, with draws last; by default independent ones.
        """
        make = np.random.Generator.standard_normal if normals is None else normals
        b = np.ascontiguousarray(make(rng, (self.analysis.size, size)))
        b[: self.sparse] /= np.sqrt(self.pivots)[:, None]
        if len(self.root):
            b[self.sparse :] = linalg.solve_triangular(
                self.root, b[self.sparse :], lower=True, trans="T"
            )
        self._backward(b)
        found = np.empty((size, self.analysis.size))
        found[:, self.analysis.order] = b.T
        return found if self.scale is None else found * self.scale

    def entries(self, left: Ints, right: Ints) -> Array:
        """Return the covariance of each unknown on the left with the one on the right."""
        if len(left) and self.sparse and np.array_equal(left, right):
            return self.variances[left]
        position = self.analysis.position
        i, j = position[left], position[right]
        found = np.empty(len(i))
        alone = (i >= self.sparse) & (j >= self.sparse)
        found[alone] = self.tail[i[alone] - self.sparse, j[alone] - self.sparse]
        others = np.flatnonzero(~alone)
        if len(others):
            rows, columns = i[others], j[others]
            if len(np.unique(rows)) < len(np.unique(columns)):
                rows, columns = columns, rows
            by = np.argsort(columns, kind="stable")
            column, begin = np.unique(columns[by], return_index=True)
            out, ends = np.empty(len(by)), np.append(begin[1:], len(by))
            factor = self.analysis.lower, self.lower, self.pivots, self.tail
            loops.inverse_entries(*factor, column, ends, rows[by], out)
            found[others[by]] = out
        return found if self.scale is None else found * self.scale[left] * self.scale[right]

    def blocks(self, places: Ints) -> Array:
        """Return the covariance matrix of each element: (elements, entries, entries)."""
        count, size = places.shape
        if size == 1:
            return self.variances[places].reshape(count, 1, 1)
        left = np.broadcast_to(places[:, :, None], (count, size, size))
        right = np.broadcast_to(places[:, None, :], (count, size, size))
        return self.entries(left.ravel(), right.ravel()).reshape(count, size, size)

    def dense(self, unknowns: Ints) -> Array:
        """Return the covariance matrix of some unknowns."""
        count = len(unknowns)
        found = np.empty((count, count))
        step = max(1, AT_ONCE // max(count, 1))
        for first in range(0, count, step):
            part = unknowns[first : first + step]
            left, right = np.tile(unknowns, len(part)), np.repeat(part, count)
            found[first : first + step] = self.entries(left, right).reshape(-1, count)
        return found

    def _scale(self, b: Array) -> Array:
        return b if self.scale is None else b * self.scale[:, None]

    def _forward(self, b: Array) -> None:
        if self.sparse:
            loops.forward(self.analysis.lower, self.lower, self.sparse, b)

    def _backward(self, b: Array) -> None:
        if self.sparse:
            loops.backward(self.analysis.lower, self.lower, self.sparse, b)
