"""Distributions of one number given a draw of the parents, as functions over arrays.

Each is the density of a row with one parent integrated over in closed form:

    Normal(mu, tau), mu a Normal             a Normal with the variances added
    Gamma(alpha, g), Exponential(g)          a compound Gamma (beta prime, Lomax)

(those of counts are in count_marginals.py), or its mean, for predictions without noise.

The first axis of all arrays is that of draws and components; the others broadcast with x.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import (
    betainc,
    betaln,
    expit,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    logit,
    ndtr,
    ndtri,
    xlogy,
)

from svmp.families.family import Array
from svmp.families.quantiles import beta_quantile

TINY = float(np.finfo(np.float64).tiny)
WIDE = 2.0
"""Standard deviation of a logit above which integrals run over the logistic noise instead."""


class Marginal(ABC):
    """A distribution of numbers, with parameters as arrays.

    Attributes
    ----------
    discrete
        Whether its values are counts.
    top
        Largest possible value.
    """

    discrete: ClassVar[bool] = False
    top: Array | float = np.inf

    @property
    @abstractmethod
    def mean(self) -> Array:
        """The mean."""

    @property
    @abstractmethod
    def var(self) -> Array:
        """The variance; infinite where it does not exist."""

    @abstractmethod
    def cdf(self, x: Array) -> Array:
        """Return the probability of at most x."""

    def pdf(self, x: Array) -> Array:
        """Return the density, of one that is not discrete."""
        raise AssertionError("counts have no density")

    @abstractmethod
    def quantile(self, p: Array) -> Array:
        """Return the quantile of p."""


@dataclass(frozen=True, eq=False)
class NormalMarginal(Marginal):
    """A Normal with a mean and a variance; a variance of 0 is a point."""

    centre: Array
    spread: Array

    @property
    def mean(self) -> Array:
        return self.centre

    @property
    def var(self) -> Array:
        return self.spread

    @cached_property
    def sd(self) -> Array:
        """Standard deviation, at least the smallest float."""
        return np.maximum(np.sqrt(self.spread), TINY)

    def cdf(self, x: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(ndtr((x - self.centre) / self.sd))

    def pdf(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            height = np.exp(-0.5 * ((x - self.centre) / self.sd) ** 2)
            return np.asarray(height / (self.sd * np.sqrt(2 * np.pi)))

    def quantile(self, p: Array) -> Array:
        return np.asarray(self.centre + np.sqrt(self.spread) * ndtri(p))


@dataclass(frozen=True, eq=False)
class LogitNormal(Marginal):
    """scale / (1 + exp(-z)) of a Normal z: the mean of `scale` trials of a logistic regression."""

    centre: Array
    spread: Array
    scale: Array

    @property
    def mean(self) -> Array:
        return self.scale * mean_expit(self.centre, self.spread)

    @property
    def var(self) -> Array:
        mean = mean_expit(self.centre, self.spread)
        share = np.maximum(mean * (1 - mean) - mean_slope(self.centre, self.spread), 0.0)
        return self.scale**2 * share

    def cdf(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            share = np.clip(x / self.scale, 0.0, 1.0)
        below = NormalMarginal(self.centre, self.spread).cdf(logit(share))
        return np.where(self.scale > 0, below, x >= 0)

    def pdf(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            share = x / self.scale
            at = NormalMarginal(self.centre, self.spread).pdf(logit(share))
            return np.asarray(at / (share * (1 - share) * self.scale))

    def quantile(self, p: Array) -> Array:
        z = NormalMarginal(self.centre, self.spread).quantile(p)
        return np.asarray(self.scale * expit(z))


def mean_expit(centre: Array, spread: Array) -> Array:
    """E[1 / (1 + exp(-z))] of Normals z with a mean and a variance.

    By the trapezoidal rule over z; where z varies much, over the logistic noise in P(noise < z).
    Both integrands are analytic near the real line, so that the rule is exact to about 1e-8.

    >>> mean_expit(np.array([0.0, 1.0]), np.array([9.0, 0.0])).round(4)
    array([0.5   , 0.7311])
    """
    sd = np.sqrt(spread)[..., None]
    narrow = expit(centre[..., None] + np.minimum(sd, WIDE) * NEAR) @ NEAR_WEIGHTS
    wide = ndtr((centre[..., None] + FAR) / np.maximum(sd, WIDE)) @ FAR_WEIGHTS
    return np.asarray(np.where(sd[..., 0] <= WIDE, narrow, wide))


def mean_slope(centre: Array, spread: Array) -> Array:
    """E[p (1 - p)] of p = 1 / (1 + exp(-z)), the same way.

    >>> mean_slope(np.array([0.0]), np.array([0.0]))
    array([0.25])
    """
    sd = np.sqrt(spread)[..., None]
    p = expit(centre[..., None] + np.minimum(sd, WIDE) * NEAR)
    large = np.maximum(sd, WIDE)
    height = np.exp(-0.5 * ((centre[..., None] + FAR) / large) ** 2) / (large * np.sqrt(2 * np.pi))
    return np.asarray(
        np.where(sd[..., 0] <= WIDE, (p * (1 - p)) @ NEAR_WEIGHTS, height @ FAR_WEIGHTS)
    )


def _nodes(reach: float, step: float, density: Callable[[Array], Array]) -> tuple[Array, Array]:
    nodes = np.arange(-reach, reach + step / 2, step)
    weights = density(nodes)
    return nodes, weights / weights.sum()


NEAR, NEAR_WEIGHTS = _nodes(8.5, 0.25, lambda t: np.exp(-0.5 * t**2))
FAR, FAR_WEIGHTS = _nodes(40.0, 1.0, lambda t: np.asarray(expit(t) * expit(-t)))


@dataclass(frozen=True, eq=False)
class GammaMarginal(Marginal):
    """A Gamma with shape and rate."""

    alpha: Array
    beta: Array

    @property
    def mean(self) -> Array:
        return self.alpha / self.beta

    @property
    def var(self) -> Array:
        return self.alpha / self.beta**2

    def cdf(self, x: Array) -> Array:
        return np.asarray(gammainc(self.alpha, self.beta * np.maximum(x, 0.0)))

    def pdf(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            log = xlogy(self.alpha, self.beta) + xlogy(self.alpha - 1, x) - self.beta * x
            return np.asarray(np.exp(log - gammaln(self.alpha)))

    def quantile(self, p: Array) -> Array:
        return np.asarray(gammaincinv(self.alpha, p) / self.beta)


@dataclass(frozen=True, eq=False)
class InverseGamma(Marginal):
    """scale / g of a Gamma g with shape alpha and rate 1."""

    alpha: Array
    scale: Array

    @property
    def mean(self) -> Array:
        return inverse_moment(self.alpha, self.scale, 1)

    @property
    def var(self) -> Array:
        second = inverse_moment(self.alpha, self.scale, 2)
        return np.where(
            self.alpha > 2, second - np.where(self.alpha > 2, self.mean, 0) ** 2, second
        )

    def cdf(self, x: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(gammaincc(self.alpha, self.scale / np.maximum(x, 0.0)))

    def pdf(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            log = xlogy(self.alpha, self.scale) - xlogy(self.alpha + 1, x) - self.scale / x
            return np.asarray(np.exp(log - gammaln(self.alpha)))

    def quantile(self, p: Array) -> Array:
        return np.asarray(self.scale / gammainccinv(self.alpha, p))


def inverse_moment(alpha: Array, scale: Array, order: int) -> Array:
    """E[(scale / g)^order] of a Gamma g with shape alpha and rate 1; infinite if alpha <= order.

    >>> inverse_moment(np.array([3.0, 1.0]), np.array([4.0, 4.0]), 1)
    array([ 2., inf])
    """
    alpha, scale = np.asarray(alpha, dtype=np.float64), np.asarray(scale, dtype=np.float64)
    safe = np.where(alpha > order, alpha, order + 1.0)
    product = np.ones(np.shape(safe))
    for k in range(1, order + 1):
        product = product * scale / (safe - k)
    return np.where(alpha > order, product, np.inf)


@dataclass(frozen=True, eq=False)
class CompoundGamma(Marginal):
    """A Gamma with shape alpha whose rate is a Gamma with shape a and rate b."""

    alpha: Array
    a: Array
    b: Array

    @property
    def mean(self) -> Array:
        return self.alpha * inverse_moment(self.a, self.b, 1)

    @property
    def var(self) -> Array:
        first = np.where(self.a > 2, inverse_moment(self.a, self.b, 1), 0.0)
        second = inverse_moment(self.a, self.b, 2)
        return np.asarray(self.alpha * (self.alpha + 1) * second - (self.alpha * first) ** 2)

    def cdf(self, x: Array) -> Array:
        x = np.maximum(x, 0.0)
        return np.asarray(betainc(self.alpha, self.a, x / (self.b + x)))

    def pdf(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            log = xlogy(self.alpha - 1, x) + xlogy(self.a, self.b)
            log = log - (self.alpha + self.a) * np.log(self.b + x) - betaln(self.alpha, self.a)
            return np.asarray(np.exp(log))

    def quantile(self, p: Array) -> Array:
        share = beta_quantile(self.alpha, self.a, p)
        rest = beta_quantile(self.a, self.alpha, 1 - p)  # 1 - share, with all its digits
        return np.asarray(self.b * share / np.maximum(rest, TINY))


@dataclass(frozen=True, eq=False)
class BetaMarginal(Marginal):
    """A number of trials times a Beta."""

    alpha: Array
    beta: Array
    trials: Array

    @property
    def mean(self) -> Array:
        return self.trials * self.alpha / (self.alpha + self.beta)

    @property
    def var(self) -> Array:
        total = self.alpha + self.beta
        spread = self.alpha / total * (self.beta / total) / (total + 1)
        return np.asarray(self.trials**2 * spread)

    def cdf(self, x: Array) -> Array:
        share = np.clip(x / np.maximum(self.trials, TINY), 0.0, 1.0)
        return np.asarray(betainc(self.alpha, self.beta, share))

    def pdf(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            n = np.maximum(self.trials, TINY)
            log = xlogy(self.alpha - 1, x / n) + xlogy(self.beta - 1, 1 - x / n)
            return np.asarray(np.exp(log - betaln(self.alpha, self.beta)) / n)

    def quantile(self, p: Array) -> Array:
        return np.asarray(self.trials * beta_quantile(self.alpha, self.beta, p))
