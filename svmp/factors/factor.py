"""The interface of conditional densities p(child | parents), in terms of expected statistics.

For a conditionally conjugate density, as in the paper,

    E[log p(x | pa)] = E[eta(pa)] . E[phi(x)] + f(x) - E[A(eta(pa))]

is linear in the moments of the child and of each parent. `to_child` is E[eta(pa)], `to_parent` is
the derivative with respect to one parent's moments, `log_normaliser` is E[A(eta(pa))].

A random parameter is a *slot*, given by the expected statistics of the slot's family: the `tau` of
a Normal is a slot with the moments of a Gamma, (E[tau], E[log tau]). Constants are not random and
are given by value. The first axis of all arrays is that of the rows of the table.

A density that is not conjugate can be replaced by a lower bound that is convex in a slot's moments.
The message to that slot is then the tangent of the bound at the current moments. The tangent is a
lower bound too, so an update that raises it raises the bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from svmp.families.family import Array, Family, dot

Given = Mapping[str, Array]
"""Moments of every slot and the value of every constant, by name."""


class Factor(Protocol):
    """A conditional density as pure functions of moments.

    Attributes
    ----------
    child
        Family of the child.
    slots
        Families of the random parameters, by name.
    constants
        Number of event axes of each constant parameter, by name: 0, 1 (vector) or 2 (matrix).
    convex
        Whether it is a lower bound that is convex in the moments of each slot, and not linear.
    """

    child: ClassVar[type[Family]]
    slots: ClassVar[Mapping[str, type[Family]]]
    constants: ClassVar[Mapping[str, int]]
    convex: ClassVar[bool] = False

    def family(self, length: int, constants: Mapping[str, Array]) -> Family:
        """Return the family of the child, for vectors (or categories) of this length.

        Raises
        ------
        ValueError
            If the constants do not suit the length.
        """
        return self.child.sized(length)

    def check(self, constants: Mapping[str, Array]) -> str | None:
        """Return an error message on the constants, as "alpha must be positive", or None."""
        return None

    def to_child(self, given: Given) -> Array:
        """Return the message to the child: its expected natural parameter."""
        ...

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        """Return the message to a slot, a natural parameter of its family.

        The moments of the slot itself are used only where the density is a convex bound.
        """
        ...

    def log_normaliser(self, given: Given) -> Array:
        """Return the expected log-partition of the child given its parents."""
        ...

    def log_density(self, child: Array, given: Given) -> Array:
        """E[log p(child | parents)] of every row, without the base measure f(child)."""
        return dot(self.to_child(given), child) - self.log_normaliser(given)


def positive(x: ArrayLike) -> bool:
    """Whether every number is positive and finite.

    >>> positive([0.5, 2.0]), positive([1.0, np.nan])
    (True, False)
    """
    x = np.asarray(x, dtype=np.float64)
    return bool(np.all((x > 0) & (x < np.inf)))


def check_trials(n: ArrayLike) -> str | None:
    """Return an error message on numbers of trials, or None; floats are exact up to 2^53.

    >>> check_trials([0, 3]), check_trials(2.5)
    (None, 'n must be whole numbers, zero or more, and at most 2^53')
    """
    n = np.asarray(n, dtype=np.float64)
    sound = np.all((n >= 0) & (n <= 2**53) & (n == np.floor(n)))
    return None if sound else "n must be whole numbers, zero or more, and at most 2^53"
