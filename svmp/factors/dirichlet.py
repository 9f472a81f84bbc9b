"""x ~ Dirichlet(a), with a fixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from svmp import families
from svmp.factors.factor import Factor, Given, positive
from svmp.families.family import Array, Family


class Dirichlet(Factor):
    """Message to x: a - 1.

    >>> import numpy as np
    >>> Dirichlet().to_child({"a": np.array([0.5, 2.0, 1.0])})
    array([-0.5,  1. ,  0. ])
    """

    child: ClassVar[type[Family]] = families.Dirichlet
    slots: ClassVar[Mapping[str, type[Family]]] = {}
    constants: ClassVar[Mapping[str, int]] = {"a": 1}

    def check(self, constants: Mapping[str, Array]) -> str | None:
        return None if positive(constants["a"]) else "a must be positive"

    def to_child(self, given: Given) -> Array:
        return _family(given).natural(given["a"])

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        raise KeyError(slot)

    def log_normaliser(self, given: Given) -> Array:
        return _family(given).log_partition(self.to_child(given))


def _family(given: Given) -> families.Dirichlet:
    return families.Dirichlet(given["a"].shape[-1])
