"""x ~ Multinomial(n, p): n fixed, p a Dirichlet if it is hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from svmp import families
from svmp.factors.factor import Factor, Given, check_trials
from svmp.families.family import Array, Family


class Multinomial(Factor):
    """Message to x: E[log p]; to p: the counts x.

    >>> Multinomial().to_parent("p", child=np.array([4.0, 0.0, 6.0]), given={})
    array([4., 0., 6.])
    """

    child: ClassVar[type[Family]] = families.Multinomial
    slots: ClassVar[Mapping[str, type[Family]]] = {"p": families.Dirichlet}
    constants: ClassVar[Mapping[str, int]] = {"n": 0}

    def family(self, length: int, constants: Mapping[str, Array]) -> Family:
        return families.Multinomial(length, np.asarray(constants["n"]).astype(np.int64))

    def check(self, constants: Mapping[str, Array]) -> str | None:
        return check_trials(constants["n"])

    def to_child(self, given: Given) -> Array:
        return given["p"]

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        return child

    def log_normaliser(self, given: Given) -> Array:
        # Zero, because p sums to one; n enters through the child's base measure alone.
        return np.zeros(given["p"].shape[:-1])
