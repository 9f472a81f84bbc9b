"""Binomial with n trials of probability p: phi(x) = x, f(x) = log C(n, x), lam = logit(p)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaln, log_expit, logit

from svmp.families.bernoulli import Bernoulli
from svmp.families.counts import check_trials, count_entropy, trials_at
from svmp.families.family import Array, Bools, Family, Features
from svmp.families.quantiles import count_quantile, normal_guess


@dataclass(frozen=True, eq=False)
class Binomial(Family):
    """The Binomial family on 0, ..., trials; trials is one integer or one for each element.

    Families are compared by identity, because arrays of trials do not compare to one boolean.

    >>> family = Binomial(trials=[10, 4])
    >>> family.mean(family.natural(p=0.25))
    array([2.5, 1. ])
    """

    trials: ArrayLike = 1

    parameters: ClassVar[tuple[str, ...]] = ("n", "p")
    event_ndim: ClassVar[int] = 0
    counts: ClassVar[bool] = True
    possible: ClassVar[str] = "whole numbers from 0 to n"

    @property
    def size(self) -> int:
        return 1

    def at(self, elements: Any) -> Self:
        if np.size(self.trials) == 1:
            return self
        return replace(self, trials=trials_at(self.trials, elements))

    def natural(self, p: ArrayLike, n: ArrayLike | None = None) -> Array:
        check_trials(self.trials, n)
        return np.asarray(logit(np.asarray(p, dtype=np.float64)))[..., None]

    def standard(self, natural: Array) -> dict[str, Array]:
        n = np.zeros(natural.shape[:-1]) + self._n
        return {"n": n, "p": Bernoulli().mean(natural)}

    def moments(self, natural: Array) -> Array:
        return self.mean(natural)[..., None]

    def log_partition(self, natural: Array) -> Array:
        return self._n * Bernoulli().log_partition(natural)

    def entropy(self, natural: Array) -> Array:
        n, logits = self._n[..., None], natural[..., :1]

        def log_mass(x: Array) -> Array:
            log_choose = -np.log1p(n) - betaln(n - x + 1, x + 1)
            return np.asarray(log_choose + x * log_expit(logits) + (n - x) * log_expit(-logits))

        single = Bernoulli().var(natural)
        return count_entropy(
            log_mass, self.mean(natural), self.var(natural), 1 - 4 * single, 1 - 6 * single, self._n
        )

    def statistics(self, x: ArrayLike) -> Array:
        return np.asarray(x, dtype=np.float64)[..., None]

    def log_base(self, x: ArrayLike) -> Array:
        x, n = np.asarray(x, dtype=np.float64), self._n
        return np.asarray(-np.log1p(n) - betaln(n - x + 1, x + 1))

    def in_domain(self, natural: Array) -> Bools:
        return np.isfinite(natural[..., 0])

    def in_support(self, x: ArrayLike) -> Bools:
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((x >= 0) & (x <= self._n) & (x == np.floor(x)))

    def mean(self, natural: Array) -> Array:
        return self._n * Bernoulli().mean(natural)

    def var(self, natural: Array) -> Array:
        return self._n * Bernoulli().var(natural)

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        n, chance = self.standard(natural).values()
        return binomial_quantile(n, chance, p)

    def features(self, statistics: Array, trials: Array | float = 1.0) -> Features:
        return Features(np.stack([statistics[:, 0], trials - statistics[:, 0]], axis=1), "shares")

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        n, p = self.standard(natural).values()
        return rng.binomial(n.astype(np.int64), p, (size, *n.shape)).astype(np.float64)

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        return self.var(natural)[..., None] * vector

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        return natural + 0.3 * rng.standard_normal(natural.shape)

    @property
    def _n(self) -> Array:
        return np.asarray(self.trials, dtype=np.float64)


def binomial_quantile(n: Array, chance: Array, p: ArrayLike) -> Array:
    """Return the quantiles of Binomials with n trials.

    >>> binomial_quantile(np.array(10.0), np.array(0.5), [0.05, 0.5])
    array([2., 5.])
    """
    near = normal_guess(n * chance, np.sqrt(n * chance * (1 - chance)), p)
    return count_quantile(lambda k: binomial_cdf(k, n, chance), p, near, n)


def binomial_cdf(k: Array, n: Array, chance: Array) -> Array:
    """Return the probability of at most k successes.

    >>> binomial_cdf(np.array([0.0, 1.0, 2.0]), np.array(2.0), np.array(0.5))
    array([0.25, 0.75, 1.  ])
    """
    below = betainc(np.maximum(n - k, 1.0), k + 1, 1 - chance)
    return np.asarray(np.where(k >= n, 1.0, below))
