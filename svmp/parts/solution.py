"""lambda_temp of shared variables, computed from their sums as these arrive, some at a time."""

from __future__ import annotations

from dataclasses import dataclass

from svmp.families.family import Array
from svmp.inference.updaters.solver import LineSolver, Solver


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
    """

    number: int
    solver: Solver
    prior: dict[str, Array]
    natural: dict[str, Array]
    target: dict[str, Array]

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
