"""x ~ Bernoulli(p), with p a Beta if it is hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from svmp import families
from svmp.factors.factor import Factor, Given
from svmp.families.family import Array, Family, stack


class Bernoulli(Factor):
    """Message to x: E[log p] - E[log(1 - p)]; to p: (x, 1 - x).

    >>> Bernoulli().to_child({"p": families.Beta().statistics(0.5)})
    array([0.])
    """

    child: ClassVar[type[Family]] = families.Bernoulli
    slots: ClassVar[Mapping[str, type[Family]]] = {"p": families.Beta}
    constants: ClassVar[Mapping[str, int]] = {}

    def to_child(self, given: Given) -> Array:
        return given["p"][..., :1] - given["p"][..., 1:]

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        return stack(child[..., 0], 1 - child[..., 0])

    def log_normaliser(self, given: Given) -> Array:
        return -given["p"][..., 1]
