"""x ~ Categorical(p), with p a Dirichlet if it is hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from svmp import families
from svmp.factors.factor import Factor, Given
from svmp.families.family import Array, Family


class Categorical(Factor):
    """Message to x: E[log p]; to p: the one-hot x (its expectation, if it is hidden).

    >>> Categorical().to_parent("p", child=np.array([0.0, 0.2, 0.8]), given={})
    array([0. , 0.2, 0.8])
    """

    child: ClassVar[type[Family]] = families.Categorical
    slots: ClassVar[Mapping[str, type[Family]]] = {"p": families.Dirichlet}
    constants: ClassVar[Mapping[str, int]] = {}

    def to_child(self, given: Given) -> Array:
        return given["p"]

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        return child

    def log_normaliser(self, given: Given) -> Array:
        # Zero, because p sums to one: log p is a normalised natural parameter.
        return np.zeros(given["p"].shape[:-1])
