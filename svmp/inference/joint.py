"""Elements that stand in one sum of a mean, settled together.

The factors of a user are co-parents of the same ratings. Given all else, each of their means is
linear in the others, so where coordinate ascent over them would come to rest is the solution of one
small linear system, and the rows that make it up are read once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from svmp.families.family import Array, stack
from svmp.inference.messages import Pass, message_sum
from svmp.inference.rows import Draw
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import CHUNK
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.linear import Linear, LinearTerm, dimension
from svmp.network.network import Network

if TYPE_CHECKING:
    from svmp.inference.engine import Rule


@dataclass(frozen=True, eq=False)
class Block:
    """A variable whose elements are read in sums over one axis: each line of `elements` is one."""

    network: Network
    edge: Edge
    term: LinearTerm
    elements: Ints

    @classmethod
    def of(cls, network: Network, name: str) -> Block | None:
        """Return the sums in which a variable stands, or None where it does so in another way."""
        variable, edges = network.hidden[name], network.edges[name]
        slot = edges[0].slot if len(edges) == 1 and not edges[0].choosing else None
        if not isinstance(slot, Linear) or dimension(variable) > 1 or name in network.locals:
            return None
        terms = [t for t in slot.terms if t.reader(variable) is not None]
        if len(terms) > 1 or terms[0].design is not None or not terms[0].separable:
            return None
        reader = terms[0].reader(variable)
        if reader is None or not reader.carried or reader.keyed_by_inner:
            return None
        every = np.arange(variable.size)
        order = np.lexsort((reader.inner_of(every), reader.base_of(every)))
        return cls(network, edges[0], terms[0], order.reshape(-1, terms[0].scope.inner.size))

    def proposal(self, q: Beliefs, draw: Draw, rule: Rule, done: Pass) -> tuple[Ints, Array]:
        """Return every element, and its natural parameter once all have come to rest."""
        name, width = self.edge.parent.name, self.elements.shape[1]
        read = draw.read(name, self.elements[:, 0])
        rho = rule(name, self.elements[:, 0], read)
        done.note(False, rho, read)
        settled = np.empty((*self.elements.shape, 2))
        rows_before = np.cumsum(read) * width * self.edge.conditional.components
        for part in np.split(self.elements, np.flatnonzero(np.diff(rows_before // CHUNK)) + 1):
            alone = message_sum(self.network, q, draw, name, part.ravel(), done)
            alone = alone.reshape(*part.shape, 2)
            between = self._between(q, draw, part)
            means = q.moments[name][part, 0]
            linear = alone[..., 0] + np.einsum("mkl,ml->mk", between, means)
            precision = -2 * alone[..., 1]
            between[:, np.arange(width), np.arange(width)] = precision
            means = np.linalg.solve(between, linear[..., None])[..., 0]
            settled[np.searchsorted(self.elements[:, 0], part[:, 0])] = stack(
                precision * means, -0.5 * precision
            )
        natural = q.natural[name][self.elements]
        natural = (1 - rho)[:, None, None] * natural + rho[:, None, None] * settled
        return self.elements.ravel(), natural.reshape(-1, 2)

    def _between(self, q: Beliefs, draw: Draw, part: Ints) -> Array:
        """Return by how much the linear message to each element falls with the mean of another."""
        conditional, variable = self.edge.conditional, self.edge.parent
        owner, rows, scale = draw.rows(self.edge, part[:, 0])
        weight = -2 * conditional.to_slot(q, conditional.slot_of(variable)[0], rows)[:, 1]
        reader = self.term.reader(variable)
        assert reader is not None
        slopes = []
        for k in range(part.shape[1]):
            at = self.term.touching(reader, part[owner, k], rows)
            slopes.append(self.term.mean(q, at, skip=variable))
        between = np.zeros((*part.shape, part.shape[1]))
        for k, left in enumerate(slopes):
            for j, right in enumerate(slopes):
                if j != k:
                    between[:, k, j] = np.bincount(owner, weight * left * right, len(part))
        return between * scale[:, None, None]
