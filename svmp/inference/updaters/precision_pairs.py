"""Normal-Gamma and Normal-Wishart blocks: q of a joint block given the precision of all its rows.

Where every row that a block theta is in has a precision that is a known multiple of one Gamma tau
(or Wishart), the posterior of theta given tau is Normal with the precision tau P_0, and q can be

    q(theta, tau) = q(tau) Normal(theta; m, (tau P_0)^-1),       P_0 = sum over rows of c X^T X,

as in conjugate linear regression. The optimal q(tau) has the messages of all rows at theta = m,
without the variance of theta, times tau^(-d/2) for the d unknowns of theta: what integrating over
theta leaves. During a run q(theta) is kept at E[tau] P_0, since

    E[tau (y - x theta)^2] = E[tau] ((y - x m)^2 + x (E[tau] P_0)^-1 x^T),

so that every row is exact. The entropy of theta given tau is larger than that of this Normal by
d (log E[tau] - E[log tau]) / 2. A Wishart has vectors in place of unknowns, and log determinants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from svmp.families.family import Array
from svmp.inference.methods.draw import AllRows
from svmp.inference.updaters.joint_rows import BlockRows
from svmp.inference.updaters.plain import PlainUpdater
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.joint_normal import Layout
from svmp.network.matrices import Diagonal, Multiple
from svmp.network.network import Network
from svmp.network.slot import Fixed, Product, Single, Slot
from svmp.network.variable import Variable


@dataclass(frozen=True, eq=False)
class PrecisionPair:
    """The precision of all rows of a joint block.

    Attributes
    ----------
    variable
        A Gamma or a Wishart.
    classes
        The element of it that each unknown belongs to.
    counts
        Number of unknowns, or of vectors, of each of its elements that count in the bound.
    """

    network: Network
    variable: Variable
    classes: Ints
    counts: Ints

    @property
    def name(self) -> str:
        """Name of the precision."""
        return self.variable.name

    def entropy(self, q: Beliefs) -> float:
        """Return how much larger the entropy of the block is than with the expected precision."""
        moments, natural = q.moments[self.name], q.natural[self.name]
        if self.variable.family.precision == "number":
            log_mean = np.log(moments[:, 0])
        else:
            log_mean = np.linalg.slogdet(self.variable.family.mean(natural))[1]
        return 0.5 * float(self.counts @ (log_mean - moments[:, -1]))

    def solve(self, q: Beliefs, layout: Layout) -> Array:
        """Return the optimal natural parameters of the precision, with the block integrated out.

        The means of the block in q are optimal.
        """
        rest = tuple(block for block in q.blocks if block.layout.names != layout.names)
        point = replace(q, moments=dict(q.moments), means={}, row_moments={}, blocks=rest)
        for name in layout.names:
            family = self.network.hidden[name].family
            point.moments[name] = family.statistics(family.mean(q.natural[name]))
        elements = np.arange(self.variable.size)
        updater = PlainUpdater.of(self.network, self.name)
        sums, _ = updater.message_sum(point, AllRows(self.network), elements)
        found = np.array(self.network.priors(point, self.name) + sums)
        found[:, -1] -= 0.5 * self.counts
        return found


def pair_of(
    network: Network, layout: Layout, tables: Sequence[BlockRows], variable: Variable
) -> PrecisionPair | str:
    """Return the pair of a block and a precision, or the reason why there is none."""
    wishart = variable.family.precision == "matrix"
    classes = np.full(layout.size, -1, dtype=np.int64)
    for table in tables:
        name, tau = table.conditional.variable.name, table.conditional.slots.get("tau")
        if tau is None or [v.name for v in tau.variables if v.hidden] != [variable.name]:
            return (
                f"the precision of '{name}' is not a known multiple of '{variable.name}', as that "
                "of every row of the block must be"
            )
        count = table.conditional.variable.size * table.conditional.components
        element = element_of(tau, np.arange(count), variable)
        mean = table.conditional.slots[table.slot]
        if element is None or (wishart and not isinstance(mean, Single | Fixed)):
            return f"the rows of '{name}' have no closed form with '{variable.name}'"
        lines = table.lines.tocoo()
        row, column = lines.coords
        own = element[row // table.dimension]
        classes[column] = np.where(classes[column] < 0, own, classes[column])
        if (classes[column] != own).any():
            return f"rows with different elements of '{variable.name}' share a variable"
    return PrecisionPair(
        network, variable, classes, class_counts(network, layout, classes, variable)
    )


def class_counts(network: Network, layout: Layout, classes: Ints, variable: Variable) -> Ints:
    """Return the number of unknowns, or of vectors for a Wishart, of each precision."""
    counts = np.zeros(variable.size, dtype=np.int64)
    for name in layout.names:
        places = layout.places(name)[network.rows(network.hidden[name])]
        each = places[:, :1] if variable.family.precision == "matrix" else places
        counts += np.bincount(classes[each].ravel(), minlength=variable.size)
    return counts


def element_of(tau: Slot, rows: Ints, variable: Variable) -> Ints | None:
    """Return the element of a precision that each row reads; None if it reads several."""
    if isinstance(tau, Diagonal):
        return np.zeros(len(rows), dtype=np.int64) if variable.size == 1 else None
    if isinstance(tau, Multiple):
        tau = tau.matrix if any(v is variable for v in tau.matrix.variables) else tau.factor
    readers = [tau.reader] if isinstance(tau, Single) else []
    if isinstance(tau, Product):
        readers = [r for r in tau.readers if r.variable is variable]
    if len(readers) != 1:
        return None
    return np.array(np.broadcast_to(readers[0].element(rows, rows), rows.shape))
