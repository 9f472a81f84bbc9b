"""Slots: how a parameter of a density is computed from variables (fixed, single, or a product).

A slot gives the density the expected statistics of its parameter, row by row, and turns the
density's message to the parameter into messages to the variables. Means that are linear in many
variables are in linear.py, precision matrices in matrices.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from svmp.families.family import Array, stack
from svmp.network.beliefs import Beliefs
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints, Labelled, Scope
from svmp.network.means.columns import ONE
from svmp.network.means.row_sums import sum_by_owner
from svmp.network.reader import Reader


class Slot(Protocol):
    """A random parameter of a density, as a function of the rows of one table."""

    @property
    def variables(self) -> list[Symbol]:
        """The variables it depends on."""
        ...

    @property
    def varies(self) -> bool:
        """Whether it may differ between rows."""
        return True

    @property
    def arrays(self) -> tuple[Labelled, ...]:
        """The constant arrays in it."""
        return ()

    @property
    def axes(self) -> set[str]:
        """Names of all axes that it varies along."""
        read = {label for variable in self.variables for label in self.labels(variable)}
        return read | {str(axis) for array in self.arrays for axis in array.axes}

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        """Return the parameter's expected statistics at these rows."""
        ...

    def message(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints, incoming: Array
    ) -> Array:
        """Turn the density's message at each row into one to the given element of the variable."""
        ...

    def message_sum(
        self,
        q: Beliefs,
        variable: Symbol,
        elements: Ints,
        owner: Ints,
        rows: Ints,
        incoming: Array,
    ) -> Array:
        """Return the sum of the messages of its rows to each element.

        `owner` is the position of the element of each row, in ascending order.
        """
        message = self.message(q, variable, elements[owner], rows, incoming)
        return sum_by_owner(message, owner, len(elements))

    @property
    def row_size(self) -> int:
        """Most numbers that are computed for one row."""
        return max([variable.family.size for variable in self.variables], default=1)

    def message_size(self, variable: Symbol) -> int:
        """Return the most numbers that `message_sum` computes for one row."""
        return variable.family.size

    def pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        """List every (element, row) where the row depends on that element of the variable."""
        ...

    def labels(self, variable: Symbol) -> set[str]:
        """Return the names of the axes that the index of the variable varies along."""
        ...

    def width(self, variable: Symbol) -> int:
        """Return the largest number of the variable's elements that one row depends on."""
        return 1

    def base(self, variable: Symbol, elements: Ints) -> Ints:
        """Return the first element of each element's sum group."""
        return elements

    def shares_rows(self, variable: Symbol) -> bool:
        """Whether every row that reads an element reads all other elements of its sum too."""
        return False

    def first_pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        """List (element, row) for the first element of each sum only, where the rows are shared."""
        return self.pairs(variable, rows)

    def firsts(self, variable: Symbol) -> Ints | None:
        """Return the first element that each row reads, where it reads one element or one sum.

        None elsewhere: the pairs have to be listed.
        """
        return None

    def colours(self, variable: Symbol, rows: Callable[[], Ints]) -> Ints | None:
        """Colour the elements so that no two of one colour share a row; None if none ever do."""
        return None


@dataclass(frozen=True, eq=False)
class Fixed(Slot):
    """A parameter that is known: its statistics, looked up by row."""

    statistics: Labelled
    scope: Scope

    @property
    def varies(self) -> bool:
        return bool(self.statistics.axes)

    @property
    def variables(self) -> list[Symbol]:
        return []

    @property
    def arrays(self) -> tuple[Labelled, ...]:
        return (self.statistics,)

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        found = self.scope.look_up(self.statistics, rows, rows)
        return found if self.statistics.axes else np.broadcast_to(found, (len(rows), len(found)))

    def entry(self, q: Beliefs, rows: Ints, column: Ints) -> Array:
        """Return one of the statistics at each row."""
        axes = (str(a) for a in self.statistics.axes)
        places = tuple(self.scope.coordinate(a, rows, rows) for a in axes)
        return np.asarray(self.statistics.values[(*places, column)])

    def message(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints, incoming: Array
    ) -> Array:
        raise AssertionError("a fixed parameter has no variables")

    def pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        raise AssertionError("a fixed parameter has no variables")

    def labels(self, variable: Symbol) -> set[str]:
        raise AssertionError("a fixed parameter has no variables")


