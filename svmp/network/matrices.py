"""Structured precision matrices: a diagonal of Gammas, or a multiple of a matrix.

A density needs E[X] and E[log |X|] of its precision matrix X. For X = diag(g_1, ..., g_d) these
are diag(E[g_j]) and sum_j E[log g_j]; for X = c g W, with W a Wishart or a fixed matrix, they are
c E[g] E[W] and d (log c + E[log g]) + E[log |W|]. Both are linear in the moments of each part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp.families.family import Array, stack
from svmp.network.beliefs import Beliefs
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints, Labelled
from svmp.network.slot import Fixed, Product, Single, Slot


@dataclass(frozen=True, eq=False)
class Diagonal(Slot):
    """diag(g_1, ..., g_d): the entries are one positive product, read at d inner indices."""

    entries: Product
    size: int

    @property
    def variables(self) -> list[Symbol]:
        return self.entries.variables

    @property
    def arrays(self) -> tuple[Labelled, ...]:
        return self.entries.constants

    def _spread(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return every (row, entry of the diagonal)."""
        return np.repeat(rows, self.size), np.tile(np.arange(self.size), len(rows))

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        found = self.entries.moments_at(q, *self._spread(rows)).reshape(len(rows), self.size, 2)
        matrix = found[:, :, :1] * np.eye(self.size)
        return np.concatenate(
            [matrix.reshape(len(rows), self.size**2), found[:, :, 1].sum(axis=1)[:, None]], axis=1
        )

    def message(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints, incoming: Array
    ) -> Array:
        places, inner = self._spread(rows)
        here = self.entries.reader(variable).element(places, inner) == np.repeat(
            elements, self.size
        )
        diagonal = incoming[:, :-1].reshape(-1, self.size, self.size)
        entry = np.einsum("rjj->rj", diagonal).ravel()
        others = self.entries.others(q, variable, places, inner)
        linear = np.where(here, entry * others, 0.0).reshape(-1, self.size).sum(axis=1)
        times = here.reshape(-1, self.size).sum(axis=1)
        return stack(linear, incoming[:, -1] * times)

    def pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        places, inner = self._spread(rows)
        return self.entries.reader(variable).element(places, inner), places

    def labels(self, variable: Symbol) -> set[str]:
        return self.entries.labels(variable)

    def width(self, variable: Symbol) -> int:
        reader = self.entries.reader(variable)
        return self.size if reader.carried or reader.keyed_by_inner else 1


@dataclass(frozen=True, eq=False)
class Multiple(Slot):
    """c g_1 g_2 ... W: a Wishart or a fixed matrix, times a positive product."""

    factor: Product
    matrix: Single | Fixed
    size: int

    @property
    def variables(self) -> list[Symbol]:
        return [*self.matrix.variables, *self.factor.variables]

    @property
    def arrays(self) -> tuple[Labelled, ...]:
        return (*self.factor.constants, *self.matrix.arrays)

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        factor, matrix = self.factor.moments(q, rows), self.matrix.moments(q, rows).copy()
        matrix[:, :-1] *= factor[:, :1]
        matrix[:, -1] += self.size * factor[:, 1]
        return matrix

    def message(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints, incoming: Array
    ) -> Array:
        if any(v is variable for v in self.matrix.variables):
            scale = self.factor.moments(q, rows)[:, :1]
            return np.concatenate([incoming[:, :-1] * scale, incoming[:, -1:]], axis=1)
        matrix = self.matrix.moments(q, rows)[:, :-1]
        trace = np.einsum("ri,ri->r", incoming[:, :-1], matrix)
        through = stack(trace, self.size * incoming[:, -1])
        return self.factor.message(q, variable, elements, rows, through)

    def pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        return self._part(variable).pairs(variable, rows)

    def labels(self, variable: Symbol) -> set[str]:
        return self._part(variable).labels(variable)

    def _part(self, variable: Symbol) -> Slot:
        """Return the part that a variable is in."""
        return self.factor if any(v is variable for v in self.factor.variables) else self.matrix
