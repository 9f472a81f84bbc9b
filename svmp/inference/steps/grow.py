"""Constant node-wise steps with a number of children C that grows until all are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.methods import Children, Method
from svmp.inference.methods.method import MOST
from svmp.inference.methods.settings import Setting
from svmp.inference.steps.nodewise import TRUST, largest_joint_step, wiener
from svmp.inference.steps.policy import Policy, StepContext
from svmp.network.validation import check_real, shown


@dataclass(frozen=True)
class Grow(Policy):
    """Node-wise steps without decay, while C grows by a factor each iteration.

    Early iterations are cheap and noisy. Once C exceeds N_i, the step of an element is 1 and its
    gradient is exact, so that the run ends as full VB.
    """

    title: ClassVar[str] = "Grow: C rises, steps stay"
    adaptive: ClassVar[bool] = True
    settings: ClassVar[dict[str, Setting]] = {
        "start": Setting(5, 1, 1_000_000, "C starts at"),
        "rate": Setting(1.15, 1.01, 100, "and grows by"),
        "c": replace(TRUST, default=0.5),
    }
    start: float = 5
    rate: float = 1.15
    c: float = 0.5

    def __post_init__(self) -> None:
        check_real(start=self.start, rate=self.rate, c=self.c)
        if not self.start >= 1 or not self.rate > 1 or not self.c > 0:
            given = f"{shown(self.start)}, {shown(self.rate)} and {shown(self.c)}"
            raise ModelError(f"Grow needs start >= 1, rate > 1 and a positive c, not {given}")

    def method_at(self, method: Method, iteration: int) -> Method:
        """Return the method with the C of this iteration."""
        growth = self.rate ** min(iteration - 1, 60 / np.log2(self.rate))
        return method.with_children(int(min(self.start * growth, MOST)))

    def __call__(self, context: StepContext) -> Array:
        return np.minimum(wiener(self.c, context), largest_joint_step(context))

    def default_method(self) -> Method:
        return Children(1, share_draw=True)

    @property
    def label(self) -> str:
        return f"C grows from {self.start:g} by {self.rate:g}, c = {self.c:g}"