@dataclass(frozen=True, eq=False)
class Single(Slot):
    """A parameter that is one element of one variable: moments and messages pass unchanged."""

    reader: Reader

    @property
    def varies(self) -> bool:
        return bool(self.reader.labels)

    @property
    def variables(self) -> list[Symbol]:
        return [self.reader.variable]

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        if self.varies:
            return q.at(self.reader.variable.name, self.reader.element(rows, rows))
        found = q.at(self.reader.variable.name, self.reader.element(ONE, ONE))
        return np.broadcast_to(found, (len(rows), found.shape[1]))

    def entry(self, q: Beliefs, rows: Ints, column: Ints) -> Array:
        """Return one of the expected statistics at each row."""
        return q.moments[self.reader.variable.name][self.reader.element(rows, rows), column]

    def message(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints, incoming: Array
    ) -> Array:
        return incoming

    def pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        return self.reader.element(rows, rows), rows

    def firsts(self, variable: Symbol) -> Ints | None:
        return self.reader.everywhere()

    def labels(self, variable: Symbol) -> set[str]:
        return self.reader.labels


@dataclass(frozen=True, eq=False)
class Product(Slot):
    """A positive number times Gammas: t = c g_1 g_2 ..., with E[t] = c prod E[g_f].

    The density is linear in t and log t, and so in g_f and log g_f for each f.
    """

    scale: float
    constants: tuple[Labelled, ...]
    readers: tuple[Reader, ...]
    scope: Scope

    @property
    def varies(self) -> bool:
        return any(c.axes for c in self.constants) or any(r.labels for r in self.readers)

    @property
    def variables(self) -> list[Symbol]:
        return [r.variable for r in self.readers]

    @property
    def arrays(self) -> tuple[Labelled, ...]:
        return self.constants

    def simplest(self) -> Single | Product:
        """Return a product of one Gamma alone as `Single`, the simplest parameter."""
        alone = len(self.readers) == 1 and not self.constants and self.scale == 1
        return Single(self.readers[0]) if alone else self

    def _constant(self, rows: Ints, inner: Ints) -> Array:
        value = np.full(len(rows), self.scale)
        for array in self.constants:
            value *= self.scope.look_up(array, rows, inner)
        return value

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        return self.moments_at(q, rows, rows)

    def moments_at(self, q: Beliefs, rows: Ints, inner: Ints) -> Array:
        """E[t] and E[log t] at each (row, inner index)."""
        constant = self._constant(rows, inner)
        mean, mean_log = constant, np.log(constant)
        for reader in self.readers:
            moments = q.moments[reader.variable.name][reader.element(rows, inner)]
            mean, mean_log = mean * moments[:, 0], mean_log + moments[:, 1]
        return stack(mean, mean_log)

    def others(self, q: Beliefs, variable: Symbol, rows: Ints, inner: Ints) -> Array:
        """Return the expected product of all but one variable."""
        value = self._constant(rows, inner)
        for reader in self.readers:
            if reader.variable is not variable:
                value *= q.moments[reader.variable.name][reader.element(rows, inner), 0]
        return value

    def message(
        self, q: Beliefs, variable: Symbol, elements: Ints, rows: Ints, incoming: Array
    ) -> Array:
        others = self.others(q, variable, rows, rows)
        return stack(incoming[:, 0] * others, incoming[:, 1])

    def pairs(self, variable: Symbol, rows: Ints) -> tuple[Ints, Ints]:
        return self.reader(variable).element(rows, rows), rows

    def labels(self, variable: Symbol) -> set[str]:
        return self.reader(variable).labels

    def reader(self, variable: Symbol) -> Reader:
        """Return the reader of a variable."""
        return next(r for r in self.readers if r.variable is variable)
