"""Multinomial with n trials of probabilities p: phi(x) = x, lam = log p up to a constant.

f(x) = log n! - sum of log x_k!; as for the Categorical, lam has one redundant entry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, gammaln, log_softmax, logsumexp, softmax, xlog1py

from svmp.families.binomial import binomial_quantile
from svmp.families.categorical import one_hot_cov
from svmp.families.counts import (
    MANY,
    check_trials,
    expect,
    log_factorial_series,
    stirling_rest,
    trials_at,
)
from svmp.families.family import Array, Bools, Family, Features, dot, every


@dataclass(frozen=True, eq=False)
class Multinomial(Family):
    """The Multinomial family on counts that sum to trials, one integer or one for each element.

    Families are compared by identity, because arrays of trials do not compare to one boolean.

    >>> family = Multinomial(categories=2, trials=10)
    >>> family.mean(family.natural(p=[0.2, 0.8]))
    array([2., 8.])
    """

    categories: int
    trials: ArrayLike = 1

    parameters: ClassVar[tuple[str, ...]] = ("n", "p")
    event_ndim: ClassVar[int] = 1
    counts: ClassVar[bool] = True
    possible: ClassVar[str] = "whole numbers from 0 that add up to n"

    @classmethod
    def sized(cls, length: int) -> Self:
        return cls(length)

    @property
    def length(self) -> int:
        return self.categories

    @property
    def size(self) -> int:
        return self.categories

    def at(self, elements: Any) -> Self:
        if np.size(self.trials) == 1:
            return self
        return replace(self, trials=trials_at(self.trials, elements))

    def natural(self, p: ArrayLike, n: ArrayLike | None = None) -> Array:
        check_trials(self.trials, n)
        return np.log(np.asarray(p, dtype=np.float64))

    def standard(self, natural: Array) -> dict[str, Array]:
        n = np.zeros(natural.shape[:-1]) + self._n
        return {"n": n, "p": np.asarray(softmax(natural, axis=-1))}

    def moments(self, natural: Array) -> Array:
        return self.mean(natural)

    def log_partition(self, natural: Array) -> Array:
        return np.asarray(self._n * logsumexp(natural, axis=-1))

    def entropy(self, natural: Array) -> Array:
        """Entropy n H(p) - log n! + sum of E[log x_k!], where each x_k follows a Binomial.

        The terms that grow as n log n cancel by Stirling's formula and are left out.
        """
        log_p = np.asarray(log_softmax(natural, axis=-1))
        n, p = self._n[..., None], np.exp(log_p)
        mean, var = n * p, n * p * (1 - p)

        def log_mass(x: Array) -> Array:
            rest = n[..., None] - x
            log_choose = -np.log1p(n[..., None]) - betaln(rest + 1, x + 1)
            return np.asarray(log_choose + x * log_p[..., None] + xlog1py(rest, -p[..., None]))

        def log_factorial(x: Array) -> Array:
            return np.asarray(gammaln(x + 1) - gammaln(mean + 1)[..., None])

        few = var <= MANY
        with np.errstate(all="ignore"):
            some = expect(
                log_factorial, log_mass, np.where(few, mean, 0.0), np.where(few, var, 0), n
            )
            spread = np.where(few, some, log_factorial_series(mean, var, p))
        return np.asarray((spread + stirling_rest(mean)).sum(axis=-1) - stirling_rest(self._n))

    def statistics(self, x: ArrayLike) -> Array:
        return np.asarray(x, dtype=np.float64)

    def log_base(self, x: ArrayLike) -> Array:
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(gammaln(self._n + 1) - gammaln(x + 1).sum(axis=-1))

    def in_domain(self, natural: Array) -> Bools:
        return every(np.isfinite(natural))

    def in_support(self, x: ArrayLike) -> Bools:
        x = np.asarray(x, dtype=np.float64)
        whole = ((x >= 0) & (x == np.floor(x))).all(axis=-1)
        return np.asarray(whole & (x.sum(axis=-1) == self._n))

    def mean(self, natural: Array) -> Array:
        return np.asarray(self._n[..., None] * softmax(natural, axis=-1))

    def var(self, natural: Array) -> Array:
        p = np.asarray(softmax(natural, axis=-1))
        return np.asarray(self._n[..., None] * p * (1 - p))

    def cov(self, natural: Array) -> Array:
        return self._n[..., None, None] * one_hot_cov(np.asarray(softmax(natural, axis=-1)))

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        n, chance = self.standard(natural).values()
        return binomial_quantile(n[..., None], chance, p)

    def why_impossible(self, x: Array) -> str:
        n = np.ravel(self.trials)[0]
        if x.sum() == n:
            return super().why_impossible(x)
        return f"it adds up to {x.sum():g}, where n is {n}"

    def features(self, statistics: Array, trials: Array | float = 1.0) -> Features:
        return Features(statistics, "shares")

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        n, p = self.standard(natural).values()
        return rng.multinomial(n.astype(np.int64), p, (size, *n.shape)).astype(np.float64)

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        p = np.asarray(softmax(natural, axis=-1))
        return np.asarray(self._n[..., None] * p * (vector - dot(p, vector)[..., None]))

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        return natural + 0.3 * rng.standard_normal(natural.shape)

    @property
    def _n(self) -> Array:
        return np.asarray(self.trials, dtype=np.float64)
