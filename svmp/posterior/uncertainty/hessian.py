"""The derivative H of a message map as a sparse matrix, from differences along many statistics.

A row sends messages among the elements that it reads or is. So H has a block for two elements only
where some row has both, and one difference of Phi along several elements gives the blocks of all of
them, if no two have a neighbour in common. As H is symmetric, less suffices: elements with many
neighbours (items, coefficients, precisions) are moved one by one, which gives all blocks that they
are in, and the others (persons, whom only items connect) have to be apart from each other only
(Powell & Toint 1979).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from svmp.families.family import Array
from svmp.inference.methods.draw import ONE, AllRows, Reading, among
from svmp.network.colouring import greedy_colours
from svmp.network.conditional import Conditional
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.posterior.uncertainty.message_map import MessageMap

STEP = 1e-4
"""Step of the differences where messages are not linear, in standard deviations of a statistic."""
FAR = 2.0**20
"""Step of the differences where messages are linear, in sizes of a statistic: so large that nothing
of Phi but the differences is left, which makes them exact."""


@dataclass(frozen=True, eq=False)
class Elements:
    """All elements of a message map, one after the other.

    Attributes
    ----------
    start, size
        The place of each in a flat vector, and its number of statistics.
    first
        By variable, the number of its first element.
    """

    start: Ints
    size: Ints
    first: dict[str, int]

    @classmethod
    def of(cls, phi: MessageMap) -> Elements:
        first, sizes, count = {}, [np.zeros(0, dtype=np.int64)], 0
        for name, variable in phi.variables.items():
            first[name], count = count, count + variable.size
            sizes.append(np.full(variable.size, variable.family.size))
        size = np.concatenate(sizes)
        return cls(np.cumsum(size) - size, size, first)

    @property
    def count(self) -> int:
        return len(self.start)

    def blocks(self, rows: Ints, columns: Ints, place: int) -> tuple[Ints, Ints]:
        """Return the places of the blocks of pairs of elements, in one column of each block."""
        pairs = self.size[columns] > place
        rows, columns = rows[pairs], columns[pairs]
        owner = np.repeat(np.arange(len(rows)), self.size[rows])
        within = np.arange(len(owner)) - (np.cumsum(self.size[rows]) - self.size[rows])[owner]
        return self.start[rows][owner] + within, self.start[columns][owner] + place


@dataclass(frozen=True, eq=False)
class Incidence:
    """Which elements the rows of one table read or are.

    Attributes
    ----------
    rows
        The rows that have any.
    matrix
        Whether each of them has each element, (elements, rows), sparse.
    """

    rows: Ints
    matrix: Any

    def rows_of(self, elements: Ints) -> Ints:
        """Return the rows of some elements."""
        return self.rows[np.unique(self.matrix[elements].indices)]


@dataclass(frozen=True, eq=False)
class SomeRows(AllRows):
    """The rows of some elements; all rows of tables that are not named.

    Attributes
    ----------
    tables
        By table, its rows.
    """

    tables: Mapping[str, Ints]

    def rows(self, edge: Edge, elements: Ints) -> Reading:
        if edge.conditional.variable.name not in self.tables:
            return super().rows(edge, elements)
        pairs = edge.pairs_in(self.tables[edge.conditional.variable.name])
        return Reading(*among(pairs, elements), ONE)

    def drawn_rows(self, table: str) -> Ints | None:
        return self.tables.get(table)


def hessian_of(phi: MessageMap) -> Any:
    """Return H as a sparse matrix, 0 along statistics that are constant or not counted."""
    each, read = Elements.of(phi), incidences(phi)
    near = neighbours(read.values(), each.count)
    colours, alone = coloured(near, each.size)
    moving = (phi.counted > 0) & (phi.deviations > 0)
    step = far_steps(phi) if phi.is_linear else STEP * phi.deviations
    inverse = np.where(moving, 0.5 / np.where(moving, step, 1.0), 0.0)
    rows, columns = sparse.coo_array(near).coords
    # Of two elements, one that is moved alone gives the block; both of them where both are.
    given = alone[columns] | ~alone[rows]
    rows, columns = rows[given], columns[given]
    order = np.argsort(colours[columns], kind="stable")
    rows, columns = rows[order], columns[order]
    ends = np.searchsorted(colours[columns], np.arange(colours.max(initial=-1) + 2))
    found = []
    for start, stop in pairwise(ends):
        some = slice(start, stop)
        moved = np.unique(columns[some])
        draw = SomeRows(phi.network, few_rows(read, moved))
        for place in range(int(each.size[moved].max())):
            row, column = each.blocks(rows[some], columns[some], place)
            move = np.zeros(phi.size)
            move[column] = step[column] * moving[column]
            change = phi(phi.moments + move, draw) - phi(phi.moments - move, draw)
            found.append((change[row] * inverse[column] * moving[row], row, column))
    values, row, column = (np.concatenate(part) for part in zip(*found, strict=True))
    element = np.repeat(np.arange(each.count), each.size)
    twice = alone[element[row]] == alone[element[column]]
    values = np.where(twice, 0.5, 1.0) * values
    half = sparse.csr_array((values, (row, column)), shape=(phi.size, phi.size))
    return sparse.csr_array(half + half.T)


def far_steps(phi: MessageMap) -> Array:
    """Return the step of each statistic where messages are linear."""
    return np.asarray(FAR * np.maximum(np.abs(phi.moments), phi.deviations))


def few_rows(read: Mapping[str, Incidence], moved: Ints) -> dict[str, Ints]:
    """Return by table the rows of the elements that are moved, where these are few."""
    found = {name: each.rows_of(moved) for name, each in read.items()}
    return {name: rows for name, rows in found.items() if 2 * len(rows) <= len(read[name].rows)}


def incidences(phi: MessageMap) -> dict[str, Incidence]:
    """Return by table which elements its rows read or are; none where chains connect all rows."""
    network, each = phi.network, Elements.of(phi)
    if network.chains:
        return {}
    tables = [*network.hidden.values(), *network.observed.values()]
    return {table.name: incidence_of(table.conditional, each) for table in tables}


def neighbours(read: Collection[Incidence], count: int) -> Any:
    """Return which elements meet in a row, as a sparse matrix; all of them if nothing is known."""
    if not read:
        return sparse.csr_array(np.ones((count, count), dtype=bool))
    found = sparse.eye_array(count, format="csr", dtype=bool)
    for table in read:
        found = found + table.matrix @ table.matrix.T
    return sparse.csr_array(found)


def incidence_of(given: Conditional, each: Elements) -> Incidence:
    """Return which elements the rows of a table read or are."""
    rows, elements = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    if given.variable.name in each.first:
        rows.append(given.variable.rows)
        elements.append(each.first[given.variable.name] + given.variable.rows)
    step = given.chunk(1)
    for start in range(0, given.variable.size, step):
        part = given.variable.rows[start : start + step]
        for slot in given.all_slots():
            choice = slot is given.selector
            for parent in slot.variables:
                if parent.name in each.first:
                    element, where = slot.pairs(parent, part if choice else given.subrows(part))
                    rows.append(where if choice else where // given.components)
                    elements.append(each.first[parent.name] + element)
    which, line = np.unique(np.concatenate(rows), return_inverse=True)
    ones, place = np.ones(len(line), dtype=bool), np.concatenate(elements)
    matrix = sparse.csr_array((ones, (place, line)), shape=(each.count, len(which)))
    matrix.sum_duplicates()
    return Incidence(which, matrix)


def coloured(near: Any, size: Ints) -> tuple[Ints, Any]:
    """Return a colour for each element, and which of them have one of their own.

    Elements of one colour are moved together. Those with more neighbours than a limit are moved
    alone; of several limits, that with the least steps is taken.

    >>> star = sparse.csr_array(np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]))
    >>> coloured(star, np.array([2, 2, 2, 2]))
    (array([1, 0, 0, 0]), array([ True, False, False, False]))
    """
    degree = np.diff(near.indptr)
    best: tuple[Ints, Any] = np.arange(len(degree)), np.ones(len(degree), dtype=bool)
    least = size.sum()
    limit = 1
    while limit < 2 * degree.max(initial=0):
        alone = degree > limit
        rest = np.flatnonzero(~alone)
        limit *= 2
        if not len(rest) or size[alone].sum() >= least:
            continue
        apart = sparse.coo_array(near[rest][:, rest])
        colours = np.empty(len(degree), dtype=np.int64)
        row, column = apart.coords
        colours[rest] = greedy_colours(column, row, len(rest))
        several = int(colours[rest].max()) + 1
        colours[alone] = several + np.arange(alone.sum())
        steps = size[alone].sum() + sum(
            size[rest][colours[rest] == c].max() for c in range(several)
        )
        if steps < least:
            best, least = (colours, alone), steps
    return best
