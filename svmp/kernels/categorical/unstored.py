"""A Categorical of the rows that no array holds: q(z_r) is worked out where it is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs, Settled
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.variable import Variable


@dataclass(frozen=True, eq=False)
class Unstored(Settled):
    """The variable, and the edges to the tables whose rows it chooses components for."""

    variable: Variable
    edges: tuple[Edge, ...]

    @property
    def tables(self) -> list[str]:
        return [self.variable.name, *(e.conditional.variable.name for e in self.edges)]

    def natural(self, q: Beliefs, elements: Ints) -> Array:
        total = np.array(self.variable.conditional.to_child(q, elements))
        for edge in self.edges:
            total += edge.message(q, elements, *edge.rows_of(elements))
        return total

    def moments(self, q: Beliefs, elements: Ints) -> Array:
        return np.asarray(softmax(self.natural(q, elements), axis=-1))


def blocks(starts: Ints, most: int = 256) -> Ints:
    """Cut lines into a fixed number of blocks with about as many entries each.

    >>> blocks(np.array([0, 5, 6, 7, 8]), 2)
    array([0, 1, 4])
    """
    wanted = np.linspace(0, starts[-1], most + 1)[1:-1]
    inner = np.searchsorted(starts, wanted, side="left")
    return np.unique(np.concatenate([[0], inner, [len(starts) - 1]]))
