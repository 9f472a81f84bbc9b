"""Node-wise steps: each element has its own delay, which follows from its child count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.methods.settings import Setting
from svmp.inference.steps.policy import Policy, StepContext
from svmp.inference.steps.robbins_monro import KAPPA, RobbinsMonro, delay
from svmp.network.validation import check_real, shown

READINGS = 2.0
"""Passes over the children of an element after which its residuals are no larger than noise."""
CROWD = 10
"""Most elements in a row for which c is not reduced: K = 5 in a matrix factorization."""
TRUST = Setting(0.25, 0.0001, 1, "Share of noise, c")


@dataclass(frozen=True)
class Nodewise(Policy):
    """A delay for each element, which keeps the sampling noise below the posterior spread.

    The first step is c C / (c C + N_i - C). With c = 1 this is a Wiener filter: a draw of C of N_i
    children adds noise of size N_i s / sqrt(C) to lambda_i, where the posterior spread is
    sqrt(N_i) s. Early residuals are larger than this model assumes, so c starts below 1 and grows
    to 1 while an element reads twice as many rows as it has children. Then steps decay as
    (t + tau_i)^-kappa. Where all children are read there is no sampling noise, and the step is 1.

    The noise of all elements in a row adds up in its residual. So c applies to up to ten elements,
    K = 5 in a matrix factorization, and is reduced in proportion where there are more. In option
    (b) steps are also at most 2 / (1 + coupling), here 1 / K, since elements move together.
    """

    title: ClassVar[str] = "Node-wise, from child counts"
    adaptive: ClassVar[bool] = True
    settings: ClassVar[dict[str, Setting]] = {"c": TRUST, "kappa": KAPPA}
    c: float = 0.25
    kappa: float = 0.6

    def __post_init__(self) -> None:
        check_real(c=self.c)
        if not 0 < self.c <= 1:
            raise ModelError(f"c must be in (0, 1], not {shown(self.c)}")
        RobbinsMonro(self.kappa)

    def __call__(self, context: StepContext) -> Array:
        grown = self.c + (1 - self.c) * np.minimum(context.readings / READINGS, 1)
        rho = wiener(grown, context)
        decayed = (context.iteration + delay(rho, self.kappa)) ** -self.kappa
        return np.minimum(np.where(rho < 1, decayed, 1.0), largest_joint_step(context))

    @property
    def decay(self) -> float:
        return self.kappa

    @property
    def label(self) -> str:
        return f"node-wise steps, c = {self.c:g}, κ = {self.kappa:g}"


def wiener(c: float | Array, context: StepContext) -> Array:
    """Return c C / (c C + N - C): 1 where all children are read; c is reduced in crowded rows."""
    unread = np.maximum(context.children - context.read, 0)
    known = c * min(1, CROWD / (1 + context.coupling)) * np.maximum(context.read, 1)
    return known / (known + unread)


def largest_joint_step(context: StepContext) -> float:
    """Return the largest step at which elements that move together do not overshoot."""
    return 2 / (1 + context.coupling) if context.together and context.coupling else 1.0
