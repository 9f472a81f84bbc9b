"""X ~ Wishart(nu, V), both fixed: nu degrees of freedom, V the scale, E[X] = nu V."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from svmp import families
from svmp.factors.factor import Factor, Given
from svmp.families.family import Array, Family
from svmp.families.matrix import is_positive_definite, is_symmetric


class Wishart(Factor):
    """Message to X: (-V^-1 / 2, (nu - d - 1) / 2).

    >>> Wishart().to_child({"nu": np.array(4.0), "V": np.array([[0.5]])})
    array([-1.,  1.])
    """

    child: ClassVar[type[Family]] = families.Wishart
    slots: ClassVar[Mapping[str, type[Family]]] = {}
    constants: ClassVar[Mapping[str, int]] = {"nu": 0, "V": 2}

    def check(self, constants: Mapping[str, Array]) -> str | None:
        nu, V = (np.asarray(constants[name], dtype=np.float64) for name in ("nu", "V"))
        d = V.shape[-1]
        if not np.all((nu > d - 1) & (nu < np.inf)):
            return f"nu must be greater than {d - 1}, the dimension less one"
        if not np.all(is_positive_definite(V) & is_symmetric(V)):
            return "V must be symmetric and positive definite"
        return None

    def to_child(self, given: Given) -> Array:
        return _family(given).natural(given["nu"], given["V"])

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        raise KeyError(slot)

    def log_normaliser(self, given: Given) -> Array:
        return _family(given).log_partition(self.to_child(given))


def _family(given: Given) -> families.Wishart:
    return families.Wishart(given["V"].shape[-1])
