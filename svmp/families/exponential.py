"""Exponential with rate lam: phi(x) = x, and the natural parameter is -lam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from svmp.families.family import Array, Bools, Family, Features


@dataclass(frozen=True)
class Exponential(Family):
    """The Exponential family on the positive numbers and zero.

    >>> family = Exponential()
    >>> family.mean(family.natural(lam=[0.5, 4.0]))
    array([2.  , 0.25])
    """

    parameters: ClassVar[tuple[str, ...]] = ("lam",)
    event_ndim: ClassVar[int] = 0
    possible: ClassVar[str] = "positive numbers"
    invertible: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return 1

    def natural(self, lam: ArrayLike) -> Array:
        return -np.asarray(lam, dtype=np.float64)[..., None]

    def standard(self, natural: Array) -> dict[str, Array]:
        return {"lam": -natural[..., 0]}

    def moments(self, natural: Array) -> Array:
        return -1 / natural

    def log_partition(self, natural: Array) -> Array:
        return -np.log(-natural[..., 0])

    def entropy(self, natural: Array) -> Array:
        return 1 - np.log(-natural[..., 0])

    def statistics(self, x: ArrayLike) -> Array:
        return np.asarray(x, dtype=np.float64)[..., None]

    def in_domain(self, natural: Array) -> Bools:
        return np.isfinite(natural[..., 0]) & (natural[..., 0] < 0)

    def in_support(self, x: ArrayLike) -> Bools:
        x = np.asarray(x, dtype=np.float64)
        return (x >= 0) & (x < np.inf)

    def mean(self, natural: Array) -> Array:
        return -1 / natural[..., 0]

    def var(self, natural: Array) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.std(natural) ** 2)

    def std(self, natural: Array) -> Array:
        return -1 / natural[..., 0]

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log1p(-np.asarray(p, dtype=np.float64)) / natural[..., 0])

    def features(self, statistics: Array, trials: Array | float = 1.0) -> Features:
        return Features(np.log(np.maximum(statistics[:, :1], 1e-300)), "numbers")

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        mean = self.mean(natural)
        return rng.exponential(mean, (size, *mean.shape))

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        return self.var(natural)[..., None] * vector

    def as_evidence(self, natural: Array) -> Array:
        return np.minimum(natural, 0.0)

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        """Perturb the mean by about a tenth."""
        return natural * np.exp(0.1 * rng.standard_normal(natural.shape))
