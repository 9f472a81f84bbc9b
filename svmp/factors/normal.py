"""x ~ Normal(mu, tau), with tau the precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from svmp import families
from svmp.factors.factor import Factor, Given
from svmp.families.family import Array, Family, stack
from svmp.families.normal import LOG_2PI


class Normal(Factor):
    """Message to x: (tau mu, -tau / 2); the same with x for mu; to tau: the squared residual."""

    child: ClassVar[type[Family]] = families.Normal
    slots: ClassVar[Mapping[str, type[Family]]] = {"mu": families.Normal, "tau": families.Gamma}
    constants: ClassVar[Mapping[str, int]] = {}

    def to_child(self, given: Given) -> Array:
        mu, tau = given["mu"], given["tau"]
        return stack(tau[..., 0] * mu[..., 0], -0.5 * tau[..., 0])

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        if slot == "mu":
            tau = given["tau"]
            return stack(tau[..., 0] * child[..., 0], -0.5 * tau[..., 0])
        return stack(-0.5 * squared_residual(child, given["mu"]), 0.5)

    def log_density(self, child: Array, given: Given) -> Array:
        """Subtract before squaring, so that data far from zero lose no digits."""
        mu, tau = given["mu"], given["tau"]
        return 0.5 * (tau[..., 1] - LOG_2PI - tau[..., 0] * squared_residual(child, mu))

    def log_normaliser(self, given: Given) -> Array:
        mu, tau = given["mu"], given["tau"]
        return 0.5 * (tau[..., 0] * mu[..., 1] - tau[..., 1] + LOG_2PI)


def squared_residual(x: Array, mu: Array) -> Array:
    """E[(x - mu)^2] of independent x and mu, from E[x], E[x^2], E[mu] and E[mu^2]."""
    spread = (x[..., 1] - x[..., 0] ** 2) + (mu[..., 1] - mu[..., 0] ** 2)
    return (x[..., 0] - mu[..., 0]) ** 2 + spread
