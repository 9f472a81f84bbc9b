"""The plain updater: lambda_i_temp as the prior's message plus the sum of the messages of the rows.

It serves every variable, and is the reference that each compiled updater is compared with.

The rows of a convex bound send tangents. Their points of contact are chosen before a variable is
updated, and fixed while its elements are updated one after the other. Each update raises the
tangents, so that the bound does not fall.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np

from svmp.families.family import Array
from svmp.inference.methods.draw import ONE, Draw
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.solver import PlainSolver, Solver
from svmp.inference.updaters.updater import Change, SummingUpdater, Term, blend
from svmp.network.beliefs import Beliefs
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network

Tangents = Mapping[str, Array]
"""By table of a convex bound, the moments of its parameter at the points of contact."""
NONE: Tangents = MappingProxyType({})


class MessageSum(NamedTuple):
    """The sum of the messages of the rows drawn to each element.

    Attributes
    ----------
    total
        The sum, of the rows as they are.
    scale
        N_i / |rows_i| of each element, or one number for all.
    accesses
        Number of rows read.
    """

    total: Array
    scale: Array
    accesses: int

    @property
    def scaled(self) -> Array:
        """The sum as if all rows had been read."""
        return self.total if self.scale is ONE else self.scale[:, None] * self.total


class Messages(Protocol):
    """The messages of one table to the elements of a variable."""

    def __call__(self, q: Beliefs, rows: Draw, elements: Ints, tangents: Tangents) -> MessageSum:
        """Return the scaled sum of the messages of the rows drawn to each element."""
        ...


@dataclass(frozen=True, eq=False)
class RowMessages(Messages):
    """Messages computed row by row, or for each kind of rows that have the same parameters."""

    edge: Edge

    def __call__(self, q: Beliefs, rows: Draw, elements: Ints, tangents: Tangents) -> MessageSum:
        edge, table = self.edge, self.edge.conditional.variable.name
        given = edge.conditional
        if rows.reads_all(table):
            pooled = given.pools_under(q) or given.summarised
            found = edge.pooled_message(q, elements) if pooled else edge.table_message(q, elements)
            if found is not None:
                place = rows.network.place(edge.parent.name, elements)
                return MessageSum(found, ONE, int(edge.children[place].sum()))
        owner, which, scale = rows.rows(edge, elements)
        message = edge.message(q, elements, owner, which, tangents.get(table))
        return MessageSum(message, scale, len(which) // edge.fan)


@dataclass(frozen=True, eq=False)
class PlainUpdater(SummingUpdater):
    """Updates the elements of one variable, in sets that have no row in common.

    Attributes
    ----------
    messages
        The messages of each table that depends on the variable.
    term
        Its term in the bound.
    """

    network: Network
    name: str
    messages: tuple[Messages, ...]
    term: Term

    @classmethod
    def of(cls, network: Network, name: str) -> PlainUpdater:
        """Return an updater that computes all messages row by row."""
        edges = tuple(RowMessages(edge) for edge in network.edges[name])
        return cls(network, name, edges, lambda q: network.bound_term(q, name))

    @property
    def label(self) -> str:  # type: ignore[override]
        """What it is, in a few words."""
        rows = any(isinstance(messages, RowMessages) for messages in self.messages)
        return "plain" if rows or not self.messages else "compiled sums over rows"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def solves_together(self) -> bool:
        return self.name not in self.network.locals and len(self.network.groups[self.name]) == 1

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        groups = rows.groups(self.name)
        tangents = self.tangents(q, rows, groups)
        local = self.name in rows.locals
        for elements in groups:
            sums, accesses = self.message_sum(q, rows, elements, tangents)
            target = self.network.prior(q, self.name, elements) + sums
            read = rows.read(self.name, elements)
            step = rho(q, self.name, elements, read, target)
            old = q.natural[self.name][self.network.place(self.name, elements)]
            natural = blend(old, target, step)
            noted = (None, None) if local else (step, read)
            yield Change(self.name, elements, natural, accesses, *noted)

    def message_sum(
        self, q: Beliefs, rows: Draw, elements: Ints, tangents: Tangents = NONE
    ) -> tuple[Array, int]:
        """Return the scaled sum of the messages to some elements, and the number of rows read."""
        total = np.zeros((len(elements), self.network.hidden[self.name].family.size))
        accesses = 0
        for messages in self.messages:
            found = messages(q, rows, elements, tangents)
            total += found.scaled
            accesses += found.accesses
        return total, accesses

    @property
    def solver(self) -> Solver:
        return PlainSolver.of(self.name, self.network.hidden[self.name].family.size)

    def sums(self, q: Beliefs, rows: Draw, elements: Ints | None = None) -> Array:
        """Return the summed messages of the rows drawn to each element, or to some elements.

        Elements that share rows must be updated in turn, each set of `network.groups` from sums
        that are made after the one before. The tangents of convex bounds are those at q.
        """
        if elements is None:
            elements = np.arange(self.network.hidden[self.name].size)
        total = np.zeros((len(elements), self.network.hidden[self.name].family.size))
        for messages in self.messages:
            total += messages(q, rows, elements, NONE).total
        return total

    def tangents(self, q: Beliefs, rows: Draw, groups: list[Ints]) -> dict[str, Array]:
        """Return the points of contact of convex bounds, if some elements share rows."""
        if len(groups) < 2:
            return {}
        found = {}
        for edge in self.network.edges[self.name]:
            conditional, table = edge.conditional, edge.conditional.variable
            if not conditional.factor.convex or edge.choosing:
                continue
            read = np.unique(np.concatenate([rows.rows(edge, some).rows for some in groups]))
            slot, _ = conditional.slot_of(edge.parent)
            moments = np.zeros((table.size * conditional.components, 2))
            step = conditional.chunk(2)
            for start in range(0, len(read), step):
                part = read[start : start + step]
                moments[part] = conditional.parameter(q, slot, part)
            found[table.name] = moments
        return found

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        return {self.name: self.term(q)}
