"""Which Normals the bilinear loops serve, and what they need to know of them.

A plan holds for one conditional: mu = u[i] . v[j] + biases, with each variable in one term. All
else goes the plain way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numba
import numpy as np
from scipy import sparse

from svmp import factors
from svmp.families.family import Array
from svmp.kernels import bilinear
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.grid import Ints
from svmp.network.linear import Linear, LinearTerm, dimension
from svmp.network.reader import Reader

NOTHING = np.zeros((1, 2))
NO_KEY = np.zeros(1, dtype=np.int32)
NO_MEANS = np.zeros(1)


SMALL = 20_000
"""Below so many accesses, waking other threads costs more than they save."""


@contextmanager
def threads_for(accesses: int) -> Iterator[None]:
    """Run small work on this thread alone; the bits are the same."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1 if accesses < SMALL else threads)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


class Shared(NamedTuple):
    """Keys that read their rows once for all factors: where each key's begin, and their scales."""

    keys: Ints
    pointers: Ints
    rows: Ints
    scale: Array


class Drawn(NamedTuple):
    """Keys whose every factor draws at most so many of its rows for itself."""

    seed: int
    iteration: int
    variable: int
    keys: Ints
    pointers: Ints
    rows: Ints
    most: Ints


Work = Shared | Drawn


