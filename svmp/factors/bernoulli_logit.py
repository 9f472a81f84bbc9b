"""x ~ Bernoulli(1 / (1 + exp(-z))), with a logit z that is linear in Normals.

It is not conjugate. Jaakkola and Jordan (2000) bound it from below, for any xi, by

    log p(x | z) >= (x - 1/2) z - log(2 cosh(xi / 2)) - w (z^2 - xi^2) / 2,
    w = tanh(xi / 2) / (2 xi),

which is tightest at xi^2 = E[z^2]. There its expectation is

    (x - 1/2) E[z] - log(2 cosh(sqrt(E[z^2]) / 2)),

convex in E[z^2]; the bound at a given xi is its tangent. So a row acts as an observation
(x - 1/2) / w of a Normal with mean z and precision w.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from svmp import families
from svmp.factors.factor import Factor, Given
from svmp.families.family import Array, Family, stack

SMALL = 0.01
"""Below this xi the weight is computed by its series, which is exact to rounding."""


class BernoulliLogit(Factor):
    """Message to x: E[z]; to z: (x - 1/2, -w / 2), with w from z's own moments.

    >>> sure = families.Normal().statistics(0.0)
    >>> BernoulliLogit().to_parent("logit", child=np.ones(1), given={"logit": sure})
    array([ 0.5  , -0.125])
    """

    child: ClassVar[type[Family]] = families.Bernoulli
    slots: ClassVar[Mapping[str, type[Family]]] = {"logit": families.Normal}
    constants: ClassVar[Mapping[str, int]] = {}
    convex: ClassVar[bool] = True

    def to_child(self, given: Given) -> Array:
        return given["logit"][..., :1]

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        return stack(child[..., 0] - 0.5, -0.5 * weight(root(given["logit"])))

    def log_normaliser(self, given: Given) -> Array:
        xi = root(given["logit"])
        log_2_cosh = 0.5 * xi + np.log1p(np.exp(-xi))
        return np.asarray(0.5 * given["logit"][..., 0] + log_2_cosh)


def root(logit: Array) -> Array:
    """Return the optimal xi, the root of E[z^2]."""
    return np.sqrt(logit[..., 1])


def weight(xi: Array) -> Array:
    """tanh(xi / 2) / (2 xi), the precision of the Normal that a row acts as; 1/4 at xi = 0.

    >>> weight(np.array([0.0, 2.0])).round(4)
    array([0.25  , 0.1904])
    """
    square = np.minimum(xi, SMALL) ** 2
    series = 0.25 - square / 48 + square**2 / 480
    large = np.maximum(xi, SMALL)
    return np.where(xi < SMALL, series, np.tanh(0.5 * large) / (2 * large))
