"""x ~ Poisson(mu), with mu a Gamma if it is hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from svmp import families
from svmp.factors.factor import Factor, Given
from svmp.families.family import Array, Family, stack


class Poisson(Factor):
    """Message to x: E[log mu]; to mu: (-1, x).

    >>> Poisson().to_parent("mu", child=families.Poisson().statistics(3), given={})
    array([-1.,  3.])
    """

    child: ClassVar[type[Family]] = families.Poisson
    slots: ClassVar[Mapping[str, type[Family]]] = {"mu": families.Gamma}
    constants: ClassVar[Mapping[str, int]] = {}

    def to_child(self, given: Given) -> Array:
        return given["mu"][..., 1:]

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        return stack(-1.0, child[..., 0])

    def log_normaliser(self, given: Given) -> Array:
        return given["mu"][..., 0]
