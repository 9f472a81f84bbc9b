"""Dirichlet with concentrations a: phi(x) = log x, lam = a - 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, polygamma, psi, softmax

from svmp.families.family import Array, Bools, Family, dot
from svmp.families.gamma import TINY
from svmp.families.roots import decreasing_root


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

    @classmethod
    def sized(cls, length: int) -> Self:
        return cls(length)

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

    def from_moments(self, moments: Array) -> Array:
        return self.natural(concentrations(moments))

    def log_partition(self, natural: Array) -> Array:
        a = natural + 1
        return np.asarray(gammaln(a).sum(axis=-1) - gammaln(a.sum(axis=-1)))

    def entropy(self, natural: Array) -> Array:
        return self.log_partition(natural) - dot(natural, self.moments(natural))

    def statistics(self, x: ArrayLike) -> Array:
        return np.log(np.asarray(x, dtype=np.float64))

    def log_base(self, x: ArrayLike) -> Array:
        return np.zeros(np.shape(x)[:-1])

    def in_domain(self, natural: Array) -> Bools:
        return np.asarray((np.isfinite(natural) & (natural > -1)).all(axis=-1))

    def in_support(self, x: ArrayLike) -> Bools:
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((x > 0).all(axis=-1) & (np.abs(x.sum(axis=-1) - 1) < 1e-6))

    def mean(self, natural: Array) -> Array:
        a = natural + 1
        return np.asarray(a / a.sum(axis=-1, keepdims=True))

    def var(self, natural: Array) -> Array:
        mean = self.mean(natural)
        return np.asarray(mean * (1 - mean) / ((natural + 1).sum(axis=-1, keepdims=True) + 1))

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        """By Gammas in logarithms, G(a) = G(a + 1) U^(1/a): small shapes would draw all zeros."""
        a = natural + 1
        shape = (size, *a.shape)
        logs = np.log(rng.gamma(a + 1, size=shape)) - rng.exponential(size=shape) / a
        return np.asarray(np.maximum(softmax(logs, axis=-1), TINY))

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        """Pretend counts of about one each, or the prior's if it has more, a tenth up or down."""
        return np.maximum(natural + 1, 1.0) * rng.gamma(100.0, 0.01, natural.shape) - 1

    def example(self, rng: np.random.Generator, count: int) -> Array:
        return self.natural(rng.gamma(3.0, 1.0, (count, self.categories)) + 0.5)


def concentrations(mean_log: Array) -> Array:
    """Solve psi(a_k) - psi(s) = mean_log_k with s = sum of a, for a.

    Minka's fixed point a_k(s) = psi^-1(psi(s) + mean_log_k) leaves one unknown whatever the number
    of categories: log(sum of a_k(s)) - log(s) starts at log K > 0 and has one zero.
    """
    mean_log = np.asarray(mean_log, dtype=np.float64)

    def excess(log_s: Array) -> tuple[Array, Array]:
        s = np.exp(log_s)
        a = inverse_psi(psi(s)[..., None] + mean_log)
        total = a.sum(axis=-1)
        slope = s * polygamma(1, s) * (1 / polygamma(1, a)).sum(axis=-1) / total - 1
        return np.log(total) - log_s, slope

    # For large a, the mean of log x_k is log E[x_k] but for 1 / (2 a_k) - 1 / (2 s).
    missing = np.maximum(1 - np.exp(mean_log).sum(axis=-1), 1e-16)
    start = np.log(mean_log.shape[-1] / 2) - np.log(missing)
    log_s = decreasing_root(excess, start, low=-50.0, high=50.0)
    return inverse_psi(psi(np.exp(log_s))[..., None] + mean_log)


def inverse_psi(y: Array) -> Array:
    """Solve psi(x) = y for x > 0: Minka's start, then Newton, which doubles the digits each time.

    >>> psi(inverse_psi(np.array([-1e6, 0.0, 20.0])))
    array([-1.e+06,  0.e+00,  2.e+01])
    """
    with np.errstate(over="ignore", divide="ignore"):
        x = np.where(y > -2.22, np.exp(y) + 0.5, -1 / (y - psi(1.0)))
    for _ in range(6):
        x = x - (psi(x) - y) / polygamma(1, x)
    return x
