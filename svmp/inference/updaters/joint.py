"""Joint updates of the elements in one sum of a mean.

The factors of a user are co-parents of the same ratings. Given all else, the optimal mean of each
(equation (6) of the paper) is linear in the means of the others, so the limit of coordinate ascent
over them is the solution of one small linear system, for which the rows are read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from svmp.families.family import Array, stack
from svmp.inference.methods.draw import Draw
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.plain import PlainUpdater
from svmp.inference.updaters.updater import Change, Updater, blend
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import CHUNK
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.linear import Linear, LinearTerm, dimension
from svmp.network.network import Network


@dataclass(frozen=True, eq=False)
class JointUpdater(Updater):
    """Updates a variable whose elements are read in sums over one axis, each sum jointly.

    Attributes
    ----------
    plain
        The updater of each element given the others.
    elements
        The elements of each sum, (sums, elements).
    """

    plain: PlainUpdater
    edge: Edge
    term: LinearTerm
    elements: Ints
    label = "plain, elements of a sum solved jointly"

    @classmethod
    def of(cls, network: Network, plain: PlainUpdater) -> JointUpdater | None:
        """Return the updater of a variable, or None if its elements are not in one sum."""
        name = plain.name
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
        return cls(plain, edges[0], terms[0], order.reshape(-1, terms[0].scope.inner.size))

    @property
    def names(self) -> tuple[str, ...]:
        return self.plain.names

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        name, width, network = self.plain.name, self.elements.shape[1], self.plain.network
        read = rows.read(name, self.elements[:, 0])
        step = rho(q, name, self.elements[:, 0], read)
        target, accesses = np.empty((*self.elements.shape, 2)), 0
        rows_before = np.cumsum(read) * width * self.edge.conditional.components
        for part in np.split(self.elements, np.flatnonzero(np.diff(rows_before // CHUNK)) + 1):
            sums, count = self.plain.message_sum(q, rows, part.ravel())
            accesses += count
            alone = self.plain.solve(sums, network.prior(q, name, part.ravel()))
            alone = alone.reshape(*part.shape, 2)
            between = self._between(q, rows, part)
            means = q.moments[name][part, 0]
            linear = alone[..., 0] + np.einsum("mkl,ml->mk", between, means)
            precision = -2 * alone[..., 1]
            between[:, np.arange(width), np.arange(width)] = precision
            means = np.linalg.solve(between, linear[..., None])[..., 0]
            target[np.searchsorted(self.elements[:, 0], part[:, 0])] = stack(
                precision * means, -0.5 * precision
            )
        natural = blend(q.natural[name][self.elements], target, step)
        yield Change(name, self.elements.ravel(), natural.reshape(-1, 2), accesses, step, read)

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        return self.plain.bound_term(q)

    def _between(self, q: Beliefs, rows: Draw, part: Ints) -> Array:
        """Return the decrease of the linear message to each element with the mean of another."""
        conditional, variable = self.edge.conditional, self.edge.parent
        owner, which, scale = rows.rows(self.edge, part[:, 0])
        weight = -2 * conditional.to_slot(q, conditional.slot_of(variable)[0], which)[:, 1]
        reader = self.term.reader(variable)
        assert reader is not None
        slopes = []
        for k in range(part.shape[1]):
            at = self.term.touching(reader, part[owner, k], which)
            slopes.append(self.term.mean(q, at, skip=variable))
        between = np.zeros((*part.shape, part.shape[1]))
        for k, left in enumerate(slopes):
            for j, right in enumerate(slopes):
                if j != k:
                    between[:, k, j] = np.bincount(owner, weight * left * right, len(part))
        return between * scale[:, None, None]
