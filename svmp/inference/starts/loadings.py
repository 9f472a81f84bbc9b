"""Tables whose mean has a product C x of a chain of vectors x and of hidden loadings C.

    y_e ~ Normal(sum_k C_nk x_tk + other terms, tau)

Each row e reads one row t of the chain and one line n of C. From `Loadings` a chain gets its start
(vector_chain_start.py), and the linear changes x <- R x, C <- C R^-1 (chain_rotation.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp import factors
from svmp.families.family import Array
from svmp.inference.starts.products import is_number, is_product
from svmp.network.chains.chain import ChainEdge
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.means.linear import LinearTerm, dimension
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.reader import Reader
from svmp.network.variable import Variable

PAIR = 2
"""Variables in the product of loadings and states."""


@dataclass(frozen=True, eq=False)
class Loadings:
    """The loadings of a chain of vectors in one table.

    Attributes
    ----------
    table, variable
        The observed variable, and C.
    chain, reader
        How rows read the chain, and C.
    constant
        What the mean has besides the product; None if it has other variables.
    """

    table: Variable
    variable: Variable
    chain: Reader
    reader: Reader
    constant: float | None

    @property
    def vectors(self) -> bool:
        """Whether each line of C is one MvNormal, and not K Normals."""
        return self.variable.family.gaussian == "vector"

    @property
    def size(self) -> int:
        """Length K of the states."""
        return self.chain.variable.shape[-1]

    def cells(self) -> tuple[Ints, Ints, Array]:
        """Return the row of the chain, the line of C and the value of each observed row."""
        rows = self.table.rows
        none = np.zeros_like(rows)
        line = self.reader.element(rows, none)
        values = np.asarray(self.table.values, dtype=np.float64).reshape(-1)
        return self.chain.element(rows, none), line // self._stride, values

    @property
    def _stride(self) -> int:
        return 1 if self.vectors else self.size

    @property
    def lines(self) -> int:
        """Number of lines of C."""
        return self.variable.size // self._stride


def loadings_of(network: Network, name: str) -> list[Loadings] | None:
    """Return the loadings of all tables that read a chain; None if one reads it another way."""
    found = [_loadings(network, edge) for edge in network.edges[name]]
    complete = [one for one in found if one is not None]
    names = [one.variable.name for one in complete]
    if not complete or len(complete) < len(found) or len(set(names)) < len(names):
        return None
    return complete


def _loadings(network: Network, edge: Edge) -> Loadings | None:
    given = edge.conditional
    plain = given.selector is None and isinstance(given.factor, factors.Normal)
    if isinstance(edge, ChainEdge) or not plain or given.linear is None or given.variable.hidden:
        return None
    reading = [t for t in given.linear.terms if t.reader(edge.parent) is not None]
    if len(reading) != 1 or not _is_pair(reading[0]):
        return None
    (other,) = (r for r in reading[0].readers if r.variable is not edge.parent)
    variable = network.hidden.get(other.variable.name)
    alone = variable is not None and len(network.edges[variable.name]) == 1
    if variable is None or not alone or not _is_whole(variable, other):
        return None
    rest = [t for t in given.linear.terms if t is not reading[0]]
    number = sum((t.scale for t in rest if is_number(t)), 0.0)
    constant = number if all(map(is_number, rest)) else None
    reader = reading[0].reader(edge.parent)
    assert reader is not None
    return Loadings(network.observed[given.variable.name], variable, reader, other, constant)


def _is_pair(term: LinearTerm) -> bool:
    return is_product(term) and len(term.readers) == PAIR


def _is_whole(variable: Variable, reader: Reader) -> bool:
    """Return whether the last axis of C is that of the states."""
    known = isinstance(variable.family, PartlyKnown) or variable.name != reader.variable.name
    return not known and dimension(variable) in (1, reader.scope.inner.size)
