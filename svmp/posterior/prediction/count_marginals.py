"""Distributions of one count given a draw of the parents, as functions over arrays.

Poisson(g), g a Gamma                    a negative binomial
Binomial(n, p), p a Beta                 a beta-binomial; so are entries of a Multinomial
Binomial(n, logit=z), z a Normal         by the trapezoidal rule
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betainc, betaln, expit, gammaincc, ndtr

from svmp.families.binomial import binomial_cdf, binomial_quantile
from svmp.families.family import Array
from svmp.families.quantiles import beta_quantile, count_quantile, normal_guess
from svmp.posterior.prediction.marginals import (
    NEAR,
    NEAR_WEIGHTS,
    LogitNormal,
    Marginal,
    mean_slope,
)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
CHANCES = 0.5 * (NODES + 1)
MANY = 1 << 14
"""Number of trials above which a beta-binomial is summed over nodes instead of counts."""
STEPS = np.arange(-40.0, 40.25, 0.5)
"""Steps around the mode of the logit of a Beta, in standard deviations."""


@dataclass(frozen=True, eq=False)
class PoissonMarginal(Marginal):
    """A Poisson."""

    discrete: ClassVar[bool] = True
    rate: Array

    @property
    def mean(self) -> Array:
        return self.rate

    @property
    def var(self) -> Array:
        return self.rate

    def cdf(self, x: Array) -> Array:
        return np.asarray(gammaincc(x + 1, self.rate))

    def quantile(self, p: Array) -> Array:
        return count_quantile(self.cdf, p, normal_guess(self.rate, np.sqrt(self.rate), p))


@dataclass(frozen=True, eq=False)
class NegativeBinomial(Marginal):
    """A Poisson whose rate is a Gamma with shape a and rate b."""

    discrete: ClassVar[bool] = True
    a: Array
    b: Array

    @property
    def mean(self) -> Array:
        return self.a / self.b

    @property
    def var(self) -> Array:
        return self.a / self.b * (1 + 1 / self.b)

    def cdf(self, x: Array) -> Array:
        return np.asarray(betainc(self.a, x + 1, self.b / (1 + self.b)))

    def quantile(self, p: Array) -> Array:
        return count_quantile(self.cdf, p, normal_guess(self.mean, np.sqrt(self.var), p))


@dataclass(frozen=True, eq=False)
class BinomialMarginal(Marginal):
    """A Binomial with a number of trials and a probability."""

    discrete: ClassVar[bool] = True
    trials: Array
    chance: Array

    @property
    def top(self) -> Array:  # type: ignore[override]
        """Largest possible value."""
        return self.trials

    @property
    def mean(self) -> Array:
        return self.trials * self.chance

    @property
    def var(self) -> Array:
        return self.trials * self.chance * (1 - self.chance)

    def cdf(self, x: Array) -> Array:
        return binomial_cdf(x, self.trials, self.chance)

    def quantile(self, p: Array) -> Array:
        return binomial_quantile(self.trials, self.chance, p)


@dataclass(frozen=True, eq=False)
class BetaBinomial(Marginal):
    """A Binomial whose probability is a Beta."""

    discrete: ClassVar[bool] = True
    trials: Array
    alpha: Array
    beta: Array

    @property
    def top(self) -> Array:  # type: ignore[override]
        """Largest possible value."""
        return self.trials

    @property
    def mean(self) -> Array:
        return self.trials * self.alpha / (self.alpha + self.beta)

    @property
    def var(self) -> Array:
        total = self.alpha + self.beta
        share = self.alpha / total * (self.beta / total)
        return np.asarray(self.trials * share * (total + self.trials) / (total + 1))

    def cdf(self, x: Array) -> Array:
        x, n, a, b = np.broadcast_arrays(x, self.trials, self.alpha, self.beta)
        if n.max(initial=0) > MANY:
            chance = beta_quantile(a[..., None], b[..., None], CHANCES)
            each = binomial_cdf(np.floor(x)[..., None], n[..., None], chance)
            return np.asarray(each @ (0.5 * WEIGHTS))
        total, out = np.zeros(x.shape), np.zeros(x.shape)
        for k in range(int(n.max(initial=0)) + 1):
            rest = np.maximum(n - k, 0.0)
            log = betaln(k + a, rest + b) - betaln(a, b)
            log = log - np.log1p(n) - betaln(rest + 1, k + 1.0)
            total = total + np.where(k <= n, np.exp(log), 0.0)
            out = np.where(x >= k, total, out)
        return np.where(x >= n, 1.0, out)

    def quantile(self, p: Array) -> Array:
        near = normal_guess(self.mean, np.sqrt(self.var), p)
        return count_quantile(self.cdf, p, near, self.trials)


@dataclass(frozen=True, eq=False)
class BinomialLogitNormal(Marginal):
    """A Binomial whose logit z is a Normal.

    P(x <= k) = E[P(b > z)], with b the logit of a Beta(k + 1, n - k). The trapezoidal rule runs
    over whichever of z and b varies less: its integrand is then smooth on the scale of the steps.
    """

    discrete: ClassVar[bool] = True
    trials: Array
    centre: Array
    spread: Array

    @property
    def top(self) -> Array:  # type: ignore[override]
        """Largest possible value."""
        return self.trials

    @property
    def mean(self) -> Array:
        return LogitNormal(self.centre, self.spread, self.trials).mean

    @property
    def var(self) -> Array:
        between = LogitNormal(self.centre, self.spread, self.trials).var
        return between + self.trials * mean_slope(self.centre, self.spread)

    def cdf(self, x: Array) -> Array:
        k, n, centre, spread = np.broadcast_arrays(
            np.floor(x), self.trials, self.centre, self.spread
        )
        k, n, centre, sd = (a[..., None] for a in (k, n, centre, np.sqrt(spread)))
        a, b = np.maximum(k, 0.0) + 1, np.maximum(n - k, 1.0)
        width = np.sqrt(1 / a + 1 / b)
        narrow = binomial_cdf(a - 1, n, expit(centre + np.minimum(sd, 2 * width) * NEAR))
        beta = np.log(a / b) + width * STEPS
        log = a * beta - (a + b) * np.logaddexp(0.0, beta)
        weights = np.exp(log - log.max(axis=-1, keepdims=True))
        wide = ndtr((beta - centre) / np.maximum(sd, 2 * width)) * weights
        below = np.where(
            sd[..., 0] <= 2 * width[..., 0],
            narrow @ NEAR_WEIGHTS,
            wide.sum(axis=-1) / weights.sum(axis=-1),
        )
        return np.where(k[..., 0] >= n[..., 0], 1.0, np.where(k[..., 0] < 0, 0.0, below))

    def quantile(self, p: Array) -> Array:
        near = normal_guess(self.mean, np.sqrt(self.var), p)
        return count_quantile(self.cdf, p, near, self.trials)
