"""x ~ Gamma(alpha, beta): alpha a positive number, beta the rate, a Gamma itself if hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from svmp import families
from svmp.factors.factor import Factor, Given, positive
from svmp.families.family import Array, Family, stack


class Gamma(Factor):
    """Message to x: (-beta, alpha - 1); to beta: (-x, alpha)."""

    child: ClassVar[type[Family]] = families.Gamma
    slots: ClassVar[Mapping[str, type[Family]]] = {"beta": families.Gamma}
    constants: ClassVar[Mapping[str, int]] = {"alpha": 0}

    def check(self, constants: Mapping[str, Array]) -> str | None:
        return None if positive(constants["alpha"]) else "alpha must be positive"

    def to_child(self, given: Given) -> Array:
        return stack(-given["beta"][..., 0], given["alpha"] - 1)

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        return stack(-child[..., 0], given["alpha"])

    def log_normaliser(self, given: Given) -> Array:
        alpha = given["alpha"]
        return np.asarray(gammaln(alpha) - alpha * given["beta"][..., 1])
