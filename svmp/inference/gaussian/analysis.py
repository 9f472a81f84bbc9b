"""Symbolic analysis of a sparse symmetric matrix: order of elimination, pattern of the factor.

Unknowns are grouped in elements, such as the entries of a vector, which are eliminated together.
Variables with more unknowns are eliminated first. So children are eliminated before their parents,
which adds nothing to the pattern, and the larger one of two crossed factors, whose block is
diagonal, before the other one. Unknowns that would be cheaper in a dense matrix stay in one,
the *tail*:

    eliminating an unknown with d neighbours     d^2 / 2 + d^2 products, one after the other,
    leaving it among m of the tail               m^2 / 2 + m^2 products in LAPACK.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from svmp.inference.loops import may_compile
from svmp.kernels.gaussian.elimination import eliminate, sort_rows
from svmp.kernels.gaussian.equations import Lower
from svmp.network.grid import Ints, ragged

SHARE = 0.25
"""Share of all unknowns that are left, from which on an unknown with so many neighbours stays. A
product is some 15 times as fast in LAPACK: measured by `benchmarks/joint_blocks.py`."""
FEW = 64
"""Number of unknowns that stay in any case: their dense matrix takes no time."""
MANY = 5000
"""Most unknowns of a dense matrix: 200 MB, and two seconds for its inverse."""
WORK = 2e9
"""Most products in a sparse factor, which take a second or two. What is left then is too large for
a dense matrix as a rule, so that the block is refused: no fit grinds for hours."""
SMALL = 128
"""Most unknowns of a matrix that is dense as a whole: nothing is gained by eliminating some."""


@dataclass(frozen=True, eq=False)
class Analysis:
    """The order of elimination, and patterns in that order.

    Attributes
    ----------
    order
        The unknowns in the order of elimination.
    sparse
        How many of these are eliminated sparsely; the others are the tail.
    matrix, lower
        The patterns of the lower triangle of the matrix, and of the sparse columns of its factor,
        without diagonal.
    """

    order: Ints
    sparse: int
    matrix: Lower
    lower: Lower

    @classmethod
    def of(
        cls, graph: Any, element: Ints, stages: Sequence[Ints], small: int | None = None
    ) -> Analysis:
        """Analyse a matrix.

        Parameters
        ----------
        graph
            A sparse matrix that is not 0 where two elements are in one row.
        element
            The element of each unknown, ascending.
        stages
            The elements of each variable.
        small
            Most unknowns of a matrix that is dense as a whole; if not given, `SMALL`, or `MANY`
            where no loops may be compiled.
        """
        size, width = len(element), np.bincount(element)
        first = np.cumsum(width) - width
        if is_small(size) if small is None else size <= small:
            return cls(np.arange(size), 0, full_triangle(size), Lower(np.zeros(1, np.int64), NO))
        if not may_compile():  # all is left, which is too much: the block is refused
            none = Lower(np.zeros(1, np.int64), NO)
            return cls(np.arange(size), 0, none, none)
        graph = neighbours(graph)
        stage = np.full(len(width), -1)
        for number, some in enumerate(sorted(stages, key=lambda some: -int(width[some].sum()))):
            stage[some] = number
        starts, adjacent = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
        order, ends, members = eliminate(
            starts, adjacent, width, stage, len(stages), SHARE, FEW, MANY, WORK
        )
        order = np.concatenate([order, np.setdiff1d(np.arange(len(width)), order)])
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        place = np.cumsum(width[order]) - width[order]  # of the first unknown of each, in order
        _, member = ragged(first[order], width[order])
        counts = np.diff(ends, prepend=0)
        lower = triangle(rank[members], counts, place, width[order][: len(ends)], width[order])
        given = [rank[adjacent], np.diff(starts)]
        moved, lengths = ragged(starts[order], given[1][order])
        later = given[0][lengths] > moved
        matrix = triangle(
            given[0][lengths][later],
            np.bincount(moved[later], minlength=len(order)),
            place,
            width[order],
            width[order],
            diagonal=True,
        )
        return cls(member, int(width[order[: len(ends)]].sum()), matrix, lower)

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.order)

    @cached_property
    def position(self) -> Ints:
        """The position of each unknown in the order."""
        found = np.empty_like(self.order)
        found[self.order] = np.arange(self.size)
        return found

    @property
    def tail(self) -> Ints:
        """The unknowns of the tail."""
        return self.order[self.sparse :]

    @cached_property
    def column(self) -> Ints:
        """The column of each entry of the matrix."""
        return np.repeat(np.arange(self.size), np.diff(self.matrix.starts))

    def __str__(self) -> str:
        """Describe the blocks of the factor.

        >>> print(Analysis.of(None, np.arange(3), []))
        3 dense
        """
        eliminated = f"{self.sparse:,} sparse with {len(self.lower.row):,} entries, "
        return (eliminated if self.sparse else "") + f"{self.size - self.sparse:,} dense"


def is_small(size: int) -> bool:
    """Return whether a matrix is dense as a whole, so that no graph of it is needed."""
    return size <= (SMALL if may_compile() else MANY)


NO: Ints = np.zeros(0, dtype=np.int64)


def neighbours(graph: Any) -> Any:
    """Return a symmetric pattern without its diagonal."""
    graph = graph.tocoo()
    row, column = graph.coords
    apart = row != column
    values = np.ones(int(apart.sum()), dtype=np.int8)
    found = sparse.csr_array((values, (row[apart], column[apart])), shape=graph.shape)
    found.sum_duplicates()
    return found


def full_triangle(size: int) -> Lower:
    """Return the pattern of all of a lower triangle, with its diagonal."""
    length = np.arange(size, 0, -1)
    _, row = ragged(np.arange(size), length)
    return Lower(np.concatenate([[0], np.cumsum(length)]), row)


def triangle(
    members: Ints, counts: Ints, place: Ints, columns: Ints, width: Ints, diagonal: bool = False
) -> Lower:
    """Return the pattern of unknowns, given that of elements.

    Parameters
    ----------
    members, counts
        The later elements that each element has entries with, and their numbers.
    place, width
        The first unknown, and the number of unknowns, of all elements.
    columns
        The number of unknowns of the elements that have columns.
    diagonal
        Whether entries on the diagonal are stored.
    """
    ends = np.cumsum(counts)
    total = np.concatenate([[0], np.cumsum(width[members])])
    below = total[ends] - total[ends - counts]  # unknowns that an element has entries with
    _, rows = ragged(place[members], width[members])
    _, own = ragged(np.zeros_like(columns), columns)  # 0, 1, ... within each element
    owner = np.repeat(np.arange(len(columns)), columns)
    inside = columns[owner] - own - (0 if diagonal else 1)
    length = below[owner] + inside
    starts = np.concatenate([[0], np.cumsum(length)])
    found = np.empty(starts[-1], dtype=np.int64)
    _, within = ragged(starts[:-1], inside)
    found[within] = ragged(place[owner] + own + (0 if diagonal else 1), inside)[1]
    _, after = ragged(starts[:-1] + inside, below[owner])
    found[after] = rows[ragged(total[ends - counts][owner], below[owner])[1]]
    return Lower(starts, sort_rows(starts, found, int(width.sum())))
