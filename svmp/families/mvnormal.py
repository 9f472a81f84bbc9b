"""Normal vectors with mean mu and precision matrix tau: phi(x) = (x, x x'), lam = (tau mu, -tau/2).

Matrices are flattened in C order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from svmp.families.family import Array, Bools, Family, Features, dot, every
from svmp.families.matrix import (
    apply,
    cholesky,
    flat,
    is_positive_definite,
    join,
    log_det_root,
    symmetric,
)
from svmp.families.normal import LOG_2PI

ROUNDING = 1e-13
"""Relative size of eigenvalues that are 0 up to rounding."""


@dataclass(frozen=True)
class MvNormal(Family):
    """The Normal family on vectors of one length.

    >>> family = MvNormal(dimension=2)
    >>> family.var(family.natural(mu=[0.0, 3.0], tau=[[4.0, 0.0], [0.0, 0.5]]))
    array([0.25, 2.  ])
    """

    dimension: int

    parameters: ClassVar[tuple[str, ...]] = ("mu", "tau")
    event_ndim: ClassVar[int] = 1
    gaussian: ClassVar[Literal["vector"]] = "vector"

    @classmethod
    def sized(cls, length: int) -> Self:
        return cls(length)

    @property
    def length(self) -> int:
        return self.dimension

    @property
    def size(self) -> int:
        return self.dimension + self.dimension**2

    def natural(self, mu: ArrayLike, tau: ArrayLike) -> Array:
        tau = np.asarray(tau, dtype=np.float64)
        return join(apply(tau, np.asarray(mu, dtype=np.float64)), -0.5 * flat(tau))

    def standard(self, natural: Array) -> dict[str, Array]:
        return {"mu": self.mean(natural), "tau": self._tau(natural)}

    def moments(self, natural: Array) -> Array:
        mu, whitener, _ = self._factorised(natural)
        return join(mu, flat(mu[..., :, None] * mu[..., None, :] + _square(whitener)))

    def log_partition(self, natural: Array) -> Array:
        _, whitener, log_det = self._factorised(natural)
        white = apply(whitener, natural[..., : self.dimension])
        return 0.5 * (dot(white, white) - log_det + self.dimension * LOG_2PI)

    def free_entropy(self, natural: Array, moments: Array | None = None) -> Array:
        log_det = log_det_root(cholesky(self._tau(natural)))
        return 0.5 * (self.dimension * (1 + LOG_2PI) - log_det)

    def statistics(self, x: ArrayLike) -> Array:
        x = np.asarray(x, dtype=np.float64)
        return join(x, flat(x[..., :, None] * x[..., None, :]))

    def in_domain(self, natural: Array) -> Bools:
        return every(np.isfinite(natural)) & is_positive_definite(self._tau(natural))

    def in_support(self, x: ArrayLike) -> Bools:
        return np.asarray(np.isfinite(np.asarray(x, dtype=np.float64)).all(axis=-1))

    def mean(self, natural: Array) -> Array:
        return self._factorised(natural)[0]

    def var(self, natural: Array) -> Array:
        _, whitener, _ = self._factorised(natural)
        return np.asarray((whitener**2).sum(axis=-2))

    def cov(self, natural: Array) -> Array:
        return _square(self._factorised(natural)[1])

    def log_density(self, natural: Array, x: ArrayLike) -> Array:
        root = cholesky(self._tau(natural))
        white = np.swapaxes(root, -1, -2)
        off = apply(white, np.asarray(x, dtype=np.float64) - self.mean(natural))
        return 0.5 * (log_det_root(root) - self.dimension * LOG_2PI - dot(off, off))

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        return np.asarray(self.mean(natural) + np.sqrt(self.var(natural)) * ndtri(p))

    def features(self, statistics: Array, trials: Array | float = 1.0) -> Features:
        return Features(statistics[:, : self.dimension], "numbers")

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        mu, whitener, _ = self._factorised(natural)
        return mu + apply(np.swapaxes(whitener, -1, -2), rng.standard_normal((size, *mu.shape)))

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        mu, whitener, _ = self._factorised(natural)
        cov, d = _square(whitener), self.dimension
        matrix = symmetric(vector[..., d:], d)
        first = apply(cov, vector[..., :d] + 2 * apply(matrix, mu))
        cross = first[..., :, None] * mu[..., None, :]
        square = cross + np.swapaxes(cross, -1, -2) + 2 * cov @ matrix @ cov
        return join(first, flat(square))

    def as_evidence(self, natural: Array) -> Array:
        values, vectors = np.linalg.eigh(self._tau(natural))
        sound = values[..., :1] >= 0
        values = np.where(values > ROUNDING * values[..., -1:], values, 0.0)
        white = apply(np.swapaxes(vectors, -1, -2), natural[..., : self.dimension])
        linear = apply(vectors, np.where(values > 0, white, 0.0))
        tau = vectors * values[..., None, :] @ np.swapaxes(vectors, -1, -2)
        return np.where(sound, natural, join(linear, -0.5 * flat(tau)))

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        mu, tau = self.standard(natural).values()
        spread = 0.3 * np.minimum(1.0, np.sqrt(self.var(natural)))
        return self.natural(mu + spread * rng.standard_normal(mu.shape), tau)

    def _tau(self, natural: Array) -> Array:
        return -2 * symmetric(natural[..., self.dimension :], self.dimension)

    def _factorised(self, natural: Array) -> tuple[Array, Array, Array]:
        """Return mu, a whitener W with W'W the covariance, and log|tau|."""
        root = cholesky(self._tau(natural))
        whitener = np.asarray(np.linalg.inv(root), dtype=np.float64)
        white = apply(whitener, natural[..., : self.dimension])
        return apply(np.swapaxes(whitener, -1, -2), white), whitener, log_det_root(root)


def _square(root: Array) -> Array:
    product = np.swapaxes(root, -1, -2) @ root
    return 0.5 * (product + np.swapaxes(product, -1, -2))
