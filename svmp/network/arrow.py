"""Joint Normals whose precision matrix is an arrow: many small groups, a few unknowns beside them.

Effects under an intercept meet it in every row, and never each other. With D the unknowns of such
groups and S all others, the precision matrix is

    P = [P_DD  P_DS]        P_DD block diagonal,
        [P_SD  P_SS]

so that D is eliminated group by group, and only the Schur complement of S is dense:

    cov_SS = (P_SS - P_SD P_DD^-1 P_DS)^-1,      W = -P_DD^-1 P_DS,
    cov_DS = W cov_SS,                            cov_DD = P_DD^-1 + W cov_SS W^T.

No covariance is computed that is not asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components

from svmp.families.family import Array
from svmp.network.grid import Ints, ragged

WIDEST = 32
"""Most unknowns in a group that is eliminated."""
SMALL = 128
"""Most unknowns of a matrix that is dense as a whole: nothing is gained by eliminating some."""
AT_ONCE = 1 << 21
"""Most numbers in a dense array of covariances, to bound the memory."""
Normals = Callable[[np.random.Generator, tuple[int, ...]], Array]
"""Returns standard Normals of a shape."""


@dataclass(frozen=True, eq=False)
class Split:
    """The groups of unknowns that are eliminated, and the unknowns that stay.

    Attributes
    ----------
    size
        Number of unknowns.
    eliminated, group, place
        The unknowns in groups; the group of each; its place within the group.
    rest
        All other unknowns.
    """

    size: int
    eliminated: Ints
    group: Ints
    place: Ints
    rest: Ints

    @classmethod
    def of_groups(cls, size: int, eliminated: Ints, group: Ints) -> Split:
        """Return the split of some groups, which may have any numbers."""
        _, group = np.unique(group, return_inverse=True)
        order = np.lexsort((eliminated, group))
        eliminated, group = eliminated[order], group[order].astype(np.int64)
        counts = np.bincount(group)
        place = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
        rest = np.setdiff1d(np.arange(size), eliminated)
        return cls(size, eliminated, group, place, rest)

    @cached_property
    def position(self) -> Ints:
        """Position of each unknown among those that are eliminated, or else among the rest."""
        found = np.empty(self.size, dtype=np.int64)
        found[self.eliminated] = np.arange(len(self.eliminated))
        found[self.rest] = np.arange(len(self.rest))
        return found

    @cached_property
    def is_eliminated(self) -> np.ndarray:
        """Whether each unknown is in a group."""
        found = np.zeros(self.size, dtype=bool)
        found[self.eliminated] = True
        return found

    @property
    def shape(self) -> tuple[int, int]:
        """Number of groups, and number of unknowns of the largest."""
        if not len(self.group):
            return 0, 0
        return int(self.group[-1]) + 1, int(self.place.max()) + 1


def split_unknowns(pattern: Any, variables: list[Ints], small: int = SMALL) -> Split:
    """Choose the unknowns to eliminate: variables, those with most unknowns first.

    Parameters
    ----------
    pattern
        A sparse matrix that is not 0 where two unknowns are in one row.
    variables
        The unknowns of each variable.
    small
        Most unknowns of a matrix that is not split.
    """
    size, chosen = pattern.shape[0], np.zeros(0, dtype=np.int64)
    labels = chosen
    if size <= small:
        return Split.of_groups(size, chosen, chosen)
    for unknowns in sorted(variables, key=len, reverse=True):
        trial = np.concatenate([chosen, unknowns])
        _, found = connected_components(pattern[trial][:, trial], directed=False)
        if np.bincount(found).max() <= WIDEST:
            chosen, labels = trial, found
    return Split.of_groups(size, chosen, labels.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Arrow:
    """The covariances of a joint Normal, from its precision matrix.

    Attributes
    ----------
    precision
        The precision matrix, sparse.
    root, inverse
        The roots L^-1 of P_DD^-1 = L^-T L^-1, and P_DD^-1, (groups, width, width).
    weight
        W, sparse.
    rest_root, rest
        The Cholesky factor of the Schur complement, lower, and cov_SS.
    log_det
        Logarithm of the determinant of the precision matrix.
    """

    split: Split
    precision: Any
    root: Array
    inverse: Array
    weight: Any
    rest_root: Array
    rest: Array
    log_det: float

    @classmethod
    def of(cls, split: Split, precision: Any) -> Arrow:
        """Factorise a precision matrix.

        Raises
        ------
        numpy.linalg.LinAlgError
            If it is not positive definite, up to rounding.
        """
        inner, outer = split.eliminated, split.rest
        between, dense = precision[inner], precision[outer][:, outer].toarray()
        groups, width = split.shape
        blocks = np.tile(np.eye(width), (groups, 1, 1))
        own = between[:, inner].tocoo()
        row, column = own.coords
        blocks[split.group[row], split.place[row], split.place[column]] = own.data
        scale = 1 / np.sqrt(blocks.diagonal(axis1=1, axis2=2))
        lower = np.linalg.cholesky(blocks * scale[:, :, None] * scale[:, None, :])
        log_det = 2 * float(np.log(lower.diagonal(axis1=1, axis2=2)).sum() - np.log(scale).sum())
        root = np.linalg.inv(lower) * scale[:, None, :]
        inverse = root.swapaxes(1, 2) @ root
        beside = between[:, outer]
        weight = -(block_diagonal(split, inverse) @ beside).tocsr()
        weight.sort_indices()
        dense += (beside.T @ weight).toarray() if len(inner) else 0.0
        size = 1 / np.sqrt(dense.diagonal())
        if not np.isfinite(size).all() or not np.isfinite(log_det):
            raise np.linalg.LinAlgError("not positive definite")
        rest_root = linalg.cholesky(dense * size[:, None] * size, lower=True) / size[:, None]
        if len(outer):
            log_det += 2 * float(np.log(rest_root.diagonal()).sum())
            whitener = linalg.solve_triangular(rest_root, np.eye(len(outer)), lower=True)
            rest = whitener.T @ whitener
        else:
            rest = np.zeros((0, 0))
        return cls(split, precision, root, inverse, weight, rest_root, rest, log_det)

    def solve(self, vector: Array) -> Array:
        """Return the covariance matrix times a vector."""
        inner, outer = self.split.eliminated, self.split.rest
        found = np.empty(self.split.size)
        found[outer] = self.rest @ (vector[outer] + self.weight.T @ vector[inner])
        own = block_diagonal(self.split, self.inverse) @ vector[inner]
        found[inner] = own + self.weight @ found[outer]
        return found

    @cached_property
    def variances(self) -> Array:
        """The variance of each unknown."""
        every = np.arange(self.split.size)
        return self.entries(every, every)

    @cached_property
    def inflation(self) -> Array:
        """Variance of each unknown, over the one that it would have given all others.

        Both are rounded to that many times the rounding of one number: the more collinear the
        coefficients are, the fewer digits are left.
        """
        return np.asarray(self.variances * self.precision.diagonal())

    def quadratic(self, lines: Any) -> Array:
        """Return x^T cov x of each row x of a sparse matrix, as a sum of squares.

        Unlike the sum over the entries of cov it has all of its digits where these cancel.
        """
        inner, outer = self.split.eliminated, self.split.rest
        beside, found = lines[:, inner], np.zeros(lines.shape[0])
        towards = (lines[:, outer] + beside @ self.weight).tocsr()
        step = max(1, AT_ONCE // max(1, len(outer)))
        for start in range(0, len(found) if len(outer) else 0, step):
            part = towards[start : start + step].toarray().T
            white = linalg.solve_triangular(self.rest_root, part, lower=True)
            found[start : start + step] = np.einsum("ir,ir->r", white, white)
        if len(inner):
            own = beside @ block_diagonal(self.split, self.root).T
            found += np.asarray(own.multiply(own).sum(axis=1)).ravel()
        return found

    def entries(self, left: Ints, right: Ints) -> Array:
        """Return the covariance of each unknown on the left with the one on the right."""
        split, found = self.split, np.zeros(len(left))
        inner, other = split.is_eliminated[left], split.is_eliminated[right]
        left, right = np.where(inner | ~other, left, right), np.where(inner | ~other, right, left)
        row, column = split.position[left], split.position[right]
        both, mixed = inner & other, inner ^ other
        alone = ~(inner | other)
        found[alone] = self.rest[row[alone], column[alone]]
        at = np.flatnonzero(both)
        same = at[split.group[row[at]] == split.group[column[at]]]
        group = split.group[row[same]]
        found[same] = self.inverse[group, split.place[row[same]], split.place[column[same]]]
        for some, first, dense in self._products(row, np.flatnonzero(both | mixed)):
            line, one = row[some] - first, mixed[some]
            found[some[one]] = dense[line[one], column[some[one]]]
            two, starts = column[some[~one]], self.weight.indptr
            owner, place = ragged(starts[two].astype(np.int64), starts[two + 1] - starts[two])
            value = self.weight.data[place] * dense[line[~one][owner], self.weight.indices[place]]
            found[some[~one]] += np.bincount(owner, value, len(two))
        return found

    def _products(self, row: Ints, some: Ints) -> Any:
        """Yield parts of `some`, with the rows of W cov_SS that they need, from a first row on."""
        order = some[np.argsort(row[some], kind="stable")]
        if not len(order) or not len(self.split.rest):
            return
        step = max(1, AT_ONCE // len(self.split.rest))
        for first in range(int(row[order[0]]), int(row[order[-1]]) + 1, step):
            low, high = np.searchsorted(row[order], [first, first + step])
            if low < high:
                yield order[low:high], first, self.weight[first : first + step] @ self.rest

    def blocks(self, places: Ints) -> Array:
        """Return the covariance matrix of each element: (elements, entries, entries)."""
        count, size = places.shape
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
            left, right = np.repeat(part, count), np.tile(unknowns, len(part))
            found[first : first + step] = self.entries(left, right).reshape(-1, count)
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
        split, found = self.split, np.empty((size, self.split.size))
        white = make(rng, (len(split.rest), size))
        outer = linalg.solve_triangular(self.rest_root, white, lower=True, trans="T")
        groups, width = split.shape
        white = make(rng, (groups, width, size))
        own = self.root.swapaxes(1, 2) @ white
        found[:, split.rest] = outer.T
        found[:, split.eliminated] = (own[split.group, split.place] + self.weight @ outer).T
        return found


def block_diagonal(split: Split, blocks: Array) -> Any:
    """Return matrices of groups as one sparse matrix of the eliminated unknowns."""
    count, (groups, width) = len(split.eliminated), split.shape
    if width == 1:
        return sparse.diags_array(blocks.ravel(), format="csr")
    first = np.searchsorted(split.group, np.arange(groups))
    length = np.bincount(split.group, minlength=groups)
    owner, other = ragged(first[split.group], length[split.group])
    value = blocks[split.group[owner], split.place[owner], split.place[other]]
    return sparse.csr_array((value, (owner, other)), shape=(count, count))
