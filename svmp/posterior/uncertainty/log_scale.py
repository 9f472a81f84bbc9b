"""Gammas with a given variance of their logarithm.

A Gamma that is matched in its mean and variance has far too much probability near 0 where it is
wide: a shape below 1, under which E[1 / x], the mean variance of an effect, is infinite. Matched in
the mean and the variance of log x it has

    psi'(alpha) = Var[log x],    log(beta) = psi(alpha) - E[log x].

Var[x] = alpha / beta^2 then determines both, given E[log x]; so it can stand for them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import polygamma, psi

from svmp.families import Gamma
from svmp.families.family import Array

STEPS = 60
"""Most steps of Newton's method; five or six are enough."""


def matched_gamma(natural: Array, variances: Array) -> tuple[Array, Array]:
    """Return shape and rate with the E[log x] of some Gammas, and given variances of log x.

    >>> alpha, beta = matched_gamma(Gamma().natural([6.0], [2.0]), polygamma(1, np.array([2.0])))
    >>> alpha.round(9), (psi(alpha) - np.log(beta) - psi(6) + np.log(2)).round(9)
    (array([2.]), array([0.]))
    """
    start = Gamma().standard(natural)["alpha"]
    alpha = root_in_log(
        start,
        lambda a: np.log(polygamma(1, a) / variances),
        lambda a: polygamma(2, a) / polygamma(1, a),
    )
    return alpha, rate_of(natural, alpha)


def gamma_of_variance(natural: Array, variances: Array) -> tuple[Array, Array]:
    """Return shape and rate with the E[log x] of some Gammas, and given variances of x.

    >>> natural = Gamma().natural([6.0], [2.0])
    >>> alpha, beta = matched_gamma(natural, np.array([0.7]))
    >>> np.allclose(gamma_of_variance(natural, alpha / beta**2), (alpha, beta))
    True
    """
    alpha, beta = Gamma().standard(natural).values()
    level = psi(alpha) - np.log(beta)  # E[log x]
    wanted = np.log(variances) - 2 * level
    alpha = root_in_log(
        alpha,
        lambda a: np.log(a) - 2 * psi(a) - wanted,
        lambda a: 1 / a - 2 * polygamma(1, a),
    )
    return alpha, rate_of(natural, alpha)


def rate_of(natural: Array, alpha: Array) -> Array:
    """Return the rate with which a shape has the E[log x] of some Gammas."""
    shape, rate = Gamma().standard(natural).values()
    return np.asarray(rate * np.exp(psi(alpha) - psi(shape)))


def root_in_log(
    start: Array, value: Callable[[Array], Array], slope: Callable[[Array], Array]
) -> Array:
    """Return the root of a decreasing function of log a by Newton's method."""
    a = np.array(start, dtype=np.float64)
    for _ in range(STEPS):
        move = np.clip(value(a) / (a * slope(a)), -2.0, 2.0)
        a = a * np.exp(-move)
        if (np.abs(move) <= 1e-14).all():
            break
    return a
