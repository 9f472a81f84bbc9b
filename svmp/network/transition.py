"""Linear Gaussian transitions in terms of expected statistics, as pure functions.

    x_t ~ N(M r_t, (tau / s_t)^-1),   r_t = (x_(t-1), u_t),   M = (A, B),

with a known factor s_t of the covariance. Summed over transitions that have the same parameters,

    E[log p] = -1/2 E[tau] . R + n/2 E[log|tau|] - K/2 (n log 2 pi + sum_t log s_t),
    R = E[sum_t (x_t - M r_t)(x_t - M r_t)' / s_t],

which is linear in the sums of `Pairs`. All arrays have a first axis of sets of transitions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmp.families.family import Array, stack
from svmp.families.matrix import apply, flat, inverse, join, log_det, symmetric
from svmp.families.normal import LOG_2PI


class Pairs(NamedTuple):
    """Sums over transitions: the moments of x_t and r_t divided by s_t, their number, sum log s_t.

    Attributes
    ----------
    xx, xr, rr
        Sums of E[x x'] / s, E[x r'] / s and E[r r'] / s: (sets, K, K), (sets, K, D), (sets, D, D).
    number, log_step
        The number of transitions, and the sum of log s.
    """

    xx: Array
    xr: Array
    rr: Array
    number: Array
    log_step: Array

    @classmethod
    def of(cls, lines: Array, size: int, width: int) -> Pairs:
        """Return the sums from flat lines, with K = size and D = width."""
        ends = np.cumsum([size * size, size * width, width * width])
        xx, xr, rr, rest = np.split(lines, ends, axis=-1)
        shape = lines.shape[:-1]
        return cls(
            xx.reshape(*shape, size, size),
            xr.reshape(*shape, size, width),
            rr.reshape(*shape, width, width),
            rest[..., 0],
            rest[..., 1],
        )


def line_size(size: int, width: int) -> int:
    """Return the length of a line of `Pairs`.

    >>> line_size(2, 3)
    21
    """
    return size * size + size * width + width * width + 2


def pair_lines(now: Array, before: Array, cross: Array, inputs: Array, step: Array) -> Array:
    """Return a line of `Pairs` for each transition.

    Parameters
    ----------
    now, before
        (E[x], E[x x']) of x_t and of x_(t-1), flat.
    cross
        Cov[x_t, x_(t-1)], (rows, K, K).
    inputs
        u_t, (rows, inputs).
    step
        s_t.
    """
    count, size = len(now), cross.shape[-1]
    x, past = now[:, :size], before[:, :size]
    r = np.concatenate([past, inputs], axis=1)
    xr = x[:, :, None] * r[:, None, :]
    xr[:, :, :size] += cross
    rr = r[:, :, None] * r[:, None, :]
    rr[:, :size, :size] = before[:, size:].reshape(count, size, size)
    lines = join(now[:, size:], flat(xr), flat(rr)) / step[:, None]
    return join(lines, stack(np.ones(count), np.log(step)))


def residual(pairs: Pairs, mean: Array, scatter: Array) -> Array:
    """Return R, given E[M] and E[(M - E[M]) rr (M - E[M])']."""
    crossed = mean @ np.swapaxes(pairs.xr, -1, -2)
    square = mean @ pairs.rr @ np.swapaxes(mean, -1, -2)
    return np.asarray(pairs.xx - crossed - np.swapaxes(crossed, -1, -2) + square + scatter)


def to_tau(pairs: Pairs, found: Array) -> Array:
    """Return the message to tau, as the natural parameter of a Wishart, given R."""
    return join(-0.5 * flat(found), 0.5 * pairs.number[..., None])


def log_density(pairs: Pairs, found: Array, tau: Array, log_tau: Array) -> Array:
    """E[log p], given R, E[tau] and E[log|tau|]."""
    size = tau.shape[-1]
    known = pairs.number * LOG_2PI + pairs.log_step
    return np.asarray(
        0.5 * (pairs.number * log_tau - size * known - np.einsum("...ij,...ij->...", tau, found))
    )


def slope(pairs: Pairs, mean: Array, tau: Array) -> Array:
    """Return the derivative of E[log p] with respect to M at its mean."""
    return np.asarray(tau @ (pairs.xr - mean @ pairs.rr))


class Entries(NamedTuple):
    """q(x_0 | x_1) of some pairs of states.

    Attributes
    ----------
    moments, cross
        (E[x_0], E[x_0 x_0']), flat, and Cov[x_1, x_0].
    log_det
        Log-determinant of the precision matrix of q(x_0 | x_1).
    """

    moments: Array
    cross: Array
    log_det: Array


def entries(
    earlier: Array, now: Array, weight: Array, mean: Array, tau: Array, pull: Array, inputs: Array
) -> Entries:
    """Return the optimal q(x_0 | x_1), a Normal whose mean is linear in x_1.

    With the weights w_k of categories, and E[(A - E[A])' tau (A - E[A])] = V, its precision matrix
    is L = P + sum_k w_k (E[A_k]' E[tau_k] E[A_k] + V_k), and its mean
    L^-1 (P m + sum_k w_k E[A_k]' E[tau_k] (x_1 - E[B_k] u)).

    Parameters
    ----------
    earlier
        (P m, -P / 2), flat: the natural parameters of x_0.
    now
        (E[x_1], E[x_1 x_1']), flat.
    weight, mean, tau, pull
        w_k / s, E[(A, B)], E[tau] and V of each category, (rows, categories, ...).
    inputs
        u, (rows, inputs).
    """
    size = tau.shape[-1]
    A, B = mean[..., :size], mean[..., size:]
    back = np.swapaxes(A, -1, -2) @ (weight[..., None, None] * tau)
    precision = -2 * symmetric(earlier[:, size:], size)
    precision = precision + (back @ A + weight[..., None, None] * pull).sum(axis=1)
    linear = earlier[:, :size] - (back @ (B @ inputs[:, None, :, None]))[..., 0].sum(axis=1)
    cov = inverse(precision)
    gain, shift = cov @ back.sum(axis=1), apply(cov, linear)
    x, xx = now[:, :size], now[:, size:].reshape(-1, size, size)
    middle = shift + apply(gain, x)
    spread = (xx - x[:, :, None] * x[:, None, :]) @ np.swapaxes(gain, -1, -2)
    square = cov + gain @ spread + middle[:, :, None] * middle[:, None, :]
    return Entries(join(middle, flat(square)), spread, log_det(precision))
