"""X ~ Wishart(nu, rate): nu degrees of freedom, and as rate the inverse of the scale, E[X] = nu V.

    log p(X) = (nu - d - 1) / 2 log|X| - tr(rate X) / 2 + nu / 2 log|rate| - const.

The rate may be hidden: a Wishart (X then has a matrix F distribution), or a diagonal of Gammas (the
prior of Huang and Wand 2013, under which the standard deviations of X^-1 have half-t priors).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import ClassVar

import numpy as np
from scipy.special import multigammaln

from svmp import families
from svmp.factors.factor import Factor, Given, positive
from svmp.families.family import Array, Family
from svmp.families.matrix import join

LOG_2 = float(np.log(2))


class WishartRate(Factor):
    """Message to X: (-rate / 2, (nu - d - 1) / 2); to the rate: (-X / 2, nu / 2).

    >>> given = {"nu": np.array(4.0), "rate": families.Wishart(1).statistics([[2.0]])}
    >>> WishartRate().to_child(given)
    array([-1.,  1.])
    """

    child: ClassVar[type[Family]] = families.Wishart
    slots: ClassVar[Mapping[str, type[Family]]] = {"rate": families.Wishart}
    constants: ClassVar[Mapping[str, int]] = {"nu": 0}

    def family(self, length: int, constants: Mapping[str, Array]) -> Family:
        if not np.all(constants["nu"] > length - 1):
            raise ValueError(f"nu must be greater than {length - 1}, the dimension less one")
        return families.Wishart(length)

    def check(self, constants: Mapping[str, Array]) -> str | None:
        return None if positive(constants["nu"]) else "nu must be positive"

    def to_child(self, given: Given) -> Array:
        last = 0.5 * (np.asarray(given["nu"]) - _dimension(given) - 1)
        return join(-0.5 * given["rate"][..., :-1], last[..., None])

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        return join(-0.5 * child[..., :-1], 0.5 * np.asarray(given["nu"])[..., None])

    def log_normaliser(self, given: Given) -> Array:
        nu, d = np.asarray(given["nu"]), _dimension(given)
        return np.asarray(
            multigammaln(0.5 * nu, d) + 0.5 * nu * (d * LOG_2 - given["rate"][..., -1])
        )


def _dimension(given: Given) -> int:
    return isqrt(given["rate"].shape[-1] - 1)
