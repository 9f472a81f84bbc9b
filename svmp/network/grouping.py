"""Which element of a dim each row belongs to: all that a document, a user, a school brings along.

A variable with the dim among its own has it directly. A row belongs where its parents do, found
by its key; a variable of the rows themselves where its row does. What is tied to one element so is
local to it, and all else is global: the split of Hoffman, Blei, Wang & Paisley (2013).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from svmp.errors import ModelError
from svmp.network.grid import Ints, ragged
from svmp.network.validation import shown

if TYPE_CHECKING:
    from svmp.network.network import Network
    from svmp.network.variable import Variable


@dataclass(frozen=True, eq=False)
class Grouping:
    """A network divided by a dim.

    Attributes
    ----------
    dim, count
        The dim, and how many elements it has: the groups.
    group
        By variable, the group of each of its elements; variables without any are global.
    """

    network: Network
    dim: str
    count: int
    group: dict[str, Ints]

    @cached_property
    def locals(self) -> list[str]:
        """Hidden variables of the groups, in the order of their updates."""
        return [name for name in self.network.default_order if name in self.group]

    @cached_property
    def sizes(self) -> Ints:
        """How many hidden elements belong to each group."""
        counts = [np.bincount(self.group[n], minlength=self.count) for n in self.locals]
        return np.sum(counts, axis=0, dtype=np.int64) if counts else np.zeros(self.count, np.int64)

    @cached_property
    def coupling(self) -> dict[str, int]:
        """As that of the network, where the variables of the groups do not count either."""
        return self.network.coupling_beside({*self.network.locals, *self.locals})

    @cached_property
    def _rows(self) -> dict[str, sparse.csr_array]:
        return {
            name: sparse.csr_array(
                (np.ones(len(rows), dtype=np.int8), (group[rows], rows)),
                shape=(self.count, len(group)),
            )
            for name, group in self.group.items()
            for rows in [self.network.rows(self.network.model.variables[name])]
        }

    def rows(self, name: str, groups: Ints) -> Ints:
        """Return the rows of a table that belong to some groups, in ascending order."""
        table = self._rows[name]
        starts = table.indptr[groups].astype(np.int64)
        _, place = ragged(starts, table.indptr[groups + 1] - starts)
        return np.sort(table.indices[place].astype(np.int64))


def group_by(network: Network, dim: str) -> Grouping:
    """Find what belongs to each element of a dim."""
    model, group = network.model, dict[str, Ints]()
    if dim not in model.sizes:
        raise ModelError(
            f"over is {shown(dim)}, but the model has no such dimension; it has {list(model.sizes)}"
        )
    found = -1
    while len(group) > found:  # a row's own variable may tie another table to its group
        found = len(group)
        for name, variable in model.variables.items():
            ties = list(_ties(network, dim, group, variable))
            if ties:
                group[name] = _agreed(variable, dim, ties)
    if not any(name in group for name in network.observed):
        raise ModelError(f"over is '{dim}', but no observed variable depends on that dimension")
    return Grouping(network, dim, model.sizes[dim], group)


def _ties(
    network: Network, dim: str, group: dict[str, Ints], variable: Variable
) -> Iterator[tuple[Ints, Ints]]:
    """Yield rows of a table and their groups: by its dims, by its parents, and by its children."""
    if dim in variable.plate.labels:
        rows = np.arange(variable.size)
        yield rows, variable.plate.coordinate(dim, rows)
    for parent in variable.conditional.parents():
        if parent.name in group:
            elements, rows = _keys(parent, variable)
            yield rows, group[parent.name][elements]
    if variable.name in network.locals:
        for edge in network.edges[variable.name]:
            table = edge.conditional.variable
            if table.name in group:
                elements, rows = _keys(variable, table)
                yield elements, group[table.name][rows]


def _keys(parent: Variable, table: Variable) -> tuple[Ints, Ints]:
    """List every element of a parent that a row of a table depends on, beside that row."""
    conditional, rows = table.conditional, np.arange(table.size)
    _, slot = conditional.slot_of(parent)
    if slot is conditional.selector:
        return slot.pairs(parent, rows)
    elements, subrows = slot.pairs(parent, conditional.subrows(rows))
    return elements, subrows // conditional.components


def _agreed(variable: Variable, dim: str, ties: list[tuple[Ints, Ints]]) -> Ints:
    """Return the one group of each row, or refuse the row that has two, or none."""
    agreed = np.full(variable.size, -1, dtype=np.int64)
    for rows, groups in ties:
        agreed[rows] = groups
    for rows, groups in ties:
        apart = np.flatnonzero(agreed[rows] != groups)
        if len(apart):
            row = int(rows[apart[0]])
            both = sorted([int(groups[apart[0]]), int(agreed[row])])
            raise ModelError(
                f"'{variable.name}' at {variable.plate.locate(row)} belongs to two elements of "
                f"'{dim}', {both[0]} and {both[1]}, so batches over '{dim}' cannot be drawn"
            )
    if (agreed < 0).any():
        where = variable.plate.locate(int(np.argmin(agreed)))
        raise ModelError(
            f"'{variable.name}' at {where} belongs to no element of '{dim}', while others of it do"
        )
    return agreed
