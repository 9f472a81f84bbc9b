"""Whether ranks are uniform: their ECDF against a simultaneous band (Säilynoja et al. 2022).

If q were the posterior, the rank of the true value among L draws of q would be uniform, 0, ..., L.
The number of n ranks below a fraction z of the range is then Binomial(n, z). The smallest tail
probability over all z is compared with that of simulated uniform ranks, which accounts for looking
at many z at once.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from svmp.families.family import Array

SIMULATIONS = 2000
"""Simulated sets of uniform ranks."""

Ranks = NDArray[np.int64]


def tail_probabilities(counts: NDArray[np.int64], total: int, fractions: Array) -> Array:
    """Two-sided tail probability of each count under Binomial(total, fraction)."""
    below = stats.binom.cdf(counts, total, fractions)
    above = stats.binom.sf(counts - 1, total, fractions)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)))


def fractions_of(draws: int) -> Array:
    """Return the fractions of the range at which the ECDF is looked at."""
    return np.arange(1, draws + 1) / (draws + 1)


def counts_below(ranks: Ranks, draws: int) -> Ranks:
    """Return how many ranks are below 1, ..., L; simulations are on the first axis of ranks.

    >>> counts_below(np.array([[0, 2, 2]]), 2)
    array([[1, 1]])
    """
    places = np.arange(1, draws + 1)
    return np.stack([(ranks < place).sum(axis=-1) for place in places], axis=-1)


@cache
def smallest_of_uniform(total: int, draws: int) -> Array:
    """Return the smallest tail probability of many sets of uniform ranks, ascending."""
    ranks = np.random.default_rng(0).integers(0, draws + 1, (SIMULATIONS, total))
    tails = tail_probabilities(counts_below(ranks, draws), total, fractions_of(draws))
    return np.sort(tails.min(axis=-1))


def p_value(ranks: Ranks, draws: int) -> float:
    """Return the probability of a smaller tail probability under uniform ranks.

    >>> even = np.arange(100)
    >>> p_value(even, 99) > 0.5, p_value(np.repeat([0, 99], 50), 99) < 0.001
    (True, True)
    """
    tails = tail_probabilities(counts_below(ranks, draws), len(ranks), fractions_of(draws))
    null = smallest_of_uniform(len(ranks), draws)
    smaller = np.searchsorted(null, tails.min() * (1 + 1e-9), side="right")
    return float((smaller + 1) / (len(null) + 1))


def band(total: int, draws: int, level: float = 0.95) -> tuple[Array, Array]:
    """Return the lower and upper ends of the ECDF, at all fractions together, of uniform ranks."""
    tail = float(np.quantile(smallest_of_uniform(total, draws), 1 - level))
    fractions = fractions_of(draws)
    low = stats.binom.ppf(tail / 2, total, fractions)
    high = stats.binom.isf(tail / 2, total, fractions)
    return np.asarray(low / total), np.asarray(high / total)
