"""The rows of one iteration: which elements are updated, and which rows each of them reads.

The engine asks a `Draw` for both. What the rows mean it does not know; nor does a draw.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.streams import sample_each
from svmp.network.edge import Edge
from svmp.network.grid import Ints, ragged
from svmp.network.network import Network, by_value


class Rows(NamedTuple):
    """The rows that some elements read: whose each is, by position, and its number.

    `scale` is N_i / |rows_i| of each element, by which its messages count.
    """

    owner: Ints
    rows: Ints
    scale: Array


class Draw(ABC):
    """The rows of one iteration."""

    network: Network

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

    def children(self, name: str, elements: Ints) -> Ints:
        """Return N_i of each element: among how many children it draws."""
        return self.network.child_counts[name][elements]

    @abstractmethod
    def groups(self, name: str) -> list[Ints]:
        """Return the elements of a variable to update, those that can go together at a time."""

    @abstractmethod
    def rows(self, edge: Edge, elements: Ints) -> Rows:
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

    @abstractmethod
    def read(self, name: str, elements: Ints) -> Ints:
        """Return how many children each element reads."""


@dataclass(frozen=True)
class AllRows(Draw):
    """Every row."""

    network: Network

    def groups(self, name: str) -> list[Ints]:
        return self.network.groups[name]

    def rows(self, edge: Edge, elements: Ints) -> Rows:
        return Rows(*edge.rows_of(elements), np.ones(len(elements)))

    def read(self, name: str, elements: Ints) -> Ints:
        return self.network.child_counts[name][elements]


@dataclass(frozen=True)
class Sampled(Draw):
    """A part of the observations as if they were all; samples of one seed contain each other.

    Those who sort its rows may remember the order in `memory`.
    """

    network: Network
    share: float
    seed: int
    memory: dict[Any, Any] = field(default_factory=dict, compare=False)

    @cached_property
    def tables(self) -> dict[str, Ints]:
        """Sampled rows of every table that is observed, or hidden but tied to observed rows."""
        tables = {}
        for index, (name, variable) in enumerate(self.network.observed.items()):
            rng = np.random.default_rng([self.seed, index, 3])
            count = max(1, round(self.share * variable.count))
            tables[name] = np.sort(rng.permutation(variable.rows)[:count])
        return with_locals(self.network, tables)

    @cached_property
    def pairs(self) -> Pairs:
        """For each edge to a sampled table, its (element, row) pairs, by element."""
        return Pairs(self.tables)

    def groups(self, name: str) -> list[Ints]:
        if name in self.network.locals:
            return by_colour(self.network, name, self.tables[name])
        return self.network.groups[name]

    def drawn_rows(self, table: str) -> Ints | None:
        return self.tables.get(table)

    def rows(self, edge: Edge, elements: Ints) -> Rows:
        if edge not in self.pairs:
            return Rows(*edge.rows_of(elements), np.ones(len(elements)))
        return Rows(*among(self.pairs[edge], elements), np.ones(len(elements)))

    def read(self, name: str, elements: Ints) -> Ints:
        read = np.zeros(len(elements), dtype=np.int64)
        for edge in self.network.edges[name]:
            drawn = self.pairs.children(edge) if edge in self.pairs else edge.children
            read += drawn[elements]
        return read


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


@dataclass(frozen=True)
class DrawnChildren(Draw):
    """At most C children of each element, from all the tables that depend on it."""

    network: Network
    most: Callable[[str, Ints], Ints]
    share_draw: bool
    seed: int
    iteration: int

    def groups(self, name: str) -> list[Ints]:
        if name not in self.network.locals:
            return self.network.groups[name]
        around = self.network.edges_around(name)
        if not around:
            return self.network.groups[name]
        touched = np.unique(np.concatenate([self._tied(name, edge) for edge in around]))
        return by_colour(self.network, name, touched)

    def _tied(self, local: str, edge: Edge) -> Ints:
        """Return the elements of a local variable whose rows will be read along an edge."""
        elements = np.arange(edge.parent.size)
        rows = self.rows(edge, elements).rows
        rows = rows if edge.choosing else rows // edge.conditional.components
        table = edge.conditional.variable
        if table.name == local:
            return rows
        down = next(e for e in self.network.edges[local] if e.conditional.variable is table)
        return down.pairs_in(np.unique(rows))[0]

    def rows(self, edge: Edge, elements: Ints) -> Rows:
        name = edge.parent.name
        children = self.network.child_counts[name][elements]
        take = self.read(name, elements)
        stream = self.network.draw_keys(name)[elements] if self.share_draw else elements
        number = list(self.network.hidden).index(name)
        chosen = sample_each(self.seed, self.iteration, number, stream, children, take)
        owner = np.repeat(np.arange(len(elements)), take)
        before = np.zeros(len(elements), dtype=np.int64)  # children are counted table by table
        for other in self.network.edges[name]:
            if other is edge:
                break
            before += other.children[elements]
        place = chosen - before[owner]
        here = (place >= 0) & (place < edge.children[elements][owner])
        owner, rows = edge.children_at(elements, owner[here], place[here])
        return Rows(owner, rows, children / np.maximum(take, 1))

    def reads_all(self, table: str) -> bool:
        return False

    def read(self, name: str, elements: Ints) -> Ints:
        return self.most(name, self.network.child_counts[name][elements])


@dataclass(frozen=True)
class DrawnBatch(Draw):
    """The observations of one batch, and the variables of those rows themselves."""

    network: Network
    size: int
    seed: int
    iteration: int

    @cached_property
    def batch_share(self) -> float:
        total = sum(v.count for v in self.network.observed.values())
        return min(self.size, total) / total

    @cached_property
    def tables(self) -> dict[str, Ints]:
        """Drawn rows of every table that is observed, or hidden but tied to observed rows."""
        observed = list(self.network.observed.values())
        ends = np.cumsum([v.count for v in observed])
        take = np.minimum([self.size], ends[-1:])
        number = len(self.network.hidden)  # a stream of its own, after the variables'
        anyone = np.zeros(1, dtype=np.int64)
        chosen = sample_each(self.seed, self.iteration, number, anyone, ends[-1:], take)
        chosen.sort()
        cuts = np.searchsorted(chosen, ends)
        tables = {}
        for variable, part, end in zip(observed, np.split(chosen, cuts[:-1]), ends, strict=True):
            places = part - (end - variable.count)
            tables[variable.name] = places if variable.present is None else variable.present[places]
        return with_locals(self.network, tables)

    @cached_property
    def pairs(self) -> Pairs:
        """For each edge to a drawn table, its (element, row) pairs, by element."""
        return Pairs(self.tables)

    def _drawn_edges(self, name: str) -> list[Edge]:
        return [e for e in self.network.edges[name] if e in self.pairs]

    def groups(self, name: str) -> list[Ints]:
        edges = self._drawn_edges(name)
        if name in self.network.locals:
            return by_colour(self.network, name, self.tables[name])
        if not edges:
            return self.network.groups[name]
        touched = np.concatenate([np.flatnonzero(self.pairs.children(e)) for e in edges])
        return by_colour(self.network, name, np.union1d(touched, self._childless(name)))

    def _childless(self, name: str) -> Ints:
        """Return the elements that have no child in any table that is drawn from."""
        children = sum(e.children for e in self._drawn_edges(name))
        return np.flatnonzero(children == 0)

    def rows(self, edge: Edge, elements: Ints) -> Rows:
        if edge not in self.pairs:
            return Rows(*edge.rows_of(elements), np.ones(len(elements)))
        return Rows(*among(self.pairs[edge], elements), self.scale(edge.parent.name, elements))

    def drawn_rows(self, table: str) -> Ints | None:
        return self.tables.get(table)

    def scale(self, name: str, elements: Ints) -> Array:
        drawn, children = self._counts(name, elements)
        return children / np.maximum(drawn, 1)

    def _counts(self, name: str, elements: Ints) -> tuple[Ints, Ints]:
        """Return |D_i| and N_i over the tables that are drawn from."""
        drawn = np.zeros(len(elements), dtype=np.int64)
        children = np.zeros(len(elements), dtype=np.int64)
        for edge in self._drawn_edges(name):
            drawn += self.pairs.children(edge)[elements]
            children += edge.children[elements]
        return drawn, children

    def read(self, name: str, elements: Ints) -> Ints:
        edges = self._drawn_edges(name)
        if not edges:
            return self.network.child_counts[name][elements]
        return self._counts(name, elements)[0]
