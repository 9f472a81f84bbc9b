"""Poisson with mean mu: phi(x) = x, f(x) = -log x!, lam = log mu."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincc, gammaln

from svmp.families.counts import count_entropy
from svmp.families.family import Array, Bools, Family, Features
from svmp.families.quantiles import count_quantile, normal_guess

LOG_HUGE = float(np.log(np.finfo(np.float64).max))

LARGEST_RATE = 1e18
"""Rate above which NumPy draws no Poisson; a Normal is as good there."""


@dataclass(frozen=True)
class Poisson(Family):
    """The Poisson family on 0, 1, 2, ...

    >>> family = Poisson()
    >>> family.var(family.natural(mu=[0.5, 4.0]))
    array([0.5, 4. ])
    """

    parameters: ClassVar[tuple[str, ...]] = ("mu",)
    event_ndim: ClassVar[int] = 0
    counts: ClassVar[bool] = True
    possible: ClassVar[str] = "whole numbers from 0 on"

    @property
    def size(self) -> int:
        return 1

    def natural(self, mu: ArrayLike) -> Array:
        return np.log(np.asarray(mu, dtype=np.float64))[..., None]

    def standard(self, natural: Array) -> dict[str, Array]:
        return {"mu": self.mean(natural)}

    def moments(self, natural: Array) -> Array:
        return np.exp(natural)

    def log_partition(self, natural: Array) -> Array:
        return np.exp(natural[..., 0])

    def entropy(self, natural: Array) -> Array:
        mu, one = self.mean(natural), np.ones(natural.shape[:-1])

        def log_mass(x: Array) -> Array:
            return np.asarray(x * natural - mu[..., None] - gammaln(x + 1))

        return count_entropy(log_mass, mu, mu, one, one)

    def statistics(self, x: ArrayLike) -> Array:
        return np.asarray(x, dtype=np.float64)[..., None]

    def log_base(self, x: ArrayLike) -> Array:
        return np.asarray(-gammaln(np.asarray(x, dtype=np.float64) + 1))

    def in_domain(self, natural: Array) -> Bools:
        return np.isfinite(natural[..., 0]) & (natural[..., 0] < LOG_HUGE)

    def in_support(self, x: ArrayLike) -> Bools:
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((x >= 0) & (x < np.inf) & (x == np.floor(x)))

    def mean(self, natural: Array) -> Array:
        return np.exp(natural[..., 0])

    def var(self, natural: Array) -> Array:
        return np.exp(natural[..., 0])

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        mu = self.mean(natural)
        near = normal_guess(mu, np.sqrt(mu), p)
        return count_quantile(lambda k: np.asarray(gammaincc(k + 1, mu)), p, near)

    def features(self, statistics: Array, trials: Array | float = 1.0) -> Features:
        return Features(np.sqrt(statistics[:, :1]), "scaled")  # of nearly constant variance

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        mu = self.mean(natural)
        large = mu > LARGEST_RATE
        if not large.any():
            return rng.poisson(mu, (size, *mu.shape)).astype(np.float64)
        far = np.floor(mu + np.sqrt(mu) * rng.standard_normal((size, *mu.shape)))
        near = rng.poisson(np.where(large, 1.0, mu), (size, *mu.shape)).astype(np.float64)
        return np.where(large, far, near)

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        return self.var(natural)[..., None] * vector

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        return natural + 0.1 * rng.standard_normal(natural.shape)
