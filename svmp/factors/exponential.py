"""x ~ Exponential(lam), with the rate lam a Gamma if it is hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from svmp import families
from svmp.factors.factor import Factor, Given
from svmp.families.family import Array, Family, stack


class Exponential(Factor):
    """Message to x: -E[lam]; to lam: (-x, 1).

    >>> Exponential().to_parent("lam", child=families.Exponential().statistics(3), given={})
    array([-3.,  1.])
    """

    child: ClassVar[type[Family]] = families.Exponential
    slots: ClassVar[Mapping[str, type[Family]]] = {"lam": families.Gamma}
    constants: ClassVar[Mapping[str, int]] = {}

    def to_child(self, given: Given) -> Array:
        return -given["lam"][..., :1]

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        return stack(-child[..., 0], 1.0)

    def log_normaliser(self, given: Given) -> Array:
        return -given["lam"][..., 1]
