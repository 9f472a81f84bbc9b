"""Mixtures over draws and components: means, variances and quantiles of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp.families.family import Array
from svmp.families.quantiles import bracketed_quantile, count_quantile, normal_guess
from svmp.posterior.prediction.marginals import Marginal


@dataclass(frozen=True, eq=False)
class Points(Marginal):
    """Known numbers."""

    values: Array

    @property
    def mean(self) -> Array:
        return self.values

    @property
    def var(self) -> Array:
        return np.zeros(self.values.shape)

    def cdf(self, x: Array) -> Array:
        return np.asarray(x >= self.values, dtype=np.float64)

    def quantile(self, p: Array) -> Array:
        return self.values


@dataclass(frozen=True, eq=False)
class RowMixture:
    """Rows that are mixtures of marginals.

    Attributes
    ----------
    marginal
        Arrays of (draws and components, rows, entries of a value).
    weights
        Probability of each, (draws and components, rows); they add up to 1.
    """

    marginal: Marginal
    weights: Array

    def _weighted(self, values: Array) -> Array:
        weights = self.weights.reshape(self.weights.shape + (1,) * (values.ndim - 2))
        with np.errstate(invalid="ignore"):  # infinite variances with a weight of 0
            return np.asarray(np.where(weights > 0, weights * values, 0.0).sum(axis=0))

    @property
    def mean(self) -> Array:
        """The mean of each row."""
        return self._weighted(self.marginal.mean)

    @property
    def var(self) -> Array:
        """The variance of each row."""
        mean = self.mean
        with np.errstate(invalid="ignore"):
            off = np.where(np.isfinite(self.marginal.mean), (self.marginal.mean - mean) ** 2, 0.0)
        found = self._weighted(self.marginal.var) + self._weighted(off)
        return np.where(np.isfinite(mean), found, np.inf)

    def cdf(self, x: Array) -> Array:
        """Return the probability that each row is at most x."""
        return np.clip(self._weighted(self.marginal.cdf(x)), 0.0, 1.0)

    def log_density(self, x: Array) -> Array:
        """Return the log of the density of each row, or of the probability of a count."""
        marginal = self.marginal
        if marginal.discrete:
            mass = marginal.cdf(x) - np.where(x > 0, marginal.cdf(np.maximum(x - 1, 0.0)), 0.0)
        else:
            mass = marginal.pdf(x)
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(self._weighted(mass), 0.0))

    def quantile(self, p: float) -> Array:
        """Return the smallest value that each row is at most with probability p."""
        marginal = self.marginal
        if isinstance(marginal, Points):
            return self._quantile_of_points(p)
        means = marginal.mean
        if len(means) == 1:
            return marginal.quantile(np.asarray(p))[0]
        weights = self.weights.reshape(self.weights.shape + (1,) * (means.ndim - 2))

        def cdf(x: Array) -> Array:
            return np.asarray((weights * marginal.cdf(x)).sum(axis=0))

        def pdf(x: Array) -> Array:
            return np.asarray((weights * marginal.pdf(x)).sum(axis=0))

        if marginal.discrete:
            near = normal_guess(self.mean, np.sqrt(self.var), p)
            return count_quantile(cdf, p * (1 - 1e-14), near, np.max(marginal.top))
        each = marginal.quantile(np.asarray(p))
        low = np.where(weights > 0, each, np.inf).min(axis=0)
        high = np.where(weights > 0, each, -np.inf).max(axis=0)
        middle = np.where(weights > 0, weights * each, 0.0).sum(axis=0)
        return bracketed_quantile(cdf, pdf, np.full(low.shape, p), low, high, middle)

    def _quantile_of_points(self, p: float) -> Array:
        """Return quantiles of weighted numbers, linear between the middles of their weights."""
        values = self.marginal.mean
        if len(values) == 1:
            return values[0]
        weights = self.weights.reshape(self.weights.shape + (1,) * (values.ndim - 2))
        weights = np.broadcast_to(weights, values.shape)
        order = np.argsort(values, axis=0, kind="stable")
        values = np.take_along_axis(values, order, axis=0)
        weights = np.take_along_axis(weights, order, axis=0)
        middle = np.cumsum(weights, axis=0) - 0.5 * weights
        above = np.clip((middle < p).sum(axis=0), 1, len(values) - 1)[None]
        right, left = (np.take_along_axis(values, i, axis=0)[0] for i in (above, above - 1))
        end, begin = (np.take_along_axis(middle, i, axis=0)[0] for i in (above, above - 1))
        share = np.clip((p - begin) / np.maximum(end - begin, 1e-300), 0.0, 1.0)
        return np.asarray(left + share * (right - left))
