"""x ~ Beta(alpha, beta), both fixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from svmp import families
from svmp.factors.factor import Factor, Given, positive
from svmp.families.family import Array, Family


class Beta(Factor):
    """Message to x: (alpha - 1, beta - 1).

    >>> import numpy as np
    >>> Beta().to_child({"alpha": np.array(2.0), "beta": np.array([1.0, 4.0])})
    array([[1., 0.],
           [1., 3.]])
    """

    child: ClassVar[type[Family]] = families.Beta
    slots: ClassVar[Mapping[str, type[Family]]] = {}
    constants: ClassVar[Mapping[str, int]] = {"alpha": 0, "beta": 0}

    def check(self, constants: Mapping[str, Array]) -> str | None:
        wrong = [name for name in self.constants if not positive(constants[name])]
        return f"{' and '.join(wrong)} must be positive" if wrong else None

    def to_child(self, given: Given) -> Array:
        return families.Beta().natural(given["alpha"], given["beta"])

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        raise KeyError(slot)

    def log_normaliser(self, given: Given) -> Array:
        return families.Beta().log_partition(self.to_child(given))
