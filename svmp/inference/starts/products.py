"""Tables whose mean is one product of two hidden variables, and the start of those variables.

    y_e ~ Normal(sum_k u_mk v_nk + constant, tau),        u and v with prior means of 0.

Near the prior such a product is 0 in every row, so that the first sweeps of a factorization would
only learn the mean of the data. So the root of that mean is added to the start of the first of the
K factors, of all elements of each variable. Other products start at fits (fitted_products.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from svmp import factors
from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.means.linear import LinearTerm, dimension
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.reader import Reader
from svmp.network.variable import Variable

PAIR = 2
"""Variables in a product."""


@dataclass(frozen=True, eq=False)
class Product:
    """A product of two variables in the mean of a table.

    Attributes
    ----------
    table
        The observed variable.
    operands
        The names of the variables in the product, in its order.
    width
        Number K of factors: an operand has an MvNormal with K entries, or K Normals, for each key.
    constant
        What the mean has besides the product.
    """

    table: Variable
    operands: tuple[str, str]
    width: int
    constant: float

    @property
    def level(self) -> float:
        """Mean of the observed values that the product has to explain; 0 if they vary more."""
        values = self.table.values
        level = float(values.mean(dtype=np.float64)) - self.constant
        return level if abs(level) >= float(values.std(dtype=np.float64)) else 0.0

    def starts(self) -> dict[str, float]:
        """Return by operand what to add to its first factor; the last operand has the sign."""
        root, (first, last) = abs(self.level) ** (1 / PAIR), self.operands
        return {first: root, last: float(np.copysign(root, self.level))}


def products(network: Network) -> list[Product]:
    """Return the products of two variables that are the whole mean of an observed Normal."""
    found = []
    for variable in network.observed.values():
        given = variable.conditional
        if given.linear is None or given.selector is not None:
            continue
        terms = [t for t in given.linear.terms if not is_number(t)]
        if not isinstance(given.factor, factors.Normal) or len(terms) != 1:
            continue
        (term,) = terms
        names = [reader.variable.name for reader in term.readers]
        if len(names) != PAIR or names[0] == names[1]:
            continue
        alone = all(n in network.hidden and len(network.edges[n]) == 1 for n in names)
        alone = alone and not any(
            isinstance(reader.variable.family, PartlyKnown) for reader in term.readers
        )
        if alone and is_product(term):
            constant = sum((t.scale for t in given.linear.terms if is_number(t)), 0.0)
            found.append(Product(variable, (names[0], names[1]), term.scope.inner.size, constant))
    return found


def is_number(term: LinearTerm) -> bool:
    """Return whether a term is the same number in all rows."""
    return not term.readers and not term.constants and term.design is None


def is_product(term: LinearTerm) -> bool:
    """Return whether a term is a sum over one axis of products, without coefficients."""
    axes = term.scope.inner.labels
    plain = term.design is None and not term.constants and term.scale == 1 and len(axes) == 1
    return plain and all(reads_axis(reader, axes[0]) for reader in term.readers)


def width_of(term: LinearTerm) -> int:
    """Return the number of factors of a product of different variables; 0 if it is none.

    It is 1 for a product that is not summed over an axis.
    """
    axes, names = term.scope.inner.labels, [reader.variable.name for reader in term.readers]
    if term.design is not None or not names or len(axes) > 1 or len(set(names)) < len(names):
        return 0
    if not axes:
        return int(all(dimension(reader.variable) == 1 for reader in term.readers))
    return term.scope.inner.size if all(reads_axis(r, axes[0]) for r in term.readers) else 0


def reads_axis(reader: Reader, axis: str) -> bool:
    """Return whether an operand is a vector, or Normals whose last axis is the one summed over."""
    if reader.keyed_by_inner or reader.index[-1:] != (axis,):
        return False
    return reader.carried == (set() if reader.variable.family.gaussian == "vector" else {axis})


def start_at_level(network: Network, q: Beliefs, starts: Mapping[str, float], width: int) -> None:
    """Add numbers to the start of first factors, in place, where the prior means are 0."""
    for name, value in starts.items():
        variable = network.hidden[name]
        size = dimension(variable)
        if value != 0 and not np.any(network.priors(q, name)[:, :size]):
            q.natural[name] = with_first(q.natural[name], size, width, value)
            q.moments[name] = variable.family.moments(q.natural[name])


def with_first(natural: Array, size: int, width: int, value: float) -> Array:
    """Return natural parameters with a number added to the mean of the first of K factors.

    >>> with_first(np.array([[0.2, -1.0], [0.3, -1.0]]), 1, 2, 0.5)
    array([[ 1.2, -1. ],
           [ 0.3, -1. ]])
    """
    found, precision = natural.copy(), -2 * natural[:, size:].reshape(-1, size, size)
    if size == 1:
        found[::width, 0] += precision[::width, 0, 0] * value
    else:
        found[:, :size] += precision[:, :, 0] * value
    return found
