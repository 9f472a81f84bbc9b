"""Step sizes: how far lambda_i moves towards what the rows that were read say it should be.

A policy is any function from a `StepContext` at some elements to their steps, between 0 and 1; one of
your own is a few lines:

>>> def cautious(look):
...     return 0.5 * look.read / look.children
>>> from svmp import StepContext
>>> cautious(StepContext("u", 1, children=np.array([100]), read=np.array([4])))
array([0.02])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.selection import MOST, Children, Selection
from svmp.network.grid import Ints
from svmp.network.validation import check_real, shown


@dataclass(frozen=True)
class StepContext:
    """What a policy may look at, for some elements of one variable.

    Attributes
    ----------
    variable, iteration
        The variable's name, and the number of the iteration, from 1.
    children, read
        N_i and |rows_i|: how many children each element has, and how many it reads now. Under
        `Batch(size, over=dim)` groups are drawn, and so it is D groups and S that are read.
    coupling
        How many other elements share a row with each, at most.
    together
        Whether they move at the same time, as in option (b).
    share
        The part of all observations that an iteration draws, where it draws for all elements and
        moves those that have a child in it, as `Batch(size)` does.
    gradient, square
        Running means of the natural gradient and of its square, (elements, size); kept only for
        policies with an attribute `statistics` that is true.
    """

    variable: str
    iteration: int
    children: Ints
    read: Ints
    coupling: int = 0
    together: bool = False
    share: float | None = None
    gradient: Array | None = None
    square: Array | None = None

    @property
    def readings(self) -> Array:
        """How many times over each element has read its children before, on average."""
        share = self.read / np.maximum(self.children, 1) if self.share is None else self.share
        return np.asarray((self.iteration - 1) * share)


READINGS = 2.0
"""After how many readings of all its children an element's residuals are no larger than noise."""
CROWD = 10
"""Elements in a row up to which c holds as it is: K = 5 in a matrix factorization."""

Steps = Callable[[StepContext], ArrayLike]


def refuse(trouble: str, force: object) -> None:
    """Refuse parameters outside the theory, unless forced."""
    if not isinstance(force, bool | int) or not force:
        raise ModelError(f"{trouble}; force=True takes it all the same")


@dataclass(frozen=True)
class RobbinsMonro:
    """rho_t = (t + tau)^-kappa, the paper's schedule.

    Parameters
    ----------
    kappa
        Forgetting rate, in (1/2, 1].
    tau
        Delay, at least 0.
    rho1
        First step, instead of tau: tau = rho1^(-1/kappa) - 1.
    force
        Accept parameters for which convergence is not guaranteed.

    >>> RobbinsMonro(kappa=0.6, rho1=1 / 512).tau
    32767.0
    """

    kappa: float = 0.6
    tau: float | None = None
    rho1: float | None = None
    force: bool = False

    def __post_init__(self) -> None:
        check_real(
            kappa=self.kappa,
            tau=0 if self.tau is None else self.tau,
            rho1=0 if self.rho1 is None else self.rho1,
        )
        if not 0.5 < self.kappa <= 1:
            refuse(
                f"kappa is {shown(self.kappa)}, but only for 1/2 < kappa <= 1 do steps add up to "
                "infinity and their squares do not",
                self.force,
            )
        if self.tau is not None and self.rho1 is not None:
            raise ModelError("give tau or rho1, not both: each follows from the other")
        if self.rho1 is not None:
            if not 0 < self.rho1 <= 1:
                refuse(f"rho1 is {shown(self.rho1)}, but a step must be in (0, 1]", self.force)
            try:
                tau = float(delay(self.rho1, self.kappa))
            except (ArithmeticError, TypeError):  # TypeError: it is not a real number
                raise ModelError(f"no tau has {shown(self.rho1)} as its first step, rho1") from None
            object.__setattr__(self, "tau", tau)
        elif self.tau is None:
            object.__setattr__(self, "tau", 0.0)
        elif not self.tau >= 0:
            refuse(f"tau is {shown(self.tau)}, but a delay must not be negative", self.force)

    def __call__(self, look: StepContext) -> float:
        return decayed(look.iteration + (self.tau or 0.0), self.kappa)


