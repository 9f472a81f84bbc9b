"""What the families of counts share: numbers of trials, and expectations without a closed form.

These are sums over the integers near the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, polygamma, xlogy

from svmp.families.family import Array

MANY = 1e4
BLOCK = 1 << 20


def trials_at(trials: ArrayLike, elements: Any) -> NDArray[Any]:
    """Return the trials of some elements, by flat index.

    Broadcasting repeats the trials along leading axes, so flat indices wrap around.

    >>> trials_at([2, 5, 9], [3, 1])
    array([2, 5])
    """
    return np.take(trials, elements, mode="wrap")


def check_trials(trials: ArrayLike, n: ArrayLike | None) -> None:
    """Refuse a number of trials n that differs from the family's; None stands for the same."""
    if n is not None and np.any(np.asarray(n) != trials):
        raise ValueError(
            f"n is {np.asarray(n)}, but this family counts {np.asarray(trials)} trials"
        )


def expect(
    function: Callable[[Array], Array],
    log_mass: Callable[[Array], Array],
    mean: Array,
    var: Array,
    top: ArrayLike = np.inf,
) -> Array:
    """E[function(x)] for x in 0..top, summed over x within ten standard deviations of the mean.

    Both functions take counts with one axis more than the mean. The tails that are left out have
    a mass below 1e-20. The sum runs block by block to bound the memory, and is divided by the
    summed mass, because rounding errors in the log-mass grow with the counts.
    """
    mean, top = np.asarray(mean, dtype=np.float64), np.asarray(top)[..., None]
    reach = int(10 * np.sqrt(np.max(var, where=np.isfinite(var), initial=0.0))) + 30
    centre = np.floor(mean)[..., None]
    block = max(1, BLOCK // max(1, mean.size))
    total, weight = np.zeros(mean.shape), np.zeros(mean.shape)
    for first in range(-reach, reach + 1, block):
        nearby = centre + np.arange(first, min(first + block, reach + 1))
        possible = (nearby >= 0) & (nearby <= top)
        count = np.asarray(np.clip(nearby, 0, top), dtype=np.float64)
        mass = np.where(possible, np.exp(log_mass(count)), 0.0)
        total += (mass * function(count)).sum(axis=-1)
        weight += mass.sum(axis=-1)
    return total / weight


def count_entropy(
    log_mass: Callable[[Array], Array],
    mean: Array,
    var: Array,
    third: Array,
    fourth: Array,
    top: ArrayLike = np.inf,
) -> Array:
    """-E[log p(x)] by the sum, and by the Edgeworth series where the variance is above 1e4.

    There the series, cut after the terms in 1 / var^2, has an error of about 1e-13, less than the
    sum. `third` is the squared skewness times the variance, `fourth` the excess kurtosis times the
    variance; neither changes with the number of independent trials.
    """
    few = var <= MANY
    with np.errstate(all="ignore"):
        near = expect(
            lambda count: -log_mass(count),
            log_mass,
            np.where(few, mean, 0.0),
            np.where(few, var, 0.0),
            top,
        )
        second_order = (fourth**2 + 7 * third**2 - 6 * third * fourth) / 48
        negentropy = (third / 12 + second_order / var) / var
        far = 0.5 * (1 + np.log(2 * np.pi) + np.log(var)) - negentropy
    return np.where(few, near, far)


def log_factorial_series(mean: Array, var: Array, p: Array) -> Array:
    """E[log x!] - log mean! of a Binomial with a variance above 1e4, in constant time.

    By the Taylor series of log x! around the mean up to the sixth central moment; the remainder is
    of the order of 1 / mean^3.
    """
    skew, pq = 1 - 2 * p, p * (1 - p)
    central = (
        var,
        var * skew,
        var * (3 * var + 1 - 6 * pq),
        var * skew * (10 * var + 1 - 12 * pq),
        var * (15 * var**2 + 5 * var * (5 - 26 * pq) + 1 - 30 * pq * (1 - 4 * pq)),
    )
    total = np.zeros(np.shape(mean))
    for order, moment in enumerate(central, start=2):
        total += polygamma(order - 1, mean + 1) * moment / factorial(order)
    return total


def stirling_rest(x: Array) -> Array:
    """Return log x! - (x log x - x)."""
    large = np.maximum(x, 100.0)
    series = (1 / 12 - (1 / 360 - 1 / (1260 * large**2)) / large**2) / large
    near = gammaln(x + 1) - xlogy(x, x) + x
    return np.asarray(np.where(x < 100, near, 0.5 * np.log(2 * np.pi * large) + series))
