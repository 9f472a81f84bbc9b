"""The probability of an event whose logit z is Normal under q, with mean m and variance s^2.

Mean, standard deviation and intervals are those of the logit-normal p = 1 / (1 + e^-z). If s is
large and p small, it is skewed, and its mean may lie outside the central 50% interval (for small p
if s > 1.35). Such an interval is shifted by the least amount that makes it contain the mean.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from svmp.recommend.side import Floats

POINTS = 24
"""Points of Gauss-Hermite quadrature: up to s = 3, mean and deviation are exact to 0.002."""


FARTHEST = 40.0
"""Standard deviations beyond which the mass of a Normal is zero in double precision."""


def probability(mean: Floats, var: Floats) -> Floats:
    """Return the expected probability."""
    return moments(mean, var)[0]


def moments(mean: Floats, var: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the probability."""
    std = np.sqrt(var)
    nodes, weights = np.polynomial.hermite_e.hermegauss(POINTS)
    first, second = np.zeros((2, *np.shape(mean)))
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        chance = expit(mean + node.astype(np.float32) * std)
        first += weight * chance
        second += weight * chance.astype(np.float64) ** 2
    spread = np.sqrt(np.maximum(second - first**2, 0))
    kind = np.result_type(mean)
    return first.astype(kind), spread.astype(kind)


def interval(mean: Floats, var: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of an interval that contains the probability with probability `level`.

    It is the central interval if that contains the expected probability; otherwise it ends there.
    """
    expected = probability(mean, var)
    std = np.sqrt(var)
    reach = ndtri((1 + level) / 2)
    place = (logit(np.clip(expected, 1e-30, 1 - 1e-7)) - mean) / np.maximum(std, 1e-12)
    high = np.maximum(reach, place)
    high = np.where(place < -reach, ndtri(np.minimum(ndtr(place) + level, 1)), high)
    low = np.where(
        place > reach, ndtri(np.maximum(ndtr(place) - level, 0)), np.minimum(-reach, place)
    )
    low, high = np.clip(low, -FARTHEST, FARTHEST), np.clip(high, -FARTHEST, FARTHEST)
    ends = (expit(mean + x * std).astype(np.result_type(mean)) for x in (low, high))
    below, above = ends
    return np.minimum(below, expected), np.maximum(above, expected)
