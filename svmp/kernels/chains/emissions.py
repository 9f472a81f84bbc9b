"""Emissions of a chain of states: Normals and MvNormals, by the loops of mixtures.

The loops give the chain E[log p(x_r | state)] of each row, and its parameters the sums over rows of
q(state), times 1, x - m and its square (kernels/categorical/mixture.py): nothing of (rows, states)
is made for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from svmp.families.family import Array
from svmp.kernels.categorical.mixture_sums import Mixtures, MixtureSums, chooses_normals
from svmp.network.beliefs import Beliefs
from svmp.network.chains.chain import Chain
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network


@dataclass(frozen=True, eq=False)
class Emissions:
    """A table of Normals whose components a chain chooses.

    Attributes
    ----------
    choosing
        The edge from the chain to the table.
    loops
        The loops of mixtures for this table.
    """

    choosing: Edge
    loops: Mixtures

    @classmethod
    def of(cls, network: Network, table: str) -> Emissions | None:
        """Return the loops of an observed table, or None where they do not serve it."""
        given = network.variable(table).conditional
        if given.selector is None or len(given.selector.variables) != 1:
            return None
        z = network.hidden.get(given.selector.variables[0].name)
        if z is None or not isinstance(z.conditional, Chain):
            return None
        edge = next(e for e in network.edges[z.name] if e.conditional is given)
        whole = len(given.variable.rows) == given.variable.size
        if not chooses_normals(z, edge) or not (whole or given.variable.size == z.size):
            return None
        return cls(edge, Mixtures(z, (edge,)))

    @property
    def chain(self) -> str:
        """Name of the chain."""
        return self.choosing.parent.name

    @property
    def one_by_row(self) -> bool:
        """Whether the table has one value for each row of the chain."""
        return self.choosing.conditional.variable.size == self.choosing.parent.size

    @cached_property
    def rows(self) -> Ints:
        """The rows of the chain that have observed values."""
        if self.one_by_row:
            return self.choosing.conditional.variable.rows
        return np.arange(self.choosing.parent.size)

    @cached_property
    def _observed(self) -> np.ndarray:
        observed = np.zeros(self.choosing.parent.size, dtype=bool)
        observed[self.rows] = True
        return observed

    def logits(self, q: Beliefs, rows: Ints) -> tuple[Array, int]:
        """Return E[log p(x_r | state)] of some rows of the chain, and the number of rows read."""
        out = np.zeros((len(rows), self.choosing.conditional.components))
        places = np.flatnonzero(self._observed[rows])
        self.loops.add_logits(q, rows[places], places, out)
        table = self.choosing.conditional.variable
        return out, len(places) * (table.size // max(self.choosing.parent.size, 1))

    def sums(self, q: Beliefs, rows: Ints | None) -> MixtureSums:
        """Return the sums over some rows of the chain, or over all."""
        some = self.rows if rows is None else rows[self._observed[rows]]
        return self.loops.sums_of(q, some, q.moments[self.chain])

    def likelihood(self, q: Beliefs) -> float:
        """Return the term of the table in the bound."""
        return self.loops.likelihood(q, self.sums(q, None))
