"""Steps from child counts: for each element its own delay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.settings import Setting
from svmp.inference.steps.policy import Policy, StepContext
from svmp.inference.steps.robbins_monro import KAPPA, RobbinsMonro, delay
from svmp.network.validation import check_real, shown

READINGS = 2.0
"""After how many readings of all its children an element's residuals are no larger than noise."""
CROWD = 10
"""Elements in a row up to which c holds as it is: K = 5 in a matrix factorization."""
TRUST = Setting(0.25, 0.0001, 1, "Share of noise, c")


@dataclass(frozen=True)
class Nodewise(Policy):
    """Each element its own delay, so that the noise of sampling stays below what is not known.

    The first step is c C / (c C + N_i - C). With c = 1 that is a Wiener filter: one draw of C of
    N_i children leaves N_i s / sqrt(C) of noise in lambda_i where the posterior's own spread is
    sqrt(N_i) s. At first residuals are larger than that says, so steps begin with c, which grows
    to 1 while an element reads as many rows as it has children twice over. From there they decay
    as (t + tau_i)^-kappa. Where every child is read nothing is sampled, and the step is 1.

    The noise of all elements in a row adds up in its residual. So c is for ten of them, K = 5 in
    a matrix factorization, and is divided where there are more. In option (b) steps are also
    kept below what elements that move together can bear, 2 / (1 + coupling): 1 / K.
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
        return np.minimum(np.where(rho < 1, decayed, 1.0), bearable(context))

    @property
    def decay(self) -> float:
        return self.kappa

    @property
    def label(self) -> str:
        return f"node-wise steps, c = {self.c:g}, κ = {self.kappa:g}"


def wiener(c: float | Array, context: StepContext) -> Array:
    """Return c C / (c C + N - C): 1 where all children are read. c falls where a row is crowded."""
    unread = np.maximum(context.children - context.read, 0)
    known = c * min(1, CROWD / (1 + context.coupling)) * np.maximum(context.read, 1)
    return known / (known + unread)


def bearable(context: StepContext) -> float:
    """Return the largest step at which elements that move together do not overshoot together."""
    return 2 / (1 + context.coupling) if context.together and context.coupling else 1.0
