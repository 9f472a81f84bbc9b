"""exp, log, psi and exp(psi) as polynomials, which the compiler vectorises.

The functions of the C library take one number per call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmp.kernels.machine.compiling import compiler

ROUND = 1.5 * 2.0**52
"""Adding it rounds a float of size below 2^51; the integer is then in the lowest bits."""
LOWEST = -708.0
"""Below, exp(x) is not a normal float."""

# Not free to reassociate: ROUND must be added before it is taken away.
exact = compiler(error_model="numpy", fastmath={"contract"}, forceinline=True)


@exact
def exp(x: float) -> float:
    """exp(x) for x <= 0, accurate to the last digit; exp(-708) for all x below -708."""
    x = max(x, LOWEST)
    shifted = x * 1.4426950408889634 + ROUND
    n = shifted - ROUND
    r = x - n * 0.69314718036912381649  # log 2 in two parts
    r = r - n * 1.90821492927058770002e-10
    p = 1.0 / 6227020800
    p = p * r + 1.0 / 479001600
    p = p * r + 1.0 / 39916800
    p = p * r + 1.0 / 3628800
    p = p * r + 1.0 / 362880
    p = p * r + 1.0 / 40320
    p = p * r + 1.0 / 5040
    p = p * r + 1.0 / 720
    p = p * r + 1.0 / 120
    p = p * r + 1.0 / 24
    p = p * r + 1.0 / 6
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    bits = np.float64(shifted).view(np.int64)
    return p * np.int64((bits + np.int64(1023)) << np.int64(52)).view(np.float64)


@exact
def digamma_parts(x: float) -> Any:
    """Return y and t with psi(x) = log y - t, for x > 0: the asymptotic series at y = x + 8.

    The eight reciprocals 1 / (x + i) of the recurrence are one fraction, in u = x (x + 7).
    """
    u = x * (x + 7)
    a = u * (u + 6)
    b = (u + 10) * (u + 12)
    steps = (2 * x + 7) * ((2 * u + 6) * b + (2 * u + 22) * a) / (a * b)
    y = x + 8
    i = 1 / y
    j = i * i
    tail = 1 / 240.0 - j * (1 / 132.0 - j * (691 / 32760.0 - j / 12.0))
    series = 0.5 * i + j * (1 / 12.0 - j * (1 / 120.0 - j * (1 / 252.0 - j * tail)))
    return y, steps + series


@exact
def exp_digamma(x: float) -> float:
    """exp(psi(x)) for x > 0, without a logarithm; effectively 0 below x = 1/700."""
    y, t = digamma_parts(x)
    return y * exp(-t)


@exact
def log(x: float) -> float:
    """log(x) of a positive normal float, from its exponent and 2 artanh((m - 1) / (m + 1))."""
    bits = np.float64(x).view(np.int64)
    upper = (bits - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)  # of x / sqrt(1/2)
    n = np.int64(upper + np.int64(0x4338000000000000)).view(np.float64) - ROUND
    m = np.int64(bits - (upper << np.int64(52))).view(np.float64)  # between sqrt(1/2) and sqrt(2)
    s = (m - 1) / (m + 1)
    j = s * s
    p = 1.0 / 23
    p = p * j + 1.0 / 21
    p = p * j + 1.0 / 19
    p = p * j + 1.0 / 17
    p = p * j + 1.0 / 15
    p = p * j + 1.0 / 13
    p = p * j + 1.0 / 11
    p = p * j + 1.0 / 9
    p = p * j + 1.0 / 7
    p = p * j + 1.0 / 5
    p = p * j + 1.0 / 3
    p = 2 * s + 2 * s * j * p
    return n * 0.69314718036912381649 + (n * 1.90821492927058770002e-10 + p)


@exact
def digamma(x: float) -> float:
    """psi(x) for x > 0."""
    y, t = digamma_parts(x)
    return log(y) - t
