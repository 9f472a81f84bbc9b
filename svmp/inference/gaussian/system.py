"""A system of normal equations: the precision matrix of unknowns as a sum over rows.

    P = sum over tables, sum over rows of X^T W X

Everything that does not depend on the weights W is made once: the order of elimination and the
patterns (analysis.py), and where the rows add to them (rows.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from svmp.families.family import Array
from svmp.inference.gaussian.analysis import Analysis, is_small
from svmp.inference.gaussian.factor import Factor
from svmp.inference.gaussian.rows import Rows
from svmp.network.grid import Ints


@dataclass(frozen=True, eq=False)
class System:
    """Normal equations of some tables.

    Attributes
    ----------
    analysis
        The order of the unknowns, and the pattern of their precision matrix.
    tables
        The rows of each table.
    """

    analysis: Analysis
    tables: tuple[Rows, ...]

    @classmethod
    def of(
        cls,
        lines: Sequence[tuple[Any, int]],
        element: Ints,
        variables: Sequence[Ints],
        matrix: Any = None,
    ) -> System:
        """Analyse a system.

        Parameters
        ----------
        lines
            For each table the coefficients of all lines, and the number of lines of a row.
        element
            The element of each unknown, ascending.
        variables
            The elements of each variable.
        matrix
            A symmetric sparse matrix that is to be factorised too: its rows may be others.
        """
        graph = None
        if not is_small(len(element)):
            graph = graph_of(lines, element)
            graph = graph if matrix is None else graph + between(matrix, element)
        analysis = Analysis.of(graph, element, variables)
        return cls(analysis, tuple(Rows(analysis, x, size, element) for x, size in lines))

    @classmethod
    def of_matrix(cls, matrix: Any, element: Ints, variables: Sequence[Ints]) -> System:
        """Analyse a symmetric sparse matrix, without rows."""
        return cls(Analysis.of(between(matrix, element), element, variables), ())

    def values(self, weights: Sequence[Array]) -> Array:
        """Return the lower triangle of the precision matrix, given the W of all rows."""
        found = np.zeros(len(self.analysis.matrix.row))
        for rows, weight in zip(self.tables, weights, strict=True):
            found += rows.products(weight)
        return found

    def matrix(self, values: Array) -> Array:
        """Return the precision matrix as a dense one, given its lower triangle."""
        order, row, column = self.analysis.order, self.analysis.matrix.row, self.analysis.column
        found = np.zeros((self.analysis.size,) * 2)
        found[order[row], order[column]] = found[order[column], order[row]] = values
        return found

    def entries_of(self, matrix: Any) -> Array:
        """Return the values of a symmetric sparse matrix in the pattern of this system."""
        order, row, column = self.analysis.order, self.analysis.matrix.row, self.analysis.column
        return np.asarray(sparse.csr_array(matrix)[order[row], order[column]]).ravel()

    def factor(self, values: Array) -> Factor:
        """Factorise a precision matrix, or raise `numpy.linalg.LinAlgError`."""
        return Factor.of(self.analysis, values)


def between(matrix: Any, element: Ints) -> Any:
    """Return a sparse matrix that is not 0 where another one has entries of two elements."""
    matrix = matrix.tocoo()
    row, column = (element[place] for place in matrix.coords)
    ends = np.concatenate([row, column]), np.concatenate([column, row])
    shape = (int(element[-1]) + 1,) * 2
    return sparse.csr_array((np.ones(len(ends[0]), dtype=np.int32), ends), shape=shape)


def graph_of(lines: Sequence[tuple[Any, int]], element: Ints) -> Any:
    """Return a sparse matrix that is not 0 where two elements are in one row."""
    count, keys = int(element[-1]) + 1, np.random.default_rng(0)
    key = keys.integers(0, 1 << 63, (2, count), dtype=np.uint64)
    found: Any = sparse.csr_array((count, count), dtype=np.int32)
    for x, size in lines:
        row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr)) // size
        shape = (x.shape[0] // size, count)
        ones = np.ones(len(row), dtype=np.int32)
        reads = sparse.csr_array((ones, (row, element[x.indices])), shape=shape)
        reads.sum_duplicates()
        reads.data[:] = 1
        # Rows that read the same elements count once: a regression has one set of unknowns for all.
        chosen, owner = (
            np.diff(reads.indptr) > 1,
            np.repeat(np.arange(shape[0]), np.diff(reads.indptr)),
        )
        sums = np.zeros((2, shape[0]), dtype=np.uint64)
        for place in range(2):
            np.add.at(sums[place], owner, key[place][reads.indices])
        some = np.flatnonzero(chosen)
        some = some[np.lexsort(sums[:, some])]
        new = np.any(np.diff(sums[:, some], axis=1, prepend=~sums[:, some[:1]]) != 0, axis=0)
        reads = reads[some[new]]
        found = found + reads.T @ reads
    return found
