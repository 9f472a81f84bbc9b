"""Local Categoricals that are not stored: q(z_r) is computed when it is read.

At any time q(z_r) is the optimum given the others,

    q(z_r = k) = softmax over k of E[log p(z_r = k)] + E[log p(y_r | z_r = k)],

and its messages are sums over rows, which compiled loops compute in one pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.variable import Variable


@dataclass(frozen=True, eq=False)
class ImplicitCategorical(ABC):
    """The loops of one such variable.

    Attributes
    ----------
    variable, edges
        The variable, and the edges to the tables whose rows it chooses components for.
    """

    variable: Variable
    edges: tuple[Edge, ...]

    @property
    def tables(self) -> list[str]:
        """The tables whose messages come from the sums: its own, and its children's."""
        return [self.variable.name, *(e.conditional.variable.name for e in self.edges)]

    @abstractmethod
    def sums(self, q: Beliefs, elements: Ints | None) -> Any:
        """Return the sums over the rows of some elements, or of all, from which messages follow."""

    @abstractmethod
    def message(self, q: Beliefs, sums: Any, edge: Edge, elements: Ints) -> Array:
        """Return for some elements of a parent the sum of the messages of the rows summed over."""

    @abstractmethod
    def reads(self, sums: Any, edge: Edge, elements: Ints) -> int:
        """Return the number of rows that some elements of a parent read for their message."""

    @abstractmethod
    def bound_terms(self, q: Beliefs, sums: Any) -> dict[str, float]:
        """Return the bound terms of its tables, from the sums over all rows."""

    def natural(self, q: Beliefs, elements: Ints) -> Array:
        """Return the natural parameters of some elements."""
        total = np.array(self.variable.conditional.to_child(q, elements))
        for edge in self.edges:
            total += edge.message(q, elements, *edge.rows_of(elements))
        return total

    def moments(self, q: Beliefs, elements: Ints) -> Array:
        """Return the probabilities of some elements."""
        return np.asarray(softmax(self.natural(q, elements), axis=-1))


def blocks(starts: Ints, most: int = 256) -> Ints:
    """Cut the lines of a sparse matrix into blocks with about the same number of entries.

    >>> blocks(np.array([0, 5, 6, 7, 8]), 2)
    array([0, 1, 4])
    """
    wanted = np.linspace(0, starts[-1], most + 1)[1:-1]
    inner = np.searchsorted(starts, wanted, side="left")
    return np.unique(np.concatenate([[0], inner, [len(starts) - 1]]))
