"""Which mixtures of Normals the loops serve, and what they count for them.

A plan holds for z_r ~ Categorical(w), with one w for all rows, that chooses among Normals, one or
several a row, or among MvNormals, whose parameters depend on the component and not on the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from svmp import factors
from svmp.families.family import Array, stack
from svmp.families.normal import LOG_2PI
from svmp.kernels.categorical import mixture
from svmp.kernels.categorical.updater import ImplicitCategorical
from svmp.kernels.machine.threads import share, threads_for
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.matrices import Diagonal
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.slot import Fixed, Single
from svmp.network.variable import Variable


class Normals(NamedTuple):
    """Expected parameters of each component: m, its variance, T (or its diagonal), E[log |tau|]."""

    mean: Array
    variance: Array
    precision: Array
    log_det: Array


class MixtureSums(NamedTuple):
    """Sums over rows for each component: of its shares, times x - mean, and its square."""

    rows: int
    mean: Array
    total: Array
    first: Array
    second: Array
    evidence: float


@dataclass(frozen=True, eq=False)
class Mixtures(ImplicitCategorical):
    """A Categorical that the loops serve."""

    @classmethod
    def of(cls, network: Network, name: str) -> Mixtures | None:
        """Return the plan for a hidden variable, or None where the loops do not serve it."""
        z, edges = network.hidden[name], network.edges[name]
        if isinstance(z.family, PartlyKnown):
            return None
        if len(edges) != 1 or not edges[0].choosing or z.conditional.selector is not None:
            return None
        weights, x = z.conditional.slots["p"], edges[0].conditional.variable
        if not chooses_normals(z, edges[0]) or len(x.rows) < x.size:
            return None
        shared = isinstance(weights, Single | Fixed) and not weights.varies
        finite = not isinstance(weights, Fixed) or np.isfinite(weights.statistics.values).all()
        return cls(z, tuple(edges)) if shared and finite else None

    @property
    def _table(self) -> Conditional:
        return self.edges[0].conditional

    @cached_property
    def _x(self) -> Array:
        """The observed numbers, a row for each element of z."""
        observed = self._table.variable.observed
        assert observed is not None
        return np.ascontiguousarray(observed.reshape(self.variable.size, -1), np.float64)

    @cached_property
    def _subrows(self) -> Ints:
        """The sub-rows of one row: all others have the same parameters."""
        cells = self._table.variable.size // max(self.variable.size, 1)
        return np.arange(cells * self._table.components)

    @property
    def _vectors(self) -> bool:
        return isinstance(self._table.factor, factors.MvNormal)

    @property
    def _diagonal(self) -> bool:
        """Whether the numbers of a row are independent, given its component."""
        return not self._vectors or isinstance(self._table.slots["tau"], Diagonal)

    def _normals(self, q: Beliefs) -> Normals:
        given, d = self._table.given(q, self._subrows), self._x.shape[1]
        k, mu, tau = self._table.components, given["mu"], given["tau"]
        if not self._vectors:  # one number of a row after another, each with all components
            mu = np.broadcast_to(mu, (len(self._subrows), 2)).reshape(d, k, 2).swapaxes(0, 1)
            tau = np.broadcast_to(tau, (len(self._subrows), 2)).reshape(d, k, 2).swapaxes(0, 1)
            variance = mu[..., 1] - mu[..., 0] ** 2
            return Normals(mu[..., 0], variance, tau[..., 0], tau[..., 1].sum(axis=1))
        mu, tau = np.broadcast_to(mu, (k, d + d * d)), np.broadcast_to(tau, (k, d * d + 1))
        mean, square = mu[:, :d], mu[:, d:].reshape(k, d, d)
        variance, precision = square - outer(mean, mean), tau[:, :-1].reshape(k, d, d)
        if self._diagonal:
            variance, precision = np.einsum("kii->ki", variance), np.einsum("kii->ki", precision)
        return Normals(mean, variance, precision, tau[:, -1])

    def _constant(self, normals: Normals) -> Array:
        """E[log p(x | k)] at x = m_k."""
        spread = normals.precision * normals.variance
        trace = spread.reshape(len(spread), -1).sum(axis=1)
        return 0.5 * (normals.log_det - normals.mean.shape[1] * LOG_2PI - trace)

    def _components(self, normals: Normals, weight: Array | float) -> mixture.Components:
        if self._diagonal:
            root = np.sqrt(normals.precision)[:, :, None]
        else:
            root = np.linalg.cholesky(normals.precision)
        constant = self._constant(normals) + weight
        return mixture.Components(constant, np.array(normals.mean), np.array(root))

    def add_logits(self, q: Beliefs, rows: Ints, places: Ints, out: Array) -> None:
        """Add E[log p(x_r | k)] of some rows to lines of an array, (lines, components)."""
        given = self._components(self._normals(q), 0.0)
        with threads_for(len(rows) * given.mean.size):
            share(mixture.write_logits, self._x, rows, given, places, out)

    def sums_of(self, q: Beliefs, rows: Ints, shares: Array) -> MixtureSums:
        """Return sums over some rows, given the probabilities of all rows."""
        normals = self._normals(q)
        k, d = normals.mean.shape
        blocks, width = -(-len(rows) // mixture.BLOCK), 1 if self._diagonal else d
        total, first = np.zeros((blocks, k)), np.zeros((blocks, k, d))
        second, mean = np.zeros((blocks, k, d, width)), np.array(normals.mean)
        with threads_for(len(rows) * k * d):
            share(mixture.read_shares, self._x, rows, mean, shares, total, first, second)
        square = second.sum(axis=0)
        square = square[..., 0] if self._diagonal else mirrored(square)
        return MixtureSums(len(rows), mean, total.sum(axis=0), first.sum(axis=0), square, 0.0)

    def likelihood(self, q: Beliefs, sums: MixtureSums) -> float:
        """Return E[log p(x | z)] of the rows of sums that were made with the current q."""
        normals = self._normals(q)
        square = float(np.vdot(normals.precision, sums.second))
        return float(sums.total @ self._constant(normals)) - 0.5 * square

    def sums(self, q: Beliefs, elements: Ints | None) -> MixtureSums:
        rows = np.arange(self.variable.size) if elements is None else elements
        normals = self._normals(q)
        k, d = normals.mean.shape
        weight = self.variable.conditional.to_child(q, np.zeros(1, dtype=np.int64))[0]
        given = self._components(normals, weight)
        root, mean = given.root, given.mean
        blocks = -(-len(rows) // mixture.BLOCK)
        total, first = np.zeros((blocks, k)), np.zeros((blocks, k, d))
        second, evidence = np.zeros((blocks, *root.shape)), np.zeros(blocks)
        with threads_for(len(rows) * k * d):
            share(mixture.read_rows, self._x, rows, given, total, first, second, evidence)
        square = second.sum(axis=0)
        square = square[..., 0] if self._diagonal else mirrored(square)
        sums = total.sum(axis=0), first.sum(axis=0), square
        return MixtureSums(len(rows), mean, *sums, float(evidence.sum()))

    def message(self, q: Beliefs, sums: MixtureSums, edge: Edge, elements: Ints) -> Array:
        if edge.conditional is self.variable.conditional:
            return np.repeat(sums.total[None, :], len(elements), axis=0)
        parent, (name, slot) = edge.parent, self._table.slot_of(edge.parent)
        said = self._to_mean(q, sums) if name == "mu" else self._to_precision(q, sums)
        found, subrows = edge.pairs_in(self._cells)
        out = np.zeros((parent.size, parent.family.size))
        np.add.at(out, found, slot.message(q, parent, found, subrows, said[subrows]))
        return out[elements]

    @property
    def _cells(self) -> Ints:
        return np.arange(len(self._subrows) // self._table.components)

    def _to_mean(self, q: Beliefs, sums: MixtureSums) -> Array:
        """Return T sum x and -T / 2 of each sub-row: the message to its mean."""
        precision = self._normals(q).precision
        total = sums.total[:, None] * sums.mean + sums.first
        if self._diagonal:
            return self._said(precision * total, -0.5 * sums.total[:, None] * precision)
        linear = np.einsum("kij,kj->ki", precision, total)
        square = -0.5 * sums.total[:, None, None] * precision
        return np.concatenate([linear, square.reshape(len(square), -1)], axis=1)

    def _to_precision(self, q: Beliefs, sums: MixtureSums) -> Array:
        """Return -E[(x - mu)^2] / 2 and 1/2, summed: the message to the precision of a sub-row."""
        normals, half = self._normals(q), 0.5 * sums.total
        moved = normals.mean - sums.mean
        if self._diagonal:
            square = sums.second - 2 * moved * sums.first
            square += sums.total[:, None] * (moved**2 + normals.variance)
            if not self._vectors:
                return self._said(-0.5 * square, np.repeat(half[:, None], square.shape[1], axis=1))
            square = square[:, :, None] * np.eye(square.shape[1])
        else:
            cross = outer(moved, sums.first)
            square = sums.second - cross - cross.swapaxes(1, 2)
            square += sums.total[:, None, None] * (outer(moved, moved) + normals.variance)
        return np.concatenate([-0.5 * square.reshape(len(square), -1), half[:, None]], axis=1)

    def _said(self, linear: Array, square: Array) -> Array:
        """Put messages by component and number in the order of sub-rows, or of vectors' moments."""
        if not self._vectors:
            return stack(linear.T.ravel(), square.T.ravel())
        matrix = square[:, :, None] * np.eye(square.shape[1])
        return np.concatenate([linear, matrix.reshape(len(matrix), -1)], axis=1)

    def reads(self, sums: MixtureSums, edge: Edge, elements: Ints) -> int:
        if edge.conditional is self.variable.conditional:
            return sums.rows * len(elements)
        found, _ = edge.pairs_in(self._cells)
        times = np.bincount(found, minlength=edge.parent.size)[elements]
        return int(times.sum()) // edge.fan * sums.rows

    def bound_terms(self, q: Beliefs, sums: MixtureSums) -> dict[str, float]:
        likelihood = self.likelihood(q, sums)
        own, table = self.tables
        return {own: sums.evidence - likelihood, table: likelihood}


def chooses_normals(z: Variable, edge: Edge) -> bool:
    """Return whether a Categorical chooses among Normals whose parameters do not vary by row."""
    table = edge.conditional
    x, chosen = table.variable, table.selector
    own = x.plate.labels[: len(z.plate.labels)] == z.plate.labels
    more = len(x.plate.labels) - len(z.plate.labels)
    normal = isinstance(table.factor, factors.Normal) and more <= 1
    vector = isinstance(table.factor, factors.MvNormal) and more == 0
    direct = isinstance(chosen, Single) and chosen.reader.index == z.plate.labels
    apart = not any(set(z.plate.labels) & s.axes for s in table.slots.values())
    return own and (normal or vector) and x.observed is not None and direct and apart


def outer(left: Array, right: Array) -> Array:
    """Multiply vectors of components to matrices."""
    return np.asarray(left[:, :, None] * right[:, None, :])


def mirrored(lower: Array) -> Array:
    """Fill in the upper halves of symmetric matrices."""
    return np.asarray(np.tril(lower) + np.tril(lower, -1).swapaxes(1, 2))
