"""lambda_temp of shared variables, computed from their sums as these arrive, some at a time.

The sums also say how much E[log p] of the rows rises from the current q to that of lambda_temp.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from svmp.families.family import Array, Family
from svmp.inference.updaters.solver import LineSolver, Solver
from svmp.parts.schedule import Asked


@dataclass(eq=False)
class Solution:
    """lambda_temp of shared variables.

    Attributes
    ----------
    number
        Which of the sums that parts are asked for it is computed from.
    solver
        Computes it.
    prior, natural
        By variable, eta_i and the current natural parameters of all elements that are updated.
    target
        By variable, lambda_temp, as far as its sums have arrived.
    family
        The family of the variable if gains are computed, else None.
    gains
        How much E[log p] of the rows rises, by line of the sums.
    """

    number: int
    solver: Solver
    prior: dict[str, Array]
    natural: dict[str, Array]
    target: dict[str, Array]
    family: Family | None = None
    gains: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(
        cls,
        number: int,
        asked: Asked,
        prior: dict[str, Array],
        natural: dict[str, Array],
        measures: bool,
    ) -> Solution:
        """Return a solution before it has any sums."""
        target, solver = (
            {name: np.empty_like(array) for name, array in natural.items()},
            asked.solver,
        )
        found = cls(number, solver, prior, natural, target)
        if measures and isinstance(solver, LineSolver):
            found.family = asked.family
            found.gains = np.zeros(len(natural[solver.name]) // solver.width)
        return found

    def take(self, lines: slice, sums: Array) -> None:
        """Solve for the elements of some lines of the sums."""
        if not isinstance(self.solver, LineSolver):
            self.target |= self.solver.solve(sums, self.prior, self.natural)
            return
        width = self.solver.width
        some = slice(lines.start * width, lines.stop * width)
        prior, natural = (
            {name: array[some] for name, array in arrays.items()}
            for arrays in (self.prior, self.natural)
        )
        for name, found in self.solver.solve(sums, prior, natural).items():
            self.target[name][some] = found
            if self.family is not None:
                before, after = self.family.moments(natural[name]), self.family.moments(found)
                self.gains[lines] = self.solver.gains(sums, before, after)