@dataclass(frozen=True, eq=False)
class Side:
    """One operand as the loops see it: element key * width + k belongs to factor k of a key."""

    reader: Reader
    width: int
    slope: bool

    @property
    def name(self) -> str:
        return self.reader.variable.name

    @property
    def keys(self) -> int:
        return self.reader.variable.size // self.width

    @cached_property
    def key(self) -> Ints:
        """Key of every row of the table."""
        rows = np.arange(self.reader.scope.rows.size)
        elements = self.reader.element(rows, np.zeros_like(rows))
        return (elements // self.width).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Plan:
    """A conditional that the loops serve."""

    conditional: Conditional
    linear: Linear
    dot: tuple[Side, Side] | None
    biases: tuple[Side, ...]
    intercept: float

    @classmethod
    def of(cls, conditional: Conditional) -> Plan | None:
        """Return the plan for a conditional, or None where the loops do not serve it."""
        linear = conditional.slots.get("mu")
        plain = conditional.components > 1 or not isinstance(conditional.factor, factors.Normal)
        if plain or not isinstance(linear, Linear) or conditional.variable.size >= 2**31:
            return None
        dot, biases, intercept = None, [], 0.0
        for term in linear.terms:
            if not term.readers and not term.constants and term.design is None:
                intercept += term.scale
            elif (side := bias_of(term)) is not None:
                biases.append(side)
            elif dot is None and (pair := dot_of(term)) is not None:
                dot = pair
            else:
                return None
        names = [s.name for s in (*biases, *(dot or ()))]
        return (
            None
            if len(set(names)) < len(names)
            else cls(conditional, linear, dot, tuple(biases), intercept)
        )

    def side(self, name: str) -> Side:
        """Return the operand of that name."""
        return next(s for s in (*self.biases, *(self.dot or ())) if s.name == name)

    def _mean_of_row(self, q: Beliefs) -> tuple[Any, ...]:
        """Return what the loops need to add up E[mu] of a row."""
        starts = np.cumsum([0, *(s.reader.variable.size for s in self.biases)])[:-1]
        bias = [q.moments[s.name] for s in self.biases]
        return (
            np.concatenate(bias) if bias else NOTHING,
            self._bias_keys,
            starts,
            *self._dot_arguments(q),
        )

    def _dot_arguments(self, q: Beliefs) -> tuple[Any, ...]:
        if self.dot is None:
            return NOTHING, NO_KEY, NOTHING, NO_KEY, 0
        left, right = self.dot
        return q.moments[left.name], left.key, q.moments[right.name], right.key, left.width

    @cached_property
    def _bias_keys(self) -> Ints:
        if not self.biases:
            return np.zeros((0, 1), dtype=np.int32)
        return np.stack([s.key for s in self.biases])

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        """E[mu] and E[mu^2] of each row."""
        bias, bias_keys, starts, *dot = self._mean_of_row(q)
        with threads_for(len(rows)):
            found = bilinear.row_moments(rows, *dot, bias, bias_keys, starts)
        if self.intercept:
            found[:, 1] += self.intercept * (2 * found[:, 0] + self.intercept)
            found[:, 0] += self.intercept
        return found

    @cached_property
    def _sorted(self) -> dict[str, tuple[Ints, Ints]]:
        """For each operand, its rows by key, and where each key's begin."""
        rows = self.conditional.variable.rows
        sides = (*self.biases, *(self.dot or ()))
        return {s.name: by_key(s.key[rows], rows, s.keys) for s in sides}

    def children(self, name: str) -> Ints:
        """Return how many rows each key has."""
        return np.diff(self._sorted[name][0]).astype(np.int64)

    def rows_by_key(self, name: str) -> tuple[Ints, Ints]:
        """Return where the rows of each key begin, and the rows."""
        return self._sorted[name]

    def _target(self, q: Beliefs) -> Array:
        variable = self.conditional.variable
        if variable.observed is None:
            return q.moments[variable.name][:, 0]
        return self._observed

    @cached_property
    def _observed(self) -> Array:
        observed = self.conditional.variable.observed
        assert observed is not None
        return np.asarray(observed, dtype=np.float64)

    def _precision(self, q: Beliefs) -> Array:
        slot = self.conditional.slots["tau"]
        count = self.conditional.variable.size if slot.varies else 1
        return np.ascontiguousarray(slot.moments(q, np.arange(count))[:, 0])

    def update(
        self, q: Beliefs, name: str, work: Work, prior: Array, rho: Array, at_once: bool
    ) -> Array:
        """Blend in what the rows say; return the naturals, which are q's own if seen at once."""
        side = self.side(name)
        natural = q.natural[name] if at_once else q.natural[name].copy()
        others = [s for s in self.dot or () if side.slope and s is not side]
        other = (q.moments[others[0].name], others[0].key) if others else (NOTHING, NO_KEY)
        receiver = (rho, at_once, prior, natural, q.moments[name], *other, side.width, side.slope)
        density = (self._target(q), self._precision(q))
        mean = (*self._mean_of_row(q), self.intercept)
        if isinstance(work, Drawn):
            with threads_for(int(work.most.sum()) * side.width):
                bilinear.update_drawn(*work, *receiver, *density, *mean)
        else:
            means = q.means.get(self.conditional.variable.name)
            known = (NO_MEANS, False) if means is None else (means, True)
            with threads_for(len(work.rows) * side.width):
                bilinear.update_shared(*work, *receiver, *density, *known, *mean)
        return natural


def bias_of(term: LinearTerm) -> Side | None:
    """Return the operand of a term that is one Normal, unscaled."""
    plain = term.design is None and not term.constants and term.scale == 1
    if not plain or len(term.readers) != 1 or term.scope.slots.labels:
        return None
    (reader,) = term.readers
    return Side(reader, 1, False) if dimension(reader.variable) == 1 else None


def dot_of(term: LinearTerm) -> tuple[Side, Side] | None:
    """Return the operands of a term that is a dot product of two Normals over their last axis."""
    plain = term.design is None and not term.constants and term.scale == 1
    if not plain or len(term.readers) != 2 or len(term.scope.slots.labels) != 1:
        return None
    (slot,) = term.scope.slots.labels
    for reader in term.readers:
        last = reader.index[-1:] == (slot,) and reader.carried == {slot}
        if not last or reader.keyed_by_slots or dimension(reader.variable) > 1:
            return None
    width = term.scope.slots.size
    left, right = (Side(reader, width, True) for reader in term.readers)
    return left, right


def by_key(keys: Ints, rows: Ints, count: int) -> tuple[Ints, Ints]:
    """Sort rows by key, keeping their order: where each key's begin, and the rows."""
    table = sparse.csr_array(
        (rows.astype(np.int32), (keys, np.arange(len(rows)))), shape=(count, len(rows))
    )
    return table.indptr.astype(np.int64), table.data
