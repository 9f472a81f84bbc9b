"""The rows that a joint block is in, as lines of coefficients.

The residual of a row is linear in the unknowns: r = c - X theta. A line of X has the coefficients
of the unknowns in the mean of the row, and -1 for its child if that is in the block too. A row of
vectors has a line for each entry. With w the precision of a row, or its precision matrix, the rows
of a table add X^T w X to the precision of the block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from svmp import families
from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import CHUNK, Conditional
from svmp.network.grid import Ints, ragged
from svmp.network.joint_normal import CovarianceLines, CovariancePairs, Layout, RowCovariances
from svmp.network.means.linear import Linear, LinearTerm
from svmp.network.means.vector_mean import VectorMean
from svmp.network.network import Network
from svmp.network.slot import Single

WIDE = 24
"""Number of unknowns in a row from which products of dense matrices are faster than pairs."""
FAR = 1e7
"""Largest mean of a row in its standard deviations: E[mu^2] then has two digits of the variance."""
MOST_PAIRS = 1 << 24
"""Number of pairs from which products of dense matrices take less memory."""


@dataclass(frozen=True, eq=False)
class BlockRows:
    """The rows of one table that depend on a joint block.

    Attributes
    ----------
    conditional, slot
        The density of the table, and the name of its mean or logit.
    lines
        X of all sub-rows, missing ones included, as a sparse matrix.
    rows
        Sub-rows that count; None for all.
    dimension
        Number of lines of a sub-row.
    barren
        Rows whose child is in the block and has no observed descendants.
    """

    conditional: Conditional
    slot: str
    lines: Any
    rows: Ints | None
    dimension: int
    barren: Ints

    @classmethod
    def of(cls, network: Network, layout: Layout, q: Beliefs, table: Conditional) -> BlockRows:
        """Compute the coefficients of a table, which do not change."""
        name, variable = mean_of(table), table.variable
        lines = sparse.vstack(list(lines_of(layout, q, table)), format="csr")
        present, own = network.present[variable.name], variable.name in layout.starts
        barren = np.zeros(0, dtype=np.int64)
        rows: Ints | None = None
        if own and present is not None:
            barren = np.setdiff1d(np.arange(variable.size), present)
        elif present is not None:
            rows = table.subrows(present)
        return cls(table, name, lines, rows, dimension_of(table), barren)

    def weigh(self, q: Beliefs, check: bool = False) -> tuple[Array, Array]:
        """Return the precision of each sub-row that counts, and w times its expected residual.

        Parameters
        ----------
        q
            The current q.
        check
            Whether to refuse rows whose mean is so far from 0 that E[mu^2] has too few digits.
        """
        table, size = self.conditional, self.dimension
        count = table.variable.size * table.components
        rows = np.arange(count) if self.rows is None else self.rows
        step = max(1, CHUNK // (size + size * size))
        found = [(np.zeros((0, size * size)), np.zeros((0, size)))]
        found += [self._weigh(q, rows[i : i + step], check) for i in range(0, len(rows), step)]
        weight, pull = (np.concatenate(part) for part in zip(*found, strict=True))
        return weight, pull

    def _weigh(self, q: Beliefs, rows: Ints, check: bool) -> tuple[Array, Array]:
        table, slot = self.conditional, self.conditional.slots[self.slot]
        message, size = table.weighted_to_slot(q, self.slot, rows), self.dimension
        weight = -2 * message[:, size:]
        if isinstance(slot, Linear | VectorMean):
            mean = slot.mean(q, rows).reshape(len(rows), size)
        else:
            mean = slot.moments(q, rows)[:, :size]
        towards = np.einsum("rij,rj->ri", weight.reshape(-1, size, size), mean)
        far = np.max(mean**2 * weight[:, :: size + 1], initial=0.0)
        if check and far > FAR**2:
            name, sds = table.variable.name, f"{np.sqrt(far):.1e} of their standard deviations"
            if table.factor.convex:
                raise ModelError(
                    f"logits of '{name}' lie {sds} from 0, which leaves too few digits of their "
                    "variances: what the logits read separates the outcomes; give their "
                    "coefficients stronger priors"
                )
            raise ModelError(
                f"rows of '{name}' have means {sds} from 0, which leaves too few digits of their "
                "variances: subtract a constant from the values, or give the noise a weaker "
                "precision"
            )
        return weight, message[:, :size] - towards

    def of_all_rows(self, weight: Array) -> Array:
        """Return precisions of sub-rows that count as those of all, 0 for others."""
        if self.rows is None:
            return weight
        found = np.zeros((self.lines.shape[0] // self.dimension, weight.shape[1]))
        found[self.rows] = weight
        return found

    def gradient(self, pull: Array) -> Array:
        """Return X^T of w times residuals of the sub-rows that count."""
        return np.asarray(self.of_all_rows(pull).ravel() @ self.lines)

    def barren_log_det(self, weight: Array) -> float:
        """Return the sum of the log determinants of the precisions of barren rows."""
        size = self.dimension
        blocks = weight[self.barren].reshape(-1, size, size)
        return float(np.linalg.slogdet(blocks)[1].sum())


def mean_of(table: Conditional) -> str:
    """Return the name of the parameter of a density that is its mean or logit."""
    kinds = (families.Normal, families.MvNormal)
    return next((name for name, kind in table.factor.slots.items() if kind in kinds), "")


def dimension_of(table: Conditional) -> int:
    """Return the number of entries of the mean of a row."""
    vector = table.factor.slots[mean_of(table)] is families.MvNormal
    return table.variable.shape[-1] if vector else 1


def lines_at(rows: Ints, dimension: int) -> Ints:
    """Return the lines of some rows."""
    return (rows[:, None] * dimension + np.arange(dimension)).ravel()


def terms_of(names: Collection[str], slot: Linear | VectorMean) -> list[LinearTerm]:
    """Return the terms of a mean that read some variables."""
    return [t for t in slot.terms if any(r.variable.name in names for r in t.readers)]


def lines_of(layout: Layout, q: Beliefs, table: Conditional) -> Iterator[Any]:
    """Yield the coefficients of blocks of sub-rows, as sparse matrices."""
    variable, slot, size = table.variable, table.slots[mean_of(table)], dimension_of(table)
    count, width = variable.size * table.components, size
    if isinstance(slot, Linear | VectorMean):
        width = size + size * sum(entries_of(term) for term in terms_of(layout.starts, slot))
    step = max(1, CHUNK // width)
    for start in range(0, count, step):
        rows = np.arange(start, min(start + step, count))
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
        entries = np.arange(len(rows) * size)
        if isinstance(slot, Linear | VectorMean):
            for term in terms_of(layout.starts, slot):
                at = term.entries(lines_at(rows, size))
                for reader in (r for r in term.readers if r.variable.name in layout.starts):
                    place = reader.element(at.rows, at.inner), reader.component(at.rows, at.inner)
                    column = layout.places(reader.variable.name)[place]
                    found.append((at.owner, column, term.mean(q, at, skip=reader.variable)))
        elif isinstance(slot, Single) and slot.reader.variable.name in layout.starts:
            element = np.broadcast_to(slot.reader.element(rows, rows), rows.shape)
            column = layout.places(slot.reader.variable.name)[element]
            found.append((entries, column.ravel(), np.ones(len(entries))))
        if variable.name in layout.starts:
            column = layout.places(variable.name)[rows]
            found.append((entries, column.ravel(), np.full(len(entries), -1.0)))
        line, column, value = (np.concatenate(part) for part in zip(*found, strict=True))
        shape = (len(entries), layout.size)
        lines = sparse.csr_array((value, (line, column)), shape=shape)
        lines.sum_duplicates()
        yield lines


def entries_of(term: LinearTerm) -> int:
    """Return the largest number of entries of a term in a row."""
    if term.design is None:
        return max(term.scope.inner.size, 1)
    design: Any = term.design.values
    return int(np.diff(design.indptr).max(initial=0))


def dense_lines(lines: Any, size: int, element: Ints) -> CovarianceLines | None:
    """Return what covariances add to rows that read many of few unknowns; None for other rows."""
    counts = np.diff(lines.indptr)
    if counts.max(initial=0) >= WIDE or size * float(counts @ counts) > MOST_PAIRS:
        columns = np.unique(lines.indices).astype(np.int64)
        if len(columns) <= counts.max() * WIDE:
            return CovarianceLines(lines[:, columns], columns, element[columns], size)
    return None


def row_covariances(lines: Any, size: int, element: Ints) -> RowCovariances | None:
    """Return what the covariances of any unknowns add to each row; None if it reads one element.

    Parameters
    ----------
    lines, size
        Coefficients, and the number of lines of a row.
    element
        The element that each unknown belongs to.
    """
    dense = dense_lines(lines, size, element)
    if dense is not None:
        return dense
    counts, rows = np.diff(lines.indptr), lines.shape[0] // size
    shape = (rows, size * size)
    found = [pairs_of(lines, element, shape, first) for first in parts_of(counts, size)]
    owner, left, right, value = (np.concatenate(part) for part in zip(*found, strict=True))
    return CovariancePairs(shape, owner, left, right, value) if len(owner) else None


def parts_of(counts: Ints, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with a limited number of pairs."""
    rows = len(counts) // size
    step = max(1, CHUNK // max(int(counts.max(initial=1)) ** 2 * size * size, 1))
    return ((first, min(first + step, rows)) for first in range(0, rows, step))


def pairs_of(
    lines: Any, element: Ints, shape: tuple[int, int], part: tuple[int, int]
) -> tuple[Ints, Ints, Ints, Array]:
    """Return the pairs of different elements in some rows: owners, unknowns, coefficients."""
    size = int(np.sqrt(shape[1]))
    row = np.repeat(np.arange(*part), shape[1])
    one, two = (np.tile(i.ravel(), part[1] - part[0]) for i in np.indices((size, size)))
    first, second = row * size + one, row * size + two
    starts, counts = lines.indptr.astype(np.int64), np.diff(lines.indptr).astype(np.int64)
    owner, left = ragged(starts[first], counts[first])
    pair, right = ragged(starts[second][owner], counts[second][owner])
    owner, left = owner[pair], left[pair]
    i, j = lines.indices[left].astype(np.int64), lines.indices[right].astype(np.int64)
    apart = element[i] != element[j]
    if size == 1:  # each pair once
        apart &= i < j
    value = lines.data[left] * lines.data[right] * (2.0 if size == 1 else 1.0)
    owner = owner + part[0] * shape[1]
    return owner[apart], i[apart], j[apart], value[apart]