@dataclass(frozen=True)
class HoldThenDecay:
    """Unit steps for `hold` iterations, then rho_t = (t - hold + tau)^-kappa, as at Xbox."""

    hold: int = 10
    kappa: float = 0.6
    tau: float = 0.0
    force: bool = False

    def __post_init__(self) -> None:
        check_real(hold=self.hold)
        if not self.hold >= 0:
            raise ModelError(f"hold must not be negative, not {shown(self.hold)}")
        RobbinsMonro(self.kappa, self.tau, force=self.force)

    def __call__(self, look: StepContext) -> float:
        after = look.iteration - self.hold
        return 1.0 if after <= 0 else min(1.0, decayed(after + self.tau, self.kappa))


@dataclass(frozen=True)
class Constant:
    """The same step always."""

    rho: float
    force: bool = False

    def __post_init__(self) -> None:
        check_real(rho=self.rho)
        if not 0 < self.rho <= 1:
            refuse(f"rho is {shown(self.rho)}, but a step must be in (0, 1]", self.force)

    def __call__(self, look: StepContext) -> float:
        return self.rho


@dataclass(frozen=True)
class Nodewise:
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

    c: float = 0.25
    kappa: float = 0.6

    def __post_init__(self) -> None:
        check_real(c=self.c)
        if not 0 < self.c <= 1:
            raise ModelError(f"c must be in (0, 1], not {shown(self.c)}")
        RobbinsMonro(self.kappa)

    def __call__(self, look: StepContext) -> Array:
        grown = self.c + (1 - self.c) * np.minimum(look.readings / READINGS, 1)
        rho = wiener(grown, look)
        decayed = (look.iteration + delay(rho, self.kappa)) ** -self.kappa
        return np.minimum(np.where(rho < 1, decayed, 1.0), bearable(look))


@dataclass(frozen=True)
class Grow:
    """Node-wise steps without decay, while C grows by a factor each iteration.

    Early it is cheap and noisy. As C passes N_i each element's step becomes 1 and its gradient
    exact, and the run ends as full VB.
    """

    start: float = 5
    rate: float = 1.15
    c: float = 0.5

    def __post_init__(self) -> None:
        check_real(start=self.start, rate=self.rate, c=self.c)
        if not self.start >= 1 or not self.rate > 1 or not self.c > 0:
            given = f"{shown(self.start)}, {shown(self.rate)} and {shown(self.c)}"
            raise ModelError(f"Grow needs start >= 1, rate > 1 and a positive c, not {given}")

    def selection(self, method: Selection, iteration: int) -> Selection:
        """Return the algorithm with the C of this iteration."""
        if not isinstance(method, Children):
            raise ModelError("Grow sets how many children are read, so it goes with Children")
        growth = self.rate ** min(iteration - 1, 60 / np.log2(self.rate))
        return replace(method, C=int(min(self.start * growth, MOST)))

    def __call__(self, look: StepContext) -> Array:
        return np.minimum(wiener(self.c, look), bearable(look))


def decayed(time: float, kappa: float) -> float:
    """Return time^-kappa; where forced parameters make that too large, infinity."""
    try:
        return float(time**-kappa)
    except ArithmeticError:
        return np.inf


def delay(rho1: Any, kappa: float) -> Any:
    """Return the tau from which steps start at rho1."""
    return rho1 ** (-1 / kappa) - 1


def wiener(c: float | Array, look: StepContext) -> Array:
    """Return c C / (c C + N - C): 1 where all children are read. c falls where a row is crowded."""
    unread = np.maximum(look.children - look.read, 0)
    known = c * min(1, CROWD / (1 + look.coupling)) * np.maximum(look.read, 1)
    return known / (known + unread)


def bearable(look: StepContext) -> float:
    """Return the largest step at which elements that move together do not overshoot together."""
    return 2 / (1 + look.coupling) if look.together and look.coupling else 1.0
