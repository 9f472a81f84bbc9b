"""Bernoulli with probability p: phi(x) = x, lam = logit(p)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from svmp.families.family import Array, Bools, Family, Features


@dataclass(frozen=True)
class Bernoulli(Family):
    """The Bernoulli family on zero and one.

    >>> family = Bernoulli()
    >>> family.var(family.natural(p=[0.5, 0.9]))
    array([0.25, 0.09])
    """

    parameters: ClassVar[tuple[str, ...]] = ("p",)
    event_ndim: ClassVar[int] = 0
    counts: ClassVar[bool] = True
    possible: ClassVar[str] = "0 and 1, or False and True"

    @property
    def size(self) -> int:
        return 1

    def natural(self, p: ArrayLike) -> Array:
        return np.asarray(logit(np.asarray(p, dtype=np.float64)))[..., None]

    def standard(self, natural: Array) -> dict[str, Array]:
        return {"p": self.mean(natural)}

    def moments(self, natural: Array) -> Array:
        return np.asarray(expit(natural))

    def log_partition(self, natural: Array) -> Array:
        return np.logaddexp(0.0, natural[..., 0])

    def entropy(self, natural: Array) -> Array:
        # The entropy is even in the logit; at the negative one no two terms cancel.
        size = np.abs(natural[..., 0])
        return np.asarray(np.log1p(np.exp(-size)) + size * expit(-size))

    def statistics(self, x: ArrayLike) -> Array:
        return np.asarray(x, dtype=np.float64)[..., None]

    def in_domain(self, natural: Array) -> Bools:
        return np.isfinite(natural[..., 0])

    def in_support(self, x: ArrayLike) -> Bools:
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((x == 0) | (x == 1))

    def mean(self, natural: Array) -> Array:
        return np.asarray(expit(natural[..., 0]))

    def var(self, natural: Array) -> Array:
        return np.asarray(expit(natural[..., 0]) * expit(-natural[..., 0]))

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        return (np.asarray(p) > np.asarray(expit(-natural[..., 0]))).astype(np.float64)

    def features(self, statistics: Array, trials: Array | float = 1.0) -> Features:
        return Features(np.stack([statistics[:, 0], trials - statistics[:, 0]], axis=1), "shares")

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        p = self.mean(natural)
        return (rng.random((size, *p.shape)) < p).astype(np.float64)

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        return self.var(natural)[..., None] * vector

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        return natural + 0.3 * rng.standard_normal(natural.shape)
