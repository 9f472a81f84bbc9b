"""The rows of one iteration: which elements are updated, and which rows each of them reads.

Updaters ask a `Draw` for both. What the rows mean it does not know.
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
from svmp.network.network import Network, by_value

ONE = np.ones(1)
NO_GROUPS = np.zeros(0, dtype=np.int64)


class Reading(NamedTuple):
    """The rows that some elements read: whose each is, by position, and its number.

    `scale` is N_i / |rows_i| of each element, by which its messages count.
    """

    owner: Ints
    rows: Ints
    scale: Array


@dataclass(frozen=True)
class Draw(ABC):
    """The rows of one iteration.

    Attributes
    ----------
    memory
        What updaters derive from these rows, such as their order by a key. It lasts as long as the
        draw: a sample that is read in several iterations is sorted once.
    """

    network: Network
    memory: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    @property
    def locals(self) -> Collection[str]:
        """Variables that are optimised outright, before all others."""
        return self.network.locals

    @property
    def coupling(self) -> dict[str, int]:
        """For each variable, how many other elements share a row with one and are not local."""
        return self.network.coupling

    @property
    def batch_share(self) -> float | None:
        """The part of all observations that is drawn, where only elements with a child in it move.

        None where each element reads rows of its own, or all of them move.
        """
        return None

    @property
    def fresh(self) -> dict[str, Ints]:
        """By table, rows whose groups' own variables are up to date, where others' are not."""
        return {}

    @property
    def whole(self) -> bool:
        """Whether every element reads all of its rows."""
        return False

    @property
    def groups_drawn(self) -> Ints:
        """The groups that are drawn, where groups are."""
        return NO_GROUPS

    def children(self, name: str, elements: Ints) -> Ints:
        """Return N_i of each element: among how many children it draws."""
        return self.network.child_counts[name][elements]

    @abstractmethod
    def groups(self, name: str) -> list[Ints]:
        """Return the elements of a variable to update, those that can go together at a time."""

    @abstractmethod
    def rows(self, edge: Edge, elements: Ints) -> Reading:
        """Return the rows of one table that the elements read."""

    def drawn_rows(self, table: str) -> Ints | None:
        """Return the rows of a table that were drawn for all, or None where that is every row."""
        return None

    def reads_all(self, table: str) -> bool:
        """Return whether elements read all of their rows of a table."""
        return self.drawn_rows(table) is None

    def scale(self, name: str, elements: Ints) -> Array:
        """Return N_i / |rows_i| of each element, for rows that were drawn for all."""
        return np.ones(len(elements))

    def children_drawn(self, edge: Edge) -> Ints:
        """Return how many rows of a table each element of a parent reads."""
        return edge.children

    @abstractmethod
    def read(self, name: str, elements: Ints) -> Ints:
        """Return how many children each element reads."""

    def work(self, loops: Multilinear, name: str) -> Work:
        """Return the keys that compiled loops update, with their rows."""
        column = loops.operand(name).column
        every = loops.all_rows(column)
        rows = self.drawn_rows(loops.table)
        if rows is None:
            return Work(every, every.keys, ONE, every.counts, every.counts)
        if (loops, column) not in self.memory:
            self.memory[loops, column] = loops.keyed(column, rows)
        return self.share_out(self.memory[loops, column], every, name)

    def share_out(self, drawn: Keyed, every: Keyed, name: str) -> Work:
        """Return the keys to update from drawn rows, whose messages count as they are."""
        keys, counts = every.keys, every.counts
        if name in self.locals:  # of the rows that were not drawn, they stay as they are
            keys = np.flatnonzero(drawn.counts)
            return Work(drawn, keys, ONE, drawn.counts[keys], counts[keys])
        return Work(drawn, keys, ONE, drawn.counts, counts)


@dataclass(frozen=True)
class AllRows(Draw):
    """Every row."""

    @property
    def whole(self) -> bool:
        return True

    def groups(self, name: str) -> list[Ints]:
        return self.network.groups[name]

    def rows(self, edge: Edge, elements: Ints) -> Reading:
        return Reading(*edge.rows_of(elements), np.ones(len(elements)))

    def read(self, name: str, elements: Ints) -> Ints:
        return self.network.child_counts[name][elements]


def by_colour(network: Network, name: str, elements: Ints) -> list[Ints]:
    """Split elements into sets that can be updated together."""
    return [elements[part] for part in by_value(network.colours[name][elements])]


def with_locals(network: Network, tables: dict[str, Ints]) -> dict[str, Ints]:
    """Add the elements of local variables that belong to drawn rows."""
    for name in network.locals:
        edges = network.edges[name]
        touched = [e.pairs_in(tables[e.conditional.variable.name])[0] for e in edges]
        tables[name] = np.unique(np.concatenate(touched))
    return tables


class Pairs(dict[Edge, tuple[Ints, Ints]]):
    """For each edge to a drawn table its (element, row) pairs, by element, listed when asked."""

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
        """Return how many of the drawn rows depend on each element."""
        if edge not in self._children:
            rows = self.tables[edge.conditional.variable.name]
            self._children[edge] = edge.children_in(rows)
        return self._children[edge]


def among(pairs: tuple[Ints, Ints], elements: Ints) -> tuple[Ints, Ints]:
    """Return the rows of these elements among pairs sorted by element, and whose each is."""
    everyone, rows = pairs
    starts = np.searchsorted(everyone, elements, side="left")
    counts = np.searchsorted(everyone, elements, side="right") - starts
    owner, place = ragged(starts, counts)
    return owner, rows[place]
