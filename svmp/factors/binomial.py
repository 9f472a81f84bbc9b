"""x ~ Binomial(n, p): n fixed, p a Beta if it is hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from svmp import families
from svmp.factors.factor import Factor, Given, check_trials
from svmp.families.family import Array, Family, stack


class Binomial(Factor):
    """Message to x: E[log p] - E[log(1 - p)]; to p: (x, n - x).

    >>> Binomial().to_parent("p", child=np.array([3.0]), given={"n": np.array(10)})
    array([3., 7.])
    """

    child: ClassVar[type[Family]] = families.Binomial
    slots: ClassVar[Mapping[str, type[Family]]] = {"p": families.Beta}
    constants: ClassVar[Mapping[str, int]] = {"n": 0}

    def family(self, length: int, constants: Mapping[str, Array]) -> Family:
        return families.Binomial(trials=np.asarray(constants["n"]).astype(np.int64))

    def check(self, constants: Mapping[str, Array]) -> str | None:
        return check_trials(constants["n"])

    def to_child(self, given: Given) -> Array:
        return given["p"][..., :1] - given["p"][..., 1:]

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        return stack(child[..., 0], given["n"] - child[..., 0])

    def log_normaliser(self, given: Given) -> Array:
        return -given["n"] * given["p"][..., 1]
