"""The rows of one iteration: which elements are updated, and which rows each of them reads.

Updaters ask a `Draw` for both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.kernels.multilinear.table import Keyed
from svmp.kernels.multilinear.updater import Multilinear
from svmp.kernels.multilinear.work import Work
from svmp.network.edge import Edge
from svmp.network.grid import Ints, ragged
from svmp.network.network import Network

ONE = np.ones(1)
NO_GROUPS = np.zeros(0, dtype=np.int64)


class Reading(NamedTuple):
    """The rows that some elements read.

    Attributes
    ----------
    owner, rows
        For each row read, the position of the element that reads it, and the number of the row.
    scale
        N_i / |rows_i| of each element, the factor of its messages, or one number for all.
    """

    owner: Ints
    rows: Ints
    scale: Array


@dataclass(frozen=True, eq=False)
class Draw(ABC):
    """The rows of one iteration.

    Attributes
    ----------
    memory
        Cache for what updaters derive from these rows, such as their order by a key: a sample that
        is read in several iterations is sorted once.
    """

    network: Network
    memory: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    @property
    def locals(self) -> Collection[str]:
        """Variables that are optimised with unit steps, before all others."""
        return self.network.locals

    @property
    def coupling(self) -> dict[str, int]:
        """For each variable, the largest number of other, not local elements in a row with one."""
        return self.network.coupling

    @property
    def batch_share(self) -> float | None:
        """Share of the observations that is drawn, where only elements with a child in it move.

        None where each element draws its own rows, or all elements move.
        """
        return None

    @property
    def fresh(self) -> dict[str, Ints]:
        """By table, the rows of drawn groups, whose variables are up to date."""
        return {}

    @property
    def whole(self) -> bool:
        """Whether every element reads all of its rows."""
        return False

    @property
    def groups_drawn(self) -> Ints:
        """The groups that are drawn; empty if rows are drawn."""
        return NO_GROUPS

    @property
    def most_passes(self) -> int | None:
        """Most passes over the variables of a drawn group; None for passes until it converges."""
        return None

    @property
    def tolerance(self) -> float | None:
        """Tolerance of the buffers of subchains, in nats; None where sequences are whole."""
        return None

    def restarts(self, iteration: int) -> bool:
        """Return whether the variables of drawn groups start near their prior, whatever q was."""
        return True

    def reads_means(self, iteration: int) -> bool:
        """Return whether drawn groups read the means of global Dirichlets: log E[p]."""
        return False

    def children(self, name: str, elements: Ints) -> Ints:
        """Return N_i of each element, the number of children that it draws from."""
        found = self.network.child_counts[name][self.network.place(name, elements)]
        found.flags.writeable = False  # it may be a view, and policies of users are given it
        return found

    @abstractmethod
    def groups(self, name: str) -> list[Ints]:
        """Return the elements of a variable to update, in sets that can be updated together."""

    @abstractmethod
    def rows(self, edge: Edge, elements: Ints) -> Reading:
        """Return the rows of one table that the elements read."""

    def drawn_rows(self, table: str) -> Ints | None:
        """Return the rows of a table that were drawn for all elements; None if all rows were."""
        return None

    def reads_all(self, table: str) -> bool:
        """Return whether elements read all of their rows of a table."""
        return self.drawn_rows(table) is None

    def scale(self, name: str, elements: Ints) -> Array:
        """Return N_i / |rows_i| of each element, for rows that were drawn for all elements."""
        return np.ones(len(elements))

    def children_drawn(self, edge: Edge) -> Ints:
        """Return the number of rows of a table that each element of a parent reads."""
        return edge.children

    @abstractmethod
    def read(self, name: str, elements: Ints) -> Ints:
        """Return the number of children that each element reads."""

    def keyed(self, loops: Multilinear, column: int) -> Keyed:
        """Return the rows drawn for all, sorted by a key of their table."""
        rows = self.drawn_rows(loops.table)
        if rows is None:
            return loops.all_rows(column)
        if (loops, column) not in self.memory:
            self.memory[loops, column] = loops.keyed(column, rows)
        found: Keyed = self.memory[loops, column]
        return found

    def work(self, loops: Multilinear, name: str) -> Work:
        """Return the keys that compiled loops update, with their rows."""
        column = loops.operand(name).column
        drawn, every = self.keyed(loops, column), loops.all_rows(column)
        if drawn is every:
            return Work(every, every.keys, ONE, every.counts, every.counts)
        return self.share_out(drawn, every, name)

    def share_out(self, drawn: Keyed, every: Keyed, name: str) -> Work:
        """Return the keys to update from drawn rows, with messages that are not scaled."""
        keys, counts = every.keys, every.counts
        if name in self.locals:  # only those of drawn rows are updated
            keys = np.flatnonzero(drawn.counts)
            return Work(drawn, keys, ONE, drawn.counts[keys], counts[keys])
        return Work(drawn, keys, ONE, drawn.counts, counts)


@dataclass(frozen=True, eq=False)
class AllRows(Draw):
    """Every row."""

    @property
    def whole(self) -> bool:
        return True

    def groups(self, name: str) -> list[Ints]:
        return self.network.groups[name]

    def rows(self, edge: Edge, elements: Ints) -> Reading:
        return Reading(*edge.rows_of(elements), ONE)

    def read(self, name: str, elements: Ints) -> Ints:
        return self.children(name, elements)


def by_colour(network: Network, name: str, elements: Ints) -> list[Ints]:
    """Split elements into sets that can be updated together, by their colour."""
    return network.by_colour(name, elements)


def with_locals(network: Network, tables: dict[str, Ints]) -> dict[str, Ints]:
    """Add the elements of local variables that belong to drawn rows."""
    for name in network.locals:
        edges = network.edges[name]
        touched = [e.pairs_in(tables[e.conditional.variable.name])[0] for e in edges]
        tables[name] = np.unique(np.concatenate(touched))
    return tables


class Pairs(dict[Edge, tuple[Ints, Ints]]):
    """For each edge to a drawn table its (element, row) pairs, by element, computed on access."""

    def __init__(self, tables: dict[str, Ints]) -> None:
        super().__init__()
        self.tables = tables
        self._children: dict[Edge, Ints] = {}

    def __contains__(self, edge: object) -> bool:
        return isinstance(edge, Edge) and edge.conditional.variable.name in self.tables

    def __missing__(self, edge: Edge) -> tuple[Ints, Ints]:
        self[edge] = edge.pairs_in(self.tables[edge.conditional.variable.name])
        return self[edge]

    def children(self, edge: Edge) -> Ints:
        """Return the number of drawn rows that depend on each element."""
        if edge not in self._children:
            rows = self.tables[edge.conditional.variable.name]
            self._children[edge] = edge.children_in(rows)
        return self._children[edge]


def among(pairs: tuple[Ints, Ints], elements: Ints) -> tuple[Ints, Ints]:
    """Return the rows of some elements among pairs sorted by element, and the owner of each."""
    owners, rows = pairs
    starts = np.searchsorted(owners, elements, side="left")
    counts = np.searchsorted(owners, elements, side="right") - starts
    owner, place = ragged(starts, counts)
    return owner, rows[place]
