"""Matrices of regression coefficients: fixed, with rows that are MvNormals, or diagonal of Normals.

The mean of a vector x is M r, with a random K x F matrix M. Where x has the precision matrix tau,
E[log p(x)] depends on M through its mean, and on its spread through

    scatter(G) = E[(M - E[M]) G (M - E[M])']     for a Gram matrix G = E[r r'],
    pull(tau)  = E[(M - E[M])' tau (M - E[M])].

With S = E[tau] (E[x r'] - E[M] G), the slope of E[log p] at the mean of M, the message to row i is

    (S_i + tau_ii G E[M_i],  -tau_ii G / 2),

and to the diagonal's entry i the same with the entries (i, i) of S and G. Several terms M r are
added up in one S.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from svmp.families.family import Array, stack
from svmp.families.matrix import apply, flat
from svmp.network.beliefs import Beliefs
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints, Labelled, Scope
from svmp.network.reader import Reader
from svmp.network.slot import Slot


class Coefficients(Slot, Protocol):
    """A random or fixed matrix, as a function of the rows of one table.

    Attributes
    ----------
    shape
        Number of its rows K and of its columns F.
    """

    shape: tuple[int, int]

    def mean(self, q: Beliefs, rows: Ints) -> Array:
        """E[M] at each row of the table, (rows, K, F)."""
        ...

    def scatter(self, q: Beliefs, rows: Ints, gram: Array) -> Array:
        """E[(M - E[M]) G (M - E[M])'] at each row of the table, (rows, K, K)."""
        ...

    def pull(self, q: Beliefs, rows: Ints, tau: Array) -> Array:
        """E[(M - E[M])' tau (M - E[M])] at each row of the table, (rows, F, F)."""
        ...

    def elements(self, rows: Ints) -> Ints:
        """Return the elements of its variable at each row of the table, (rows, elements)."""
        raise AssertionError("a fixed matrix has no variables")

    def inner_of(self, elements: Ints) -> Ints:
        """Return which row or entry of the matrix each element is."""
        raise AssertionError("a fixed matrix has no variables")

    def to_element(
        self, q: Beliefs, elements: Ints, rows: Ints, slope: Array, gram: Array, tau: Array
    ) -> Array:
        """Return the message to one element at each row of the table."""
        raise AssertionError("a fixed matrix has no variables")

    @property
    def couples(self) -> bool:
        """Whether its elements are co-parents where tau is not diagonal."""
        return True

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        """E[M], flat."""
        return flat(self.mean(q, rows))

    def message(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints, incoming: Array
    ) -> Array:
        raise AssertionError("see to_element")

    def pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        elements = self.elements(rows)
        return elements.ravel(), np.repeat(rows, elements.shape[1])


@dataclass(frozen=True, eq=False)
class FixedMatrix(Coefficients):
    """A matrix that is known: its values, looked up by row."""

    values: Labelled
    scope: Scope
    shape: tuple[int, int]

    @property
    def variables(self) -> list[Symbol]:
        return []

    @property
    def arrays(self) -> tuple[Labelled, ...]:
        return (self.values,)

    def mean(self, q: Beliefs, rows: Ints) -> Array:
        found = self.scope.look_up(self.values, rows, rows)
        return np.broadcast_to(found, (len(rows), *self.shape))

    def scatter(self, q: Beliefs, rows: Ints, gram: Array) -> Array:
        return np.zeros((1, self.shape[0], self.shape[0]))

    def pull(self, q: Beliefs, rows: Ints, tau: Array) -> Array:
        return np.zeros((1, self.shape[1], self.shape[1]))

    def labels(self, variable: Symbol) -> set[str]:
        raise AssertionError("a fixed matrix has no variables")


@dataclass(frozen=True, eq=False)
class MatrixRows(Coefficients):
    """A matrix whose rows are the elements of an MvNormal along one axis, which are independent.

    Without an axis it has one row.
    """

    reader: Reader
    axis: str | None
    shape: tuple[int, int]

    @property
    def variables(self) -> list[Symbol]:
        return [self.reader.variable]

    def elements(self, rows: Ints) -> Ints:
        return _elements(self.reader, rows, self.shape[0])

    def inner_of(self, elements: Ints) -> Ints:
        return _zeros_or_inner(self.reader, self.axis, elements)

    def _moments(self, q: Beliefs, elements: Ints) -> tuple[Array, Array]:
        """Return E[M_i] and Cov[M_i] of rows of the matrix."""
        columns = self.shape[1]
        found = q.moments[self.reader.variable.name][elements]
        mean, square = found[..., :columns], found[..., columns:]
        square = square.reshape(*mean.shape, columns)
        return mean, square - mean[..., :, None] * mean[..., None, :]

    def mean(self, q: Beliefs, rows: Ints) -> Array:
        return self._moments(q, self.elements(rows))[0]

    def scatter(self, q: Beliefs, rows: Ints, gram: Array) -> Array:
        _, cov = self._moments(q, self.elements(rows))
        return np.einsum("nkij,nij->nk", cov, gram)[:, :, None] * np.eye(self.shape[0])

    def pull(self, q: Beliefs, rows: Ints, tau: Array) -> Array:
        _, cov = self._moments(q, self.elements(rows))
        return np.asarray(np.einsum("nkij,nkk->nij", cov, tau))

    def to_element(
        self, q: Beliefs, elements: Ints, rows: Ints, slope: Array, gram: Array, tau: Array
    ) -> Array:
        inner, place = self.inner_of(elements), np.arange(len(rows))
        square = tau[place, inner, inner][:, None, None] * gram
        mean, _ = self._moments(q, elements)
        linear = slope[place, inner] + apply(square, mean)
        return np.concatenate([linear, -0.5 * flat(square)], axis=1)

    def labels(self, variable: Symbol) -> set[str]:
        return {label for label in self.reader.labels if label != self.axis}


@dataclass(frozen=True, eq=False)
class DiagonalEntries(Coefficients):
    """A diagonal matrix of Normals: one for each entry, or the same for all."""

    reader: Reader
    axis: str
    shape: tuple[int, int]

    @property
    def variables(self) -> list[Symbol]:
        return [self.reader.variable]

    @property
    def _apart(self) -> bool:
        """Whether the entries are different elements."""
        return bool(self.reader.carried)

    @property
    def couples(self) -> bool:
        return self._apart

    def elements(self, rows: Ints) -> Ints:
        return _elements(self.reader, rows, self.shape[0] if self._apart else 1)

    def inner_of(self, elements: Ints) -> Ints:
        return _inner(self.reader, self.axis, elements) if self._apart else np.zeros_like(elements)

    def _moments(self, q: Beliefs, elements: Ints) -> tuple[Array, Array]:
        found = q.moments[self.reader.variable.name][elements]
        return found[..., 0], found[..., 1] - found[..., 0] ** 2

    def mean(self, q: Beliefs, rows: Ints) -> Array:
        return self._moments(q, self.elements(rows))[0][:, :, None] * np.eye(self.shape[0])

    def _spread(self, q: Beliefs, rows: Ints, other: Array) -> Array:
        _, var = self._moments(q, self.elements(rows))
        return np.asarray(
            var[:, :, None] * (other * np.eye(self.shape[0]) if self._apart else other)
        )

    def scatter(self, q: Beliefs, rows: Ints, gram: Array) -> Array:
        return self._spread(q, rows, gram)

    def pull(self, q: Beliefs, rows: Ints, tau: Array) -> Array:
        return self._spread(q, rows, tau)

    def to_element(
        self, q: Beliefs, elements: Ints, rows: Ints, slope: Array, gram: Array, tau: Array
    ) -> Array:
        mean, _ = self._moments(q, elements)
        if self._apart:
            inner, place = self.inner_of(elements), np.arange(len(rows))
            square = (tau * gram)[place, inner, inner]
            linear = slope[place, inner, inner]
        else:
            square = (tau * gram).sum(axis=(1, 2))
            linear = np.trace(slope, axis1=1, axis2=2)
        return stack(linear + square * mean, -0.5 * square)

    def labels(self, variable: Symbol) -> set[str]:
        return self.reader.labels - {self.axis}


def _elements(reader: Reader, rows: Ints, count: int) -> Ints:
    """Return the element that each row reads at each inner index, (rows, count)."""
    many, inner = np.repeat(rows, count), np.tile(np.arange(count), len(rows))
    return reader.element(many, inner).reshape(len(rows), count)


def _zeros_or_inner(reader: Reader, axis: str | None, elements: Ints) -> Ints:
    """Return the row of a matrix that each element is."""
    return np.zeros_like(elements) if axis is None else _inner(reader, axis, elements)


def _inner(reader: Reader, axis: str, elements: Ints) -> Ints:
    """Return the place of each element along the axis of a matrix's rows."""
    plate = reader.variable.plate
    label = plate.labels[reader.index.index(axis)]
    return plate.coordinate(label, elements)
