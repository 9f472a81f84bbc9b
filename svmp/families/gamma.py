"""Gamma with shape alpha and rate beta: phi(x) = (x, log x), lam = (-beta, alpha - 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv, gammaln, polygamma, psi

from svmp.families.family import Array, Bools, Family, Features, stack

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Gamma(Family):
    """The Gamma family on the positive numbers.

    >>> family = Gamma()
    >>> family.mean(family.natural(alpha=[3.0, 1.0], beta=2.0))
    array([1.5, 0.5])
    """

    parameters: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    event_ndim: ClassVar[int] = 0
    possible: ClassVar[str] = "positive numbers"
    precision: ClassVar[Literal["number"]] = "number"
    invertible: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return 2

    def natural(self, alpha: ArrayLike, beta: ArrayLike) -> Array:
        return stack(-np.asarray(beta, dtype=np.float64), np.asarray(alpha) - 1.0)

    def standard(self, natural: Array) -> dict[str, Array]:
        return {"alpha": natural[..., 1] + 1, "beta": -natural[..., 0]}

    def moments(self, natural: Array) -> Array:
        alpha, beta = self.standard(natural).values()
        return stack(alpha / beta, psi(alpha) - np.log(beta))

    def log_partition(self, natural: Array) -> Array:
        alpha, beta = self.standard(natural).values()
        return np.asarray(gammaln(alpha) - alpha * np.log(beta))

    def statistics(self, x: ArrayLike) -> Array:
        x = np.asarray(x, dtype=np.float64)
        return stack(x, np.log(x))

    def in_domain(self, natural: Array) -> Bools:
        rate, shape = natural[..., 0], natural[..., 1]
        return (rate > -np.inf) & (rate < 0) & (shape > -1) & (shape < np.inf)

    def in_support(self, x: ArrayLike) -> Bools:
        x = np.asarray(x, dtype=np.float64)
        return (x > 0) & (x < np.inf)

    def mean(self, natural: Array) -> Array:
        return -(natural[..., 1] + 1) / natural[..., 0]

    def var(self, natural: Array) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.std(natural) ** 2)

    def std(self, natural: Array) -> Array:
        return np.asarray(-np.sqrt(natural[..., 1] + 1) / natural[..., 0])

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        alpha, beta = self.standard(natural).values()
        return np.asarray(np.maximum(gammaincinv(alpha, p) / beta, TINY))

    def features(self, statistics: Array, trials: Array | float = 1.0) -> Features:
        return Features(np.log(np.maximum(statistics[:, :1], 1e-300)), "numbers")

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        alpha, beta = self.standard(natural).values()
        # Draws of a small shape underflow to 0, where the statistics are infinite.
        return np.maximum(rng.gamma(alpha, 1 / beta, (size, *alpha.shape)), TINY)

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        alpha, beta = self.standard(natural).values()
        x, log_x = vector[..., 0], vector[..., 1]
        return stack((alpha * x / beta + log_x) / beta, x / beta + polygamma(1, alpha) * log_x)

    def as_evidence(self, natural: Array) -> Array:
        return stack(np.minimum(natural[..., 0], 0.0), np.maximum(natural[..., 1], 0.0))

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        """Keep the shape and perturb the mean by about a tenth."""
        alpha, beta = self.standard(natural).values()
        return self.natural(alpha, beta * np.exp(0.1 * rng.standard_normal(beta.shape)))
