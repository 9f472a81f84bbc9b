"""Quantiles by inverting a distribution function, all elements at once.

The quantile of p is the smallest x with F(x) >= p. Counts are found by steps away from a guess,
which grow until they have passed it, and by bisection between the last two; other values by
Newton's method within a bracket that shrinks with every step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, gammaincinv, ndtr, ndtri

from svmp.families.family import Array

MOST = 2.0**60
"""Largest count that is searched; floats have no odd numbers there."""
GROWTH = 4.0
"""Growth of the steps of a search over counts."""
SMALL, LARGE, HUGE = 1e4, 1e6, 1e9
"""Shapes of a Beta up to which it is like a Gamma, and from which its quantiles are checked, or
computed from limits."""
STEPS = 200
FAR = 9.0
"""Standard deviations from the mean at most where a search starts."""
CLOSE = 1e-12
"""Step at which the search ends, as a share of the bracket or of its ends."""


def count_quantile(
    cdf: Callable[[Array], Array], p: ArrayLike, near: ArrayLike, top: ArrayLike = np.inf
) -> Array:
    """Return the smallest count k in 0..top with cdf(k) >= p; `near` is where to look first.

    The nearer, the fewer calls of `cdf`; it may be any number.

    >>> from scipy.special import pdtr
    >>> count_quantile(lambda k: pdtr(k, 3.0), [0.1, 0.5, 1.0], 3.0)
    array([ 1.,  3., inf])
    """
    p, near, top = np.broadcast_arrays(
        np.asarray(p, dtype=np.float64), np.asarray(near, dtype=np.float64), np.asarray(top) * 1.0
    )
    last = np.minimum(top, MOST)
    start = np.minimum(np.fmax(np.ceil(near), 0.0), last)
    up = cdf(start) < p
    low, high = np.where(up, start, -1.0), np.where(up, last, start)  # cdf(low) < p <= cdf(high)
    step, searching = 1.0, np.ones(p.shape, dtype=bool)
    while True:
        x = np.where(up, low + step, high - step)
        searching &= (x > low) & (x < high)
        if not searching.any():
            break
        reached = cdf(np.where(searching, x, high)) >= p
        high = np.where(searching & reached, x, high)
        low = np.where(searching & ~reached, x, low)
        searching &= reached != up  # not yet passed
        step *= GROWTH
    while True:
        middle = np.floor(0.5 * (low + high))
        wide = (middle > low) & (middle < high)
        if not wide.any():
            break
        reached = cdf(np.where(wide, middle, high)) >= p
        high = np.where(wide & reached, middle, high)
        low = np.where(wide & ~reached, middle, low)
    return np.where((p >= 1) & (top > high), top, high)


def normal_guess(mean: Array, sd: Array, p: ArrayLike) -> Array:
    """Return the quantile of a Normal with this mean and sd: where to look first.

    >>> normal_guess(np.array([10.0]), np.array([2.0]), 0.5)
    array([10.])
    """
    return np.asarray(mean + sd * np.clip(ndtri(np.asarray(p)), -FAR, FAR))


def bracketed_quantile(
    cdf: Callable[[Array], Array],
    pdf: Callable[[Array], Array],
    p: Array,
    low: Array,
    high: Array,
    start: Array | None = None,
) -> Array:
    """Return x with cdf(x) = p, given low <= x <= high, and perhaps where to start.

    >>> from scipy.special import ndtr
    >>> def density(x):
    ...     return np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
    >>> ends = np.array([-9.0]), np.array([9.0])
    >>> bracketed_quantile(ndtr, density, np.array([0.975]), *ends).round(6)
    array([1.959964])
    """
    low, high = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    x = 0.5 * (low + high) if start is None else np.clip(start, low, high)
    enough = CLOSE * np.maximum(high - low, np.maximum(np.abs(low), np.abs(high)))
    for _ in range(STEPS):
        off = cdf(x) - p
        low, high = np.where(off < 0, x, low), np.where(off < 0, high, x)
        with np.errstate(all="ignore"):
            newton = x - off / pdf(x)
        found = np.abs(newton - x) <= enough
        inside = (newton > low) & (newton < high)
        new = np.where(inside, newton, np.where(found, x, 0.5 * (low + high)))
        found |= np.abs(new - x) <= enough
        x = new
        if found.all():
            break
    return x


def beta_quantile(a: ArrayLike, b: ArrayLike, p: ArrayLike) -> Array:
    """Return the quantiles of Betas, also where an inverse of their distribution function fails.

    With a shape above 1e6 the inverse is checked. Where it is wrong, and with shapes above 1e9, x
    has a limit: for a small shape a, -(b + (a - 1) / 2) log(1 - x) is a Gamma, and large shapes
    make x a Normal with a little skewness.

    >>> beta_quantile([2.0, 3.0], [3.0, 2.0], 0.5).round(4)
    array([0.3857, 0.6143])
    >>> beta_quantile([1e20, 1e3, 1e20], [1e20, 1e10, 1.0], [0.5, 0.95, 0.5])
    array([5.00000000e-01, 1.05257701e-07, 1.00000000e+00])
    """
    a, b, p = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (a, b, p)))
    most, within = np.maximum(a, b), (p > 0) & (p < 1)
    wrong = (most > HUGE) & within
    with np.errstate(all="ignore"):
        found = np.array(betaincinv(np.where(wrong, 1.0, a), np.where(wrong, 1.0, b), p))
        unsure = (most > LARGE) & within & ~wrong
        if unsure.any():
            off = np.abs(betainc(a[unsure], b[unsure], found[unsure]) - p[unsure])
            wrong[unsure] = ~(off < 1e-6 * np.minimum(p, 1 - p)[unsure])
        if wrong.any():
            found[wrong] = _large_beta_quantile(a[wrong], b[wrong], p[wrong])
    return found


def _large_beta_quantile(a: Array, b: Array, p: Array) -> Array:
    """Return quantiles of Betas with a shape above `LARGE`."""
    total = a + b
    mean, spread = a / total, np.sqrt(a / total) * np.sqrt(b / total) / np.sqrt(total + 1)
    z, skewness = ndtri(p), 2 * (b - a) / (total + 2) * np.sqrt(total + 1) / np.sqrt(a) / np.sqrt(b)
    normal = mean + spread * (z + (z**2 - 1) * skewness / 6)
    low = -np.expm1(-gammaincinv(np.minimum(a, SMALL), p) / (b + 0.5 * (a - 1)))
    high = np.exp(-gammaincinv(np.minimum(b, SMALL), 1 - p) / (a + 0.5 * (b - 1)))
    return np.where(a < SMALL, low, np.where(b < SMALL, high, normal))


def normal_mixture_quantile(centre: Array, spread: Array, weights: Array, p: Array) -> Array:
    """Return the quantiles of mixtures of Normals, with the components on a last axis.

    A quantile of a mixture lies between the least and the greatest one of its components.

    >>> centre, spread = np.array([-1.0, 1.0]), np.array([1.0, 1.0])
    >>> normal_mixture_quantile(centre, spread, np.array([0.5, 0.5]), np.array(0.5))
    array(0.)
    """
    each = centre + spread * ndtri(np.asarray(p))[..., None]

    def cdf(x: Array) -> Array:
        return np.asarray((weights * ndtr((x[..., None] - centre) / spread)).sum(axis=-1))

    def pdf(x: Array) -> Array:
        height = np.exp(-0.5 * ((x[..., None] - centre) / spread) ** 2) / spread
        return np.asarray((weights * height).sum(axis=-1) / np.sqrt(2 * np.pi))

    return bracketed_quantile(cdf, pdf, np.asarray(p), each.min(axis=-1), each.max(axis=-1))
