"""Constant steps: rho_t = rho."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from svmp.inference.methods.settings import Setting
from svmp.inference.steps.policy import Policy, StepContext, as_fraction, refuse
from svmp.network.validation import check_real, shown


@dataclass(frozen=True)
class Constant(Policy):
    """The same step rho in every iteration."""

    title: ClassVar[str] = "Constant"
    settings: ClassVar[dict[str, Setting]] = {"rho": Setting("1/64", 0.0001, 1, "Step, ρ")}
    rho: float
    force: bool = False

    def __post_init__(self) -> None:
        check_real(rho=self.rho)
        if not 0 < self.rho <= 1:
            refuse(f"rho is {shown(self.rho)}, but a step must be in (0, 1]", self.force)

    @property
    def at_most_one(self) -> bool:
        return not self.force

    def __call__(self, context: StepContext) -> float:
        return self.rho

    @property
    def label(self) -> str:
        return f"steps of {as_fraction(self.rho)}"
