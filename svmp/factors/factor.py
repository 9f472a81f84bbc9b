"""What every conditional density p(child | parents) can say, given expected statistics.

In the paper's equations, for a conditionally conjugate density,

    E[log p(x | pa)] = E[eta(pa)] . E[phi(x)] + f(x) - E[A(eta(pa))]

is linear in the moments of the child and of each parent. `to_child` is E[eta(pa)], `to_parent` is
the derivative with respect to one parent's moments, `log_normaliser` is E[A(eta(pa))].

A parent enters through a *slot*, whose moments are the expected statistics of the slot's family:
the `tau` of a Normal is a slot of Gamma moments (E[tau], E[log tau]). Constants are not random;
they are passed as they are. All arrays have the rows of the table as their first axis.

A density that is not conjugate can stand here by a lower bound that is convex in a slot's moments.
The message to that slot is then the bound's tangent at the moments that the slot has, which lies
below it everywhere: what raises the tangent raises the bound.
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
        How many event axes each fixed parameter has, by name: 0 a number, 1 a vector, 2 a matrix.
    convex
        Whether it is a lower bound, convex in the moments of each slot instead of linear.
    """

    child: ClassVar[type[Family]]
    slots: ClassVar[Mapping[str, type[Family]]]
    constants: ClassVar[Mapping[str, int]]
    convex: ClassVar[bool] = False

    def family(self, length: int, constants: Mapping[str, Array]) -> Family:
        """Return the child's family, for vectors (or categories) of this length."""
        return self.child.sized(length)

    def check(self, constants: Mapping[str, Array]) -> str | None:
        """Say what is wrong with the constants, as "alpha must be positive", or nothing."""
        return None

    def to_child(self, given: Given) -> Array:
        """Return the message to the child: its expected natural parameter."""
        ...

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        """Return the message to a slot, in that slot's coordinates.

        The slot's own moments matter only where the density is a convex bound.
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
    """Say what is wrong with numbers of trials; beyond 2^53, floats are no longer exact integers.

    >>> check_trials([0, 3]), check_trials(2.5)
    (None, 'n must be whole numbers, zero or more, and at most 2^53')
    """
    n = np.asarray(n, dtype=np.float64)
    sound = np.all((n >= 0) & (n <= 2**53) & (n == np.floor(n)))
    return None if sound else "n must be whole numbers, zero or more, and at most 2^53"
