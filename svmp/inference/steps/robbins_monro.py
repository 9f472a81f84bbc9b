"""The paper's schedule: rho_t = (t + tau)^-kappa."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from svmp.errors import ModelError
from svmp.inference.methods.settings import Setting
from svmp.inference.steps.policy import Policy, StepContext, as_fraction, refuse
from svmp.network.validation import check_real, shown

KAPPA = Setting(0.6, -10, 10, "Forgetting rate, κ")


@dataclass(frozen=True)
class RobbinsMonro(Policy):
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

    title: ClassVar[str] = "Robbins–Monro: (t + τ)^−κ"
    settings: ClassVar[dict[str, Setting]] = {
        "kappa": KAPPA,
        "rho1": Setting("1", 0.0001, 1, "First step, ρ₁"),
    }
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

    @property
    def at_most_one(self) -> bool:
        return not self.force

    def __call__(self, context: StepContext) -> float:
        return decayed(context.iteration + (self.tau or 0.0), self.kappa)

    @property
    def decay(self) -> float:
        return self.kappa

    @property
    def label(self) -> str:
        if not self.tau:
            return f"steps t^−{self.kappa:g}"
        first = as_fraction(decayed(1 + self.tau, self.kappa))
        return f"from ρ₁ = {first}, κ = {self.kappa:g}"

    def recipe(self) -> dict[str, Any]:
        return super().recipe() | {"rho1": None}  # tau follows from it


def decayed(time: float, kappa: float) -> float:
    """Return time^-kappa, or infinity if it overflows with forced parameters."""
    try:
        return float(time**-kappa)
    except ArithmeticError:
        return np.inf


def delay(rho1: Any, kappa: float) -> Any:
    """Return the tau for which the first step is rho1."""
    return rho1 ** (-1 / kappa) - 1
