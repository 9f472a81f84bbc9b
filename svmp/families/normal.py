"""Normal with mean mu and precision tau: phi(x) = (x, x^2), lam = (tau mu, -tau / 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from svmp.families.family import Array, Bools, Family, Features, stack

LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Normal(Family):
    """The Normal family on the real line.

    >>> family = Normal()
    >>> family.moments(family.natural(mu=1.0, tau=4.0))
    array([1.  , 1.25])
    """

    parameters: ClassVar[tuple[str, ...]] = ("mu", "tau")
    event_ndim: ClassVar[int] = 0
    gaussian: ClassVar[Literal["number"]] = "number"
    invertible: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return 2

    def natural(self, mu: ArrayLike, tau: ArrayLike) -> Array:
        tau = np.asarray(tau, dtype=np.float64)
        return stack(tau * mu, -0.5 * tau)

    def standard(self, natural: Array) -> dict[str, Array]:
        tau = -2 * natural[..., 1]
        return {"mu": natural[..., 0] / tau, "tau": tau}

    def moments(self, natural: Array) -> Array:
        tau, out = -2 * natural[..., 1], np.empty(np.shape(natural))
        mu, square = out[..., 0], out[..., 1]  # written in place: there may be millions
        np.divide(natural[..., 0], tau, out=mu)
        np.multiply(mu, mu, out=square)
        square += 1 / tau
        return out

    def log_partition(self, natural: Array) -> Array:
        tau = -2 * natural[..., 1]
        return 0.5 * (natural[..., 0] ** 2 / tau - np.log(tau) + LOG_2PI)

    def free_entropy(self, natural: Array, moments: Array | None = None) -> Array:
        return 0.5 * (1 + LOG_2PI - np.log(-2 * natural[..., 1]))

    def statistics(self, x: ArrayLike) -> Array:
        x = np.asarray(x, dtype=np.float64)
        return stack(x, x**2)

    def in_domain(self, natural: Array) -> Bools:
        finite = np.isfinite(natural)
        return finite[..., 0] & finite[..., 1] & (natural[..., 1] < 0)

    def in_support(self, x: ArrayLike) -> Bools:
        return np.isfinite(np.asarray(x, dtype=np.float64))

    def mean(self, natural: Array) -> Array:
        return self.standard(natural)["mu"]

    def var(self, natural: Array) -> Array:
        return -0.5 / natural[..., 1]

    def log_density(self, natural: Array, x: ArrayLike) -> Array:
        mu, tau = self.standard(natural).values()
        return 0.5 * (np.log(tau) - LOG_2PI - tau * (np.asarray(x, dtype=np.float64) - mu) ** 2)

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        return np.asarray(self.mean(natural) + np.sqrt(self.var(natural)) * ndtri(p))

    def features(self, statistics: Array, trials: Array | float = 1.0) -> Features:
        return Features(statistics[:, :1], "numbers")

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        mu, sd = self.mean(natural), np.sqrt(self.var(natural))
        return mu + sd * rng.standard_normal((size, *mu.shape))

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        mu, var = self.mean(natural), self.var(natural)
        first = var * (vector[..., 0] + 2 * mu * vector[..., 1])
        return stack(first, 2 * (mu * first + var**2 * vector[..., 1]))

    def as_evidence(self, natural: Array) -> Array:
        return np.where(natural[..., 1:] < 0, natural, 0.0)

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        mu, tau = self.standard(natural).values()
        spread = 0.3 * np.minimum(1.0, 1 / np.sqrt(tau))
        return self.natural(mu + spread * rng.standard_normal(mu.shape), tau)
