"""A batch of groups: documents, users, schools, each with all of its rows.

The variables of the drawn groups read all of their rows. The messages of S of D groups to a global
variable are scaled by D / S, so that their mean over all draws is the message of all groups.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from svmp.families.family import Array
from svmp.inference.methods.draw import Draw, Pairs, Reading, among
from svmp.network.chains.chain import ChainEdge
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.grouping import Grouping


def draw_groups(count: int, size: int, seed: int, iteration: int) -> Ints:
    """Return `size` of `count` groups in ascending order, every set of them equally likely.

    The groups are shuffled once per epoch: none is drawn again before all others were, except for
    the few that are left over where `size` does not divide `count`.
    """
    turns = max(1, count // size)
    epoch, turn = divmod(iteration - 1, turns)
    return np.sort(shuffled(count, seed, epoch)[turn * size : (turn + 1) * size])


@lru_cache(maxsize=1)
def shuffled(count: int, seed: int, epoch: int) -> Ints:
    """Return all groups in the order in which an epoch draws them."""
    return np.random.default_rng([seed, epoch, 6]).permutation(count)


@dataclass(frozen=True, eq=False)
class DrawnGroups(Draw):
    """Some groups with all of their rows; tables that belong to no group are read in full.

    `groups` returns the global elements, which are updated after the variables of the groups have
    been optimised.
    """

    grouping: Grouping
    drawn: Ints

    @property
    def groups_drawn(self) -> Ints:
        return self.drawn

    @cached_property
    def locals(self) -> Collection[str]:
        return {*self.network.locals, *self.grouping.locals}

    @property
    def coupling(self) -> dict[str, int]:
        return self.grouping.coupling

    @property
    def fresh(self) -> dict[str, Ints]:
        observed = [name for name in self.network.observed if name in self.grouping.group]
        return {name: self.grouping.rows(name, self.drawn) for name in observed}

    def groups(self, name: str) -> list[Ints]:
        return [] if name in self.grouping.group else self.network.groups[name]

    @cached_property
    def _pairs(self) -> Pairs:
        """For each edge from a global variable to a grouped table, its (element, row) pairs."""
        return Pairs(
            {table: self.grouping.rows(table, self.drawn) for table in self.grouping.group}
        )

    def _is_drawn(self, edge: Edge) -> bool:
        """Whether an edge leads from a global variable to a grouped table."""
        group = self.grouping.group
        return edge.parent.name not in group and edge.conditional.variable.name in group

    def rows(self, edge: Edge, elements: Ints) -> Reading:
        if not self._is_drawn(edge):
            return Reading(*edge.rows_of(elements), np.ones(len(elements)))
        scale = self.scale(edge.parent.name, elements)
        return Reading(*among(self._pairs[edge], elements), scale)

    def drawn_rows(self, table: str) -> Ints | None:
        if table not in self.grouping.group:
            return None
        if table not in self.memory:  # sorted once: all updaters ask for them
            self.memory[table] = self.grouping.rows(table, self.drawn)
        found: Ints = self.memory[table]
        return found

    def scale(self, name: str, elements: Ints) -> Array:
        return np.full(len(elements), self.grouping.count / len(self.drawn))

    def children(self, name: str, elements: Ints) -> Ints:
        """Return the number of groups, for elements with children in groups, which are drawn."""
        return self._counts(name, elements, self.grouping.count)

    def read(self, name: str, elements: Ints) -> Ints:
        return self._counts(name, elements, len(self.drawn))

    def _counts(self, name: str, elements: Ints, groups: int) -> Ints:
        drawn = [e.children[elements] for e in self.network.edges[name] if self._is_drawn(e)]
        sampled = np.any(drawn, axis=0) if drawn else False
        return np.where(sampled, groups, self.network.child_counts[name][elements])


@dataclass(frozen=True, eq=False)
class DrawnSubchains(DrawnGroups):
    """Some subchains of the rows of long sequences, each with a buffer on either side.

    Every row, and with it the transition that leads to it, is in one subchain: so the messages of S
    of D subchains to a parameter of transitions or emissions, scaled by D / S, have no bias. First
    rows of sequences are few, and all of them are read.

    Attributes
    ----------
    tolerance
        What the state at the outer end of a buffer may tell about that at its inner end, in nats.
    """

    tolerance: float = 0.0

    def _is_drawn(self, edge: Edge) -> bool:
        first = isinstance(edge, ChainEdge) and not edge.transitional
        return not first and super()._is_drawn(edge)
