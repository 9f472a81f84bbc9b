"""Mixtures of counts, categories and waiting times: sums over rows by products of matrices.

The statistics phi(x_r) of all cells of a row are one line of a matrix, and with it

    log q(z_r = k) = E[log w_k] + sum over cells d of phi(x_rd) . E[eta_dk] - E[A(eta_dk)] + c_r
    sums of component k = sum_r q(z_r = k) phi(x_r)

for z_r ~ Categorical(w), with one w for all rows, that chooses among densities whose parameters
depend on the component and the cell and not on the row. A message to a parameter is linear in the
statistics, so that the sum over rows is their expected number times the message of their mean.
q(z) is not stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from svmp import factors
from svmp.families.family import Array
from svmp.kernels.categorical.updater import ImplicitCategorical
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.means.row_sums import sum_of_products, times_matrix
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.slot import Fixed, Single
from svmp.network.variable import Variable

SERVED = (
    factors.Bernoulli,
    factors.Binomial,
    factors.Categorical,
    factors.Exponential,
    factors.Gamma,
    factors.Multinomial,
    factors.Poisson,
)
BLOCK = 4096
"""Rows that are read at a time."""
MOST = 1 << 25
"""Most statistics that are written out."""


class ShareSums(NamedTuple):
    """Sums over rows of their shares in each component.

    Attributes
    ----------
    rows, observed
        Number of rows of the Categorical, and of their observed values in each cell.
    total, counts
        Expected number of rows of each component, and of observed values, (components, cells).
    statistics
        Sums of statistics, (components, cells, length of phi).
    evidence
        Sum of the logarithms of the normalisers of q(z_r).
    """

    rows: int
    observed: Ints
    total: Array
    counts: Array
    statistics: Array
    evidence: float


@dataclass(frozen=True, eq=False)
class MixtureProducts(ImplicitCategorical):
    """A Categorical whose sums are products of matrices."""

    @classmethod
    def of(cls, network: Network, name: str) -> MixtureProducts | None:
        """Return the plan for a hidden variable, or None where it is not served."""
        z, edges = network.hidden[name], network.edges[name]
        if isinstance(z.family, PartlyKnown) or z.conditional.selector is not None:
            return None
        if len(edges) != 1 or not edges[0].choosing or not is_served(z, edges[0]):
            return None
        weights = z.conditional.slots["p"]
        shared = isinstance(weights, Single | Fixed) and not weights.varies
        return cls(z, tuple(edges)) if shared else None

    @property
    def _table(self) -> Conditional:
        return self.edges[0].conditional

    @property
    def _cells(self) -> Ints:
        return np.arange(self._table.variable.size // self.variable.size)

    @cached_property
    def _subrows(self) -> Ints:
        """The sub-rows of one row: all others have the same parameters."""
        return self._table.subrows(self._cells)

    @cached_property
    def _statistics(self) -> Any:
        """The statistics of all cells of each row, a line of a matrix; 0 where they are missing."""
        table, rows = self._table, self._table.variable.rows
        row, cell = np.divmod(rows, len(self._cells))
        size, lines = table.family.size, self.variable.size
        shape = (lines, len(self._cells) * size)
        if isinstance(table.factor, factors.Categorical):
            observed = table.variable.observed
            assert observed is not None
            place = cell * size + observed[rows].astype(np.int64)
            starts = np.searchsorted(row, np.arange(lines + 1))
            return sparse.csr_array((np.ones(len(rows)), place, starts), shape=shape)
        found = np.zeros((table.variable.size, size))
        found[rows] = table.child(Beliefs(), rows)
        return found.reshape(shape)

    @cached_property
    def _present(self) -> Array | None:
        """1 where a cell of a row is observed, else 0; None if all are."""
        variable = self._table.variable
        if len(variable.rows) == variable.size:
            return None
        found = np.zeros(variable.size)
        found[variable.rows] = 1.0
        return found.reshape(self.variable.size, -1)

    @cached_property
    def _base(self) -> float:
        """The sum of the logarithms of the base measure."""
        variable = self._table.variable
        assert variable.observed is not None
        rows = variable.rows
        return float(variable.family.at(rows).log_base(variable.observed[rows]).sum())

    def _log_densities(self, q: Beliefs) -> tuple[Array, Array]:
        """Return E[eta] (cells, components, length) and E[A(eta)] (cells, components)."""
        given, shape = self._table.given(q, self._subrows), (len(self._cells), -1)
        eta = self._table.factor.to_child(given)
        eta = np.broadcast_to(eta, (len(self._subrows), eta.shape[-1]))
        normaliser = self._table.factor.log_normaliser(given)
        normaliser = np.broadcast_to(normaliser, len(self._subrows))
        return eta.reshape(*shape, eta.shape[-1]), normaliser.reshape(shape)

    def sums(self, q: Beliefs, elements: Ints | None) -> ShareSums:
        eta, normaliser = self._log_densities(q)
        cells, count, size = eta.shape
        slope = np.ascontiguousarray(eta.swapaxes(1, 2)).reshape(cells * size, count)
        weight = self.variable.conditional.to_child(q, np.zeros(1, dtype=np.int64))[0]
        statistics, present = self._statistics, self._present
        rows = self.variable.size if elements is None else len(elements)
        total, values, evidence = np.zeros(count), np.zeros((cells * size, count)), 0.0
        number, observed = np.zeros((cells, count)), np.full(cells, rows)
        if present is not None:
            read = present if elements is None else present[elements]
            observed = read.sum(axis=0).astype(np.int64)
        for start in range(0, rows, BLOCK):
            some: Any = slice(start, min(start + BLOCK, rows))
            some = some if elements is None else elements[some]
            part = statistics[some]
            logits = part @ slope if sparse.issparse(part) else times_matrix(part, slope)
            if present is None:
                logits += weight - normaliser.sum(axis=0)
            else:
                logits += weight - times_matrix(present[some], normaliser)
            top = logits.max(axis=1, keepdims=True)
            logits -= top
            share = np.exp(logits, out=logits)
            scale = share.sum(axis=1, keepdims=True)
            share /= scale
            evidence += float(np.log(scale).sum() + top.sum())
            total += share.sum(axis=0)
            values += part.T @ share if sparse.issparse(part) else sum_of_products(part, share)
            if present is not None:
                number += sum_of_products(present[some], share)
        number = np.broadcast_to(total, (cells, count)) if present is None else number
        found = values.reshape(cells, size, count).transpose(2, 0, 1)
        return ShareSums(rows, observed, total, number.T, found, evidence)

    def message(self, q: Beliefs, sums: ShareSums, edge: Edge, elements: Ints) -> Array:
        if edge.conditional is self.variable.conditional:
            return np.repeat(sums.total[None, :], len(elements), axis=0)
        table, parent = self._table, edge.parent
        name, slot = table.slot_of(parent)
        count = sums.counts.T.reshape(-1)
        values = sums.statistics.swapaxes(0, 1).reshape(len(count), -1)
        mean = values / np.where(count > 0, count, 1.0)[:, None]
        said = table.factor.to_parent(name, mean, table.given(q, self._subrows))
        said = count[:, None] * np.broadcast_to(said, (len(count), said.shape[-1]))
        found, subrows = edge.pairs_in(self._cells)
        out = np.zeros((parent.size, parent.family.size))
        np.add.at(out, found, slot.message(q, parent, found, subrows, said[subrows]))
        return out[elements]

    def reads(self, sums: ShareSums, edge: Edge, elements: Ints) -> int:
        if edge.conditional is self.variable.conditional:
            return sums.rows * len(elements)
        found, subrows = edge.pairs_in(self._cells)
        read = sums.observed[subrows // self._table.components]
        times = np.bincount(found, read, edge.parent.size)[elements]
        return int(times.sum()) // edge.fan

    def bound_terms(self, q: Beliefs, sums: ShareSums) -> dict[str, float]:
        eta, normaliser = self._log_densities(q)
        likelihood = float(np.vdot(eta.swapaxes(0, 1), sums.statistics))
        likelihood -= float(np.vdot(normaliser.T, sums.counts))
        own, table = self.tables
        return {own: sums.evidence - likelihood, table: likelihood + self._base}


def is_served(z: Variable, edge: Edge) -> bool:
    """Return whether all rows of a Categorical have the same parameters, of a family served."""
    table = edge.conditional
    x, chosen, own = table.variable, table.selector, set(z.plate.labels)
    if not isinstance(table.factor, SERVED) or x.observed is None or not x.size:
        return False
    direct = isinstance(chosen, Single) and chosen.reader.index == z.plate.labels
    first = x.plate.labels[: len(z.plate.labels)] == z.plate.labels
    arrays = [] if isinstance(table.factor, factors.Multinomial) else table.constants.values()
    varying = any(own & slot.axes for slot in table.slots.values())
    varying |= any(own & {str(axis) for axis in array.axes} for array in arrays)
    few = x.size * table.family.size <= MOST or isinstance(table.factor, factors.Categorical)
    return direct and first and not varying and few and bool(edge.children.all())
