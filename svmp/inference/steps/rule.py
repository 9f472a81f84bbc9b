"""The step rho_i of each element in one iteration: a policy applied to a draw of rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.methods.draw import ONE, Draw
from svmp.inference.methods.method import Option
from svmp.inference.methods.sums_by_part import Memo
from svmp.inference.steps.constant import Constant
from svmp.inference.steps.policy import Policy, StepContext
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints

MEMORY = 0.1
"""Weight of the newest gradient in the running statistics."""


@dataclass
class GradientStatistics:
    """Running means of the natural gradient and its square, by variable; NaN before the first."""

    gradient: dict[str, Array] = field(default_factory=dict)
    square: dict[str, Array] = field(default_factory=dict)

    def add(self, q: Beliefs, name: str, elements: Ints, target: Array) -> tuple[Array, Array]:
        """Add the newest natural gradient of some elements; return both of their means."""
        new = target - q.natural[name][elements]
        for mean, value in ((self.gradient, new), (self.square, new**2)):
            old = mean.setdefault(name, np.full_like(q.natural[name], np.nan))
            seen = np.isfinite(old[elements])
            old[elements] = np.where(seen, (1 - MEMORY) * old[elements] + MEMORY * value, value)
        return self.gradient[name][elements], self.square[name][elements]


@dataclass(frozen=True)
class StepRule:
    """The steps of one iteration; local variables have unit steps.

    Attributes
    ----------
    damping
        Factor of all steps, below 1 after a rollback.
    statistics
        Statistics of the gradient, for policies that use them.
    memo
        Sums by part, for methods that keep them.
    omega, relaxed
        Factor of over-relaxation, and the blocks of variables to which updaters apply it at once.
    measured
        Variables whose updates also compute the losses of the rows of their table.
    """

    rows: Draw
    policy: Policy
    option: Option = "a"
    iteration: int = 1
    damping: float = 1.0
    statistics: GradientStatistics = field(default_factory=GradientStatistics)
    memo: Memo = field(default_factory=Memo)
    omega: float = 1.0
    relaxed: tuple[tuple[str, ...], ...] = ()
    measured: Collection[str] = ()

    @classmethod
    def unit(cls, rows: Draw) -> StepRule:
        """Return unit steps in option (a): coordinate ascent."""
        return cls(rows, Constant(1.0))

    def at_once(self, name: str) -> bool:
        """Return whether new values of a variable are used within the iteration."""
        return self.option == "a" or name in self.rows.locals

    def relaxes(self, names: tuple[str, ...]) -> bool:
        """Return whether the means of a block are moved beyond their solution."""
        return self.omega != 1 and names in self.relaxed

    def __call__(
        self,
        q: Beliefs,
        name: str,
        elements: Ints,
        read: Ints,
        target: Array | None = None,
        children: Ints | None = None,
    ) -> Array:
        """Return the step of each element, or one step for all.

        Parameters
        ----------
        q, name, elements
            The elements of a variable.
        read, children
            Number of children that each element reads, and that it has.
        target
            lambda_temp of each element, for policies that use statistics of the gradient.
        """
        if name in self.rows.locals:
            return ONE
        gradient = square = None
        if self.policy.statistics and target is not None:
            gradient, square = self.statistics.add(q, name, elements, target)
        context = StepContext(
            name,
            self.iteration,
            self.rows.children(name, elements) if children is None else children,
            read,
            self.rows.coupling[name],
            self.option == "b",
            self.rows.batch_share,
            gradient,
            square,
        )
        try:
            rho = np.atleast_1d(np.asarray(self.policy(context), dtype=np.float64))
            if rho.shape not in ((1,), elements.shape):
                raise ValueError(f"an array of shape {rho.shape} for {len(elements)} elements")
        except (TypeError, ValueError) as error:
            raise ModelError(f"the steps for '{name}' are not a number each: {error}") from None
        rho = rho if self.damping == 1 else self.damping * rho
        sound = 0 < rho[0] < np.inf if len(rho) == 1 else (np.isfinite(rho) & (rho > 0)).all()
        if not sound:
            raise ModelError(f"the steps for '{name}' must be positive and finite, not {rho.min()}")
        return rho
