"""Groups: everything that belongs to one element of a dim, as to a document, a user or a school.

A variable that has the dim belongs to its element directly. A row belongs to the group of its
parents, found by its key; a local variable to the group of its row. Variables that belong to a
group are local to it, and all others are global: the split of Hoffman, Blei, Wang & Paisley (2013).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from svmp.errors import ModelError
from svmp.network.chains.chain import Chain
from svmp.network.conditional import Conditional
from svmp.network.declaration import Declaration
from svmp.network.edge import Edge
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints, ragged
from svmp.network.validation import shown
from svmp.network.variable import Variable


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of a network along one dim.

    Attributes
    ----------
    dim, count
        The dim, and its size: the number of groups.
    group
        By variable, the group of each of its elements; variables that are not in it are global.
    locals
        Hidden variables that belong to groups, in the order of their updates.
    coupling
        As that of the network, without the variables that belong to groups.
    edges
        Those of the network.
    present
        By variable, the rows of its table that count, or None for all.
    """

    dim: str
    count: int
    group: dict[str, Ints]
    locals: list[str]
    coupling: dict[str, int]
    edges: Mapping[str, list[Edge]]
    present: Mapping[str, Ints | None]

    @cached_property
    def sizes(self) -> Ints:
        """Number of hidden elements that belong to each group."""
        counts = [np.bincount(self.group[n], minlength=self.count) for n in self.locals]
        return np.sum(counts, axis=0, dtype=np.int64) if counts else np.zeros(self.count, np.int64)

    @property
    def shares_rows(self) -> bool:
        """Whether some row depends on several global elements."""
        return any(n for name, n in self.coupling.items() if name not in self.group)

    @cached_property
    def _rows(self) -> dict[str, sparse.csr_array]:
        return {
            name: sparse.csr_array(
                (np.ones(len(rows), dtype=np.int8), (group[rows], rows)),
                shape=(self.count, len(group)),
            )
            for name, group in self.group.items()
            for present in [self.present[name]]
            for rows in [np.arange(len(group)) if present is None else present]
        }

    def rows(self, name: str, groups: Ints) -> Ints:
        """Return the rows of a table that belong to some groups, in ascending order."""
        table = self._rows[name]
        starts = table.indptr[groups].astype(np.int64)
        _, place = ragged(starts, table.indptr[groups + 1] - starts)
        return np.sort(table.indices[place].astype(np.int64))


def group_by(
    model: Declaration,
    edges: Mapping[str, list[Edge]],
    local: Collection[str],
    dim: str,
    blocks: Ints | None = None,
) -> dict[str, Ints]:
    """Return by variable the group of each of its elements, for variables that belong to groups.

    Parameters
    ----------
    edges
        For each hidden variable, the tables that depend on it.
    local
        Hidden variables of which each element is the parent of one row at most.
    dim, blocks
        The dim, and the group of each of its elements, if several are together.
    """
    group = dict[str, Ints]()
    if dim not in model.sizes:
        raise ModelError(
            f"over is {shown(dim)}, but the model has no such dimension; it has {list(model.sizes)}"
        )
    found = -1
    while len(group) > found:  # a local variable may link another table to its group
        found = len(group)
        for name, variable in model.variables.items():
            own = edges[name] if name in local else []
            links = list(_links(variable, dim, group, own, blocks))
            if links:
                group[name] = _agreed(variable, dim, links)
    if not any(name in group for name, v in model.variables.items() if not v.hidden):
        raise ModelError(f"over is '{dim}', but no observed variable depends on that dimension")
    return group


def _links(
    variable: Variable, dim: str, group: dict[str, Ints], edges: list[Edge], blocks: Ints | None
) -> Iterator[tuple[Ints, Ints]]:
    """Yield rows of a table and their groups: by its dims, by its parents, and by its children."""
    if dim in variable.plate.labels:
        rows = np.arange(variable.size)
        places = variable.plate.coordinate(dim, rows)
        yield rows, places if blocks is None else blocks[places]
    chain = variable.conditional
    if isinstance(chain, Chain) and chain.sequences.dim == dim:
        yield np.arange(variable.size), chain.sequences.code
    for parent in variable.conditional.parents():
        if parent.name in group:
            elements, rows = _keys(parent, variable.conditional)
            yield rows, group[parent.name][elements]
    for edge in edges:
        table = edge.conditional.variable.name
        if table in group:
            elements, rows = _keys(variable, edge.conditional)
            yield elements, group[table][rows]


def subchains_of(chains: Mapping[str, Chain], dim: str, length: int) -> tuple[Ints, int]:
    """Return the subchain of each row of chains over a dim, and the number of subchains."""
    of = {name: chain.sequences for name, chain in chains.items() if dim in chain.variable.dims}
    if not of:
        raise ModelError(
            f"length is for the rows of a chain, but no chain has the dimension {shown(dim)}; "
            "leave it out, or name the dimension of a chain's rows in over="
        )
    name, sequences = next(iter(of.items()))
    longest = int(sequences.lengths.max(initial=0))
    if length > longest:
        raise ModelError(
            f"length is {length}, but the longest sequence of '{name}' has {longest} rows; give a "
            f"smaller one, or draw whole sequences with over='{sequences.dim}'"
        )
    for other, found in of.items():
        same = np.array_equal(found.order, sequences.order)
        if not same or not np.array_equal(found.code, sequences.code):
            raise ModelError(
                f"'{name}' and '{other}' have other sequences of the same rows, so subchains of "
                f"'{dim}' cannot be drawn"
            )
    return sequences.blocks(length)


def _keys(parent: Symbol, conditional: Conditional) -> tuple[Ints, Ints]:
    """List every (element, row) where a row of a table depends on that element of a parent."""
    rows = np.arange(conditional.variable.size)
    _, slot = conditional.slot_of(parent)
    if slot is conditional.selector:
        return slot.pairs(parent, rows)
    elements, subrows = slot.pairs(parent, conditional.subrows(rows))
    return elements, subrows // conditional.components


def _agreed(variable: Variable, dim: str, links: list[tuple[Ints, Ints]]) -> Ints:
    """Return the group of each row, or refuse a row with two groups or none."""
    agreed = np.full(variable.size, -1, dtype=np.int64)
    for rows, groups in links:
        agreed[rows] = groups
    for rows, groups in links:
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
