"""Natural parameters from moments, by SciPy's root finding: what the moments determine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import elementwise, root
from scipy.special import psi

from svmp.families.family import Array, Family


def from_moments(family: Family, moments: Array, start: Array) -> Array:
    """Solve moments(natural) = moments for one natural parameter, from a start in the domain.

    By least squares, because some families have a redundant parameter.
    """
    scale = 1 + np.abs(moments)

    def excess(natural: Array) -> Array:
        with np.errstate(all="ignore"):
            found = (family.moments(natural) - moments) / scale
        return np.where(np.isfinite(found), found, 1e6)

    return np.asarray(root(excess, start, method="lm", options={"xtol": 1e-15, "ftol": 1e-15}).x)


def concentrations(mean_log: Array) -> Array:
    """Solve psi(a_k) - psi(s) = mean_log_k for a, with s the sum of a.

    Given s, each a_k is psi^-1(psi(s) + mean_log_k); s is where they add up to it.
    """

    def shapes(log_s: Array) -> Array:
        return inverse_psi(psi(np.exp(log_s))[..., None] + mean_log)

    log_s = solve(lambda t: np.log(shapes(t).sum(axis=-1)) - t, (-50.0, 50.0))
    return shapes(log_s)


def gamma_shape(gap: Array) -> Array:
    """Solve log(alpha) - psi(alpha) = gap for alpha."""
    return degrees(gap, 1) / 2


def degrees(gap: Array, dimension: int) -> Array:
    """Solve log|E[X]| - E[log|X|] = gap for the degrees of freedom of a Wishart.

    With shapes a_i = a + i / 2 and nu = 2 a + d - 1, the left side is the sum over i of
    log(nu / 2) - psi(a_i), which falls from infinity to zero in a.
    """
    below = 0.5 * np.arange(dimension)

    def excess(log_a: Array) -> Array:
        shapes = np.exp(log_a)[..., None] + below
        value = (log_minus_psi(shapes) + np.log1p(below[::-1] / shapes)).sum(axis=-1)
        return np.log(value) - np.log(gap)

    return 2 * np.exp(solve(excess, (-300.0, 300.0))) + dimension - 1


def inverse_psi(y: Array) -> Array:
    """Solve psi(x) = y for x > 0."""
    return np.exp(solve(lambda t, y: psi(np.exp(t)) - y, (-100.0, 100.0), y))


def log_minus_psi(x: Array) -> Array:
    """log(x) - psi(x), by its asymptotic series where the two all but cancel."""
    series = 1 / (2 * x) + 1 / (12 * x**2)
    return np.where(x > 1e4, series, np.log(x) - psi(x))


def solve(function: Callable[..., Array], bracket: tuple[float, float], *args: Array) -> Array:
    with np.errstate(all="ignore"):
        found = elementwise.find_root(function, bracket, args=args)
    assert np.all(found.success)
    return np.asarray(found.x)
