"""x ~ Binomial(n, 1 / (1 + exp(-z))): n fixed, with a logit z that is linear in Normals.

It is the sum of n Bernoullis with the same logit, and has n times their lower bound
(bernoulli_logit.py): E[log p(x | z)] >= log C(n, x) + (x - n/2) E[z] - n log(2 cosh(xi / 2)) with
xi^2 = E[z^2]. A row acts as an observation (x - n/2) / (n w) of a Normal with mean z and precision
n w.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from svmp import families
from svmp.factors.bernoulli_logit import BernoulliLogit, root, weight
from svmp.factors.factor import Factor, Given, check_trials
from svmp.families.family import Array, Family, stack


class BinomialLogit(Factor):
    """Message to x: E[z]; to z: (x - n/2, -n w / 2), with w from z's own moments.

    >>> sure = families.Normal().statistics(0.0)
    >>> given = {"n": np.array(4), "logit": sure}
    >>> BinomialLogit().to_parent("logit", child=np.array([3.0]), given=given)
    array([ 1. , -0.5])
    """

    child: ClassVar[type[Family]] = families.Binomial
    slots: ClassVar[Mapping[str, type[Family]]] = {"logit": families.Normal}
    constants: ClassVar[Mapping[str, int]] = {"n": 0}
    convex: ClassVar[bool] = True

    def family(self, length: int, constants: Mapping[str, Array]) -> Family:
        return families.Binomial(trials=np.asarray(constants["n"]).astype(np.int64))

    def check(self, constants: Mapping[str, Array]) -> str | None:
        return check_trials(constants["n"])

    def to_child(self, given: Given) -> Array:
        return given["logit"][..., :1]

    def to_parent(self, slot: str, child: Array, given: Given) -> Array:
        n = given["n"]
        return stack(child[..., 0] - 0.5 * n, -0.5 * n * weight(root(given["logit"])))

    def log_normaliser(self, given: Given) -> Array:
        return np.asarray(given["n"] * BernoulliLogit().log_normaliser(given))
