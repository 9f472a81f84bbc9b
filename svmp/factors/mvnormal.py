"""x ~ MvNormal(mu, tau): a vector, with tau the precision matrix, a Wishart if hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from svmp import families
from svmp.factors.factor import Factor, Given
from svmp.families.family import Array, Family, dot
from svmp.families.matrix import apply, flat, join
from svmp.families.normal import LOG_2PI


class MvNormal(Factor):
    """Message to x: (tau mu, -tau / 2); the same with x for mu; to tau: the residual's square.

    >>> mu, tau = families.MvNormal(1), families.Wishart(1)
    >>> given = {"mu": mu.statistics([3.0]), "tau": tau.statistics([[2.0]])}
    >>> MvNormal().to_child(given)
    array([ 6., -1.])
    """

    child: ClassVar[type[Family]] = families.MvNormal
    slots: ClassVar[Mapping[str, type[Family]]] = {
        "mu": families.MvNormal,
        "tau": families.Wishart,
    }
    constants: ClassVar[Mapping[str, int]] = {}

    def to_child(self, given: Given) -> Array:
        return _pull(given["mu"], given["tau"])

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        if slot == "mu":
            return _pull(child, given["tau"])
        (x, xx), (mu, mumu) = _vector_and_square(child), _vector_and_square(given["mu"])
        cross = x[..., :, None] * mu[..., None, :]
        squares = xx + mumu - flat(cross + np.swapaxes(cross, -1, -2))
        return join(-0.5 * squares, np.array([0.5]))

    def log_normaliser(self, given: Given) -> Array:
        (mu, mumu), tau = _vector_and_square(given["mu"]), given["tau"]
        return np.asarray(0.5 * (dot(tau[..., :-1], mumu) - tau[..., -1] + mu.shape[-1] * LOG_2PI))


def _vector_and_square(moments: Array) -> tuple[Array, Array]:
    """Split (E[x], E[x x']) into d and d^2 numbers."""
    d = int(np.sqrt(moments.shape[-1]))
    return moments[..., :d], moments[..., d:]


def _pull(towards: Array, tau: Array) -> Array:
    x, _ = _vector_and_square(towards)
    d = x.shape[-1]
    matrix = tau[..., :-1].reshape(*tau.shape[:-1], d, d)
    return join(apply(matrix, x), -0.5 * tau[..., :-1])
