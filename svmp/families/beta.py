"""Beta with shapes alpha and beta: phi(x) = (log x, log(1 - x)), lam = (alpha - 1, beta - 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, polygamma, psi

from svmp.families.family import Array, Bools, Family, every, stack
from svmp.families.gamma import TINY
from svmp.families.quantiles import beta_quantile

BELOW_ONE = float(np.nextafter(1.0, 0.0))


@dataclass(frozen=True)
class Beta(Family):
    """The Beta family between zero and one.

    >>> family = Beta()
    >>> family.mean(family.natural(alpha=[1.0, 3.0], beta=1.0))
    array([0.5 , 0.75])
    """

    parameters: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    event_ndim: ClassVar[int] = 0
    possible: ClassVar[str] = "numbers between 0 and 1"
    invertible: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return 2

    def natural(self, alpha: ArrayLike, beta: ArrayLike) -> Array:
        return stack(alpha, beta) - 1

    def standard(self, natural: Array) -> dict[str, Array]:
        return {"alpha": natural[..., 0] + 1, "beta": natural[..., 1] + 1}

    def moments(self, natural: Array) -> Array:
        shapes = natural + 1
        return np.asarray(psi(shapes) - psi(shapes.sum(axis=-1, keepdims=True)))

    def log_partition(self, natural: Array) -> Array:
        return np.asarray(betaln(natural[..., 0] + 1, natural[..., 1] + 1))

    def statistics(self, x: ArrayLike) -> Array:
        x = np.asarray(x, dtype=np.float64)
        return stack(np.log(x), np.log1p(-x))

    def in_domain(self, natural: Array) -> Bools:
        return every(np.isfinite(natural) & (natural > -1))

    def in_support(self, x: ArrayLike) -> Bools:
        x = np.asarray(x, dtype=np.float64)
        return (x > 0) & (x < 1)

    def mean(self, natural: Array) -> Array:
        alpha, beta = self.standard(natural).values()
        return alpha / (alpha + beta)

    def var(self, natural: Array) -> Array:
        alpha, beta = self.standard(natural).values()
        total = alpha + beta
        return alpha / total * (beta / total) / (total + 1)

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        alpha, beta = self.standard(natural).values()
        return np.asarray(np.clip(beta_quantile(alpha, beta, p), TINY, BELOW_ONE))

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        alpha, beta = self.standard(natural).values()
        # Draws of small shapes round to 0 or 1, where the statistics are infinite.
        return np.clip(rng.beta(alpha, beta, (size, *alpha.shape)), TINY, BELOW_ONE)

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        shapes = natural + 1
        total = polygamma(1, shapes.sum(axis=-1, keepdims=True)) * vector.sum(
            axis=-1, keepdims=True
        )
        return np.asarray(polygamma(1, shapes) * vector - total)

    def cross_covariance(self, natural: Array) -> Array:
        mean, total = self.mean(natural), (natural + 1).sum(axis=-1)
        return stack((1 - mean) / total, -mean / total)[..., None, :]

    def as_evidence(self, natural: Array) -> Array:
        return np.maximum(natural, 0.0)

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        """Add random pseudo-counts: about one each, more if the prior has more."""
        spread = np.sqrt(np.maximum(natural + 1, 1.0))
        return natural + spread * rng.gamma(1.0, 1.0, natural.shape)
