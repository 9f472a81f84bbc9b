"""The interface of updaters, which compute the new natural parameters of hidden variables.

    lambda_i_temp = eta_i + (N_i / |rows_i|) * sum over e in rows_i of eta_(e -> i)
    lambda_i     <- (1 - rho_i) lambda_i + rho_i lambda_i_temp

`inference/program/program.py` chooses the updater of each variable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.inference.methods.draw import Draw
from svmp.inference.methods.sums_by_part import SumsByPart
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.solver import Places, Solver
from svmp.network.beliefs import Beliefs, RowLosses
from svmp.network.grid import Ints

NO_ELEMENTS = np.zeros(0, dtype=np.int64)
NO_NATURAL = np.zeros((0, 0))
Term = Callable[[Beliefs], float]
"""The term of one variable in the bound."""


class Change(NamedTuple):
    """New natural parameters of some elements of a variable, and the cost of computing them.

    Attributes
    ----------
    accesses
        Rows read.
    rho, read
        Step of each element or one for all, and number of rows that each element read; None for
        local variables.
    applied
        Whether the new values are in q already: compiled loops write them in place in option (a).
    losses
        Sums over all rows of a table at the new values, from which its term of the bound follows.
    """

    name: str
    elements: Ints
    natural: Array
    accesses: int
    rho: Array | None = None
    read: Ints | None = None
    applied: bool = False
    losses: RowLosses | None = None

    @classmethod
    def of_rows_read(cls, name: str, accesses: int) -> Change:
        """Return a change that is in q already, and only adds to the count of rows read."""
        return cls(name, NO_ELEMENTS, NO_NATURAL, accesses, applied=True)


def blend(old: Array, target: Array, rho: Array) -> Array:
    """Return (1 - rho) lambda + rho lambda_temp, with a step for each row or one for all."""
    if len(rho) == 1 and rho[0] == 1:
        return target + 0.0
    step = rho.reshape(-1, *[1] * (target.ndim - 1))
    return np.asarray((1 - step) * old + step * target)


class Updater(ABC):
    """Updates the elements of one or more hidden variables.

    Attributes
    ----------
    label
        Short description, for `svmp.explain`.
    """

    label: str

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The variables that it updates."""

    @property
    def solves_together(self) -> bool:
        """Whether elements that share rows are solved together, so that all are optimal."""
        return False

    @abstractmethod
    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        """Yield the new natural parameters of elements that can be updated together.

        In option (a) each change is applied before the next one is computed.
        """

    @abstractmethod
    def bound_term(self, q: Beliefs) -> dict[str, float]:
        """Return the terms of its variables in the bound."""

    def prepare(self) -> None:
        """Begin to compile what an update of all rows needs, in another process."""
        return None

    def sums_by_part(self) -> dict[str, SumsByPart]:
        """Return the sums that it keeps by part, by variable, before any part was read."""
        return {}


LineAdder = Callable[[Array, slice, int], None]
"""Adds sums over rows to some lines of a total, of which an array has those from an offset on."""


class SummingUpdater(Updater):
    """An updater of variables whose messages reduce to sums over rows.

    The sums of disjoint sets of rows add, wherever the rows are: in files, on other machines, from
    another day. Its solver then returns lambda_temp as if all rows had been read together.
    """

    @property
    @abstractmethod
    def solver(self) -> Solver:
        """The solver of its sums, which knows nothing of the rows."""

    @abstractmethod
    def sums(self, q: Beliefs, rows: Draw) -> Array:
        """Return the sums over the rows drawn, as they are, in the layout of the solver."""

    def add_sums(self, q: Beliefs, rows: Draw, total: Array, places: Places) -> None:
        """Add the sums over the rows drawn to a total, in place, as `Solver.add` does."""
        self.solver.add(total, self.sums(q, rows), places)

    def line_adder(self, q: Beliefs, rows: Draw, places: Places) -> LineAdder | None:
        """Return `add_sums` as a function of a total and of some of its lines.

        None if the sums have no lines that are added by themselves.
        """
        return None

    def solve_rows(
        self, q: Beliefs, rows: Draw, prior: Array, measured: bool = False
    ) -> Change | None:
        """Return lambda_temp of all elements at once from all rows, without sums that are stored.

        `prior` is eta_i of every element. q is not changed. None if only sums can be solved. If
        they are `measured`, the losses of all rows come with it, where loops compute them.
        """
        return None
