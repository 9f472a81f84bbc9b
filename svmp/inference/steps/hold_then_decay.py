"""The schedule of the Xbox recommender: unit steps at first, then the paper's schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from svmp.errors import ModelError
from svmp.inference.methods.settings import Setting
from svmp.inference.steps.policy import Policy, StepContext
from svmp.inference.steps.robbins_monro import KAPPA, RobbinsMonro, decayed
from svmp.network.validation import check_real, shown


@dataclass(frozen=True)
class HoldThenDecay(Policy):
    """Unit steps for `hold` iterations, then rho_t = (t - hold + tau)^-kappa, as at Xbox."""

    title: ClassVar[str] = "Hold at 1, then decay"
    settings: ClassVar[dict[str, Setting]] = {
        "hold": Setting(10, 0, 1000, "Iterations at 1", whole=True),
        "kappa": KAPPA,
    }
    hold: int = 10
    kappa: float = 0.6
    tau: float = 0.0
    force: bool = False

    def __post_init__(self) -> None:
        check_real(hold=self.hold)
        if not self.hold >= 0:
            raise ModelError(f"hold must not be negative, not {shown(self.hold)}")
        RobbinsMonro(self.kappa, self.tau, force=self.force)

    @property
    def at_most_one(self) -> bool:
        return not self.force

    def __call__(self, context: StepContext) -> float:
        after = context.iteration - self.hold
        return 1.0 if after <= 0 else min(1.0, decayed(after + self.tau, self.kappa))

    @property
    def decay(self) -> float:
        return self.kappa

    @property
    def label(self) -> str:
        return f"{self.hold} unit steps, then t^−{self.kappa:g}"
