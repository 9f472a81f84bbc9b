"""Dirichlet with concentrations a: phi(x) = log x, lam = a - 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, polygamma, psi, softmax

from svmp.families.categorical import one_hot_cov
from svmp.families.family import Array, Bools, Family, every
from svmp.families.gamma import TINY
from svmp.families.quantiles import beta_quantile


def others(a: Array) -> Array:
    """Return the sum of the other entries for each entry, without subtraction.

    >>> others(np.array([1e20, 1.0, 2.0]))
    array([3.e+00, 1.e+20, 1.e+20])
    """
    none = np.zeros_like(a[..., :1])
    before = np.concatenate([none, np.cumsum(a[..., :-1], axis=-1)], axis=-1)
    after = np.concatenate([none, np.cumsum(a[..., :0:-1], axis=-1)], axis=-1)[..., ::-1]
    return np.asarray(before + after)


@dataclass(frozen=True)
class Dirichlet(Family):
    """The Dirichlet family on positive vectors that sum to one.

    >>> family = Dirichlet(categories=3)
    >>> family.mean(family.natural(a=[1.0, 1.0, 2.0]))
    array([0.25, 0.25, 0.5 ])
    """

    categories: int

    parameters: ClassVar[tuple[str, ...]] = ("a",)
    event_ndim: ClassVar[int] = 1
    possible: ClassVar[str] = "positive numbers that add up to 1"
    simplex: ClassVar[bool] = True

    @classmethod
    def sized(cls, length: int) -> Self:
        return cls(length)

    @property
    def length(self) -> int:
        return self.categories

    @property
    def size(self) -> int:
        return self.categories

    def natural(self, a: ArrayLike) -> Array:
        return np.asarray(a, dtype=np.float64) - 1

    def standard(self, natural: Array) -> dict[str, Array]:
        return {"a": natural + 1}

    def moments(self, natural: Array) -> Array:
        a = natural + 1
        return np.asarray(psi(a) - psi(a.sum(axis=-1, keepdims=True)))

    def log_partition(self, natural: Array) -> Array:
        a = natural + 1
        return np.asarray(gammaln(a).sum(axis=-1) - gammaln(a.sum(axis=-1)))

    def statistics(self, x: ArrayLike) -> Array:
        return np.log(np.asarray(x, dtype=np.float64))

    def in_domain(self, natural: Array) -> Bools:
        return every(np.isfinite(natural) & (natural > -1))

    def in_support(self, x: ArrayLike) -> Bools:
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((x > 0).all(axis=-1) & (np.abs(x.sum(axis=-1) - 1) < 1e-6))

    def mean(self, natural: Array) -> Array:
        a = natural + 1
        return np.asarray(a / a.sum(axis=-1, keepdims=True))

    def log_mean(self, natural: Array) -> Array:
        """Return log E[p], which is above the moments E[log p]."""
        return np.log(self.mean(natural))

    def var(self, natural: Array) -> Array:
        a = natural + 1
        total = a.sum(axis=-1, keepdims=True)
        return np.asarray(a / total * (others(a) / total) / (total + 1))

    def cov(self, natural: Array) -> Array:
        total = (natural + 1).sum(axis=-1)
        return one_hot_cov(self.mean(natural)) / (total + 1)[..., None, None]

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        """Return those of the entries, each of which is a Beta."""
        a = natural + 1
        return np.asarray(np.maximum(beta_quantile(a, np.maximum(others(a), TINY), p), TINY))

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        """Draw by Gammas in log space, G(a) = G(a + 1) U^(1/a): those of small a underflow."""
        a = natural + 1
        shape = (size, *a.shape)
        logs = np.log(rng.gamma(a + 1, size=shape)) - rng.exponential(size=shape) / a
        return np.asarray(np.maximum(softmax(logs, axis=-1), TINY))

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        a = natural + 1
        total = polygamma(1, a.sum(axis=-1, keepdims=True)) * vector.sum(axis=-1, keepdims=True)
        return np.asarray(polygamma(1, a) * vector - total)

    def cross_covariance(self, natural: Array) -> Array:
        mean, total = self.mean(natural), (natural + 1).sum(axis=-1)[..., None, None]
        return np.asarray((np.eye(self.categories) - mean[..., :, None]) / total)

    def as_evidence(self, natural: Array) -> Array:
        return np.maximum(natural, 0.0)

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        """Use pseudo-counts of one, or of the prior if larger, perturbed by about a tenth."""
        return np.maximum(natural + 1, 1.0) * rng.gamma(100.0, 0.01, natural.shape) - 1
