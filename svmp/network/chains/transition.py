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
from svmp.families.matrix import apply, cholesky, flat, inverse, join, log_det, symmetric
from svmp.families.normal import LOG_2PI


class Pairs(NamedTuple):
    """Sums over transitions: the moments of x_t and r_t divided by s_t, their number, sum log s_t.

    Where a part M_0 of M is known, x_t - M_0 r_t and M - M_0 take the places of x_t and M.

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

    def about(self, known: Array) -> Pairs:
        """Return the sums about x_t - M_0 r_t."""
        found = residual(self, known, np.zeros(1))
        return self._replace(xx=found, xr=self.xr - known @ self.rr)

    def lines(self) -> Array:
        """Return the sums as flat lines."""
        return join(flat(self.xx), flat(self.xr), flat(self.rr), stack(self.number, self.log_step))


def line_size(size: int, width: int) -> int:
    """Return the length of a line of `Pairs`.

    >>> line_size(2, 3)
    21
    """
    return size * size + size * width + width * width + 2


def pair_lines(
    now: Array, before: Array, cross: Array, inputs: Array, step: Array, moving: int | None = None
) -> Array:
    """Return a line of `Pairs` for each transition, of the first entries of x_t that move.

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
    first = slice(moving)
    x, past = now[:, :size][:, first], before[:, :size]
    r = np.concatenate([past, inputs], axis=1)
    xr = x[:, :, None] * r[:, None, :]
    xr[:, :, :size] += cross[:, first]
    rr = r[:, :, None] * r[:, None, :]
    rr[:, :size, :size] = before[:, size:].reshape(count, size, size)
    xx = now[:, size:].reshape(count, size, size)[:, first, first]
    lines = join(flat(xx), flat(xr), flat(rr)) / step[:, None]
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


def shifted(coefficients: Array) -> Array:
    """Return the matrix of a state of lags: its first row, and below it 1 left of the diagonal.

    >>> shifted(np.array([[[0.5, 0.2, 0.1]]]))[0]
    array([[0.5, 0.2, 0.1],
           [1. , 0. , 0. ],
           [0. , 1. , 0. ]])
    """
    size = coefficients.shape[-1]
    found = np.zeros((len(coefficients), size, size))
    found[:, 0] = coefficients[:, 0]
    found[:, np.arange(1, size), np.arange(size - 1)] = 1.0
    return found


def only_first(variance: Array, size: int) -> Array:
    """Return the covariance of the steps of a state of lags, given the variance (sets, 1, 1)."""
    found = np.zeros((len(variance), size, size))
    found[:, 0, 0] = variance[:, 0, 0]
    return found


def lag_gain(cov: Array, coefficients: Array, variance: Array) -> tuple[Array, Array]:
    """Return G and the variance of the last entry of x_t given x_(t+1), for a state of lags.

    x_(t+1) has all entries of x_t but the last, e, and one value more. With the covariance L L' of
    x_t, e given the entries a before it has the coefficients w = L_e L_a^-1 and the variance
    v = L_ee^2; the new value r_a a + r_e e + noise of variance q then tells more about e:

        g = v r_e / (q + r_e^2 v),   E[e] = ... + g (new value),   Var[e] = v q / (q + r_e^2 v).

    Parameters
    ----------
    cov
        Covariance of x_t, (sets, K, K).
    coefficients, variance
        r and q, (sets, K) and (sets,).
    """
    root, last = cholesky(cov), cov.shape[-1] - 1
    turned = np.swapaxes(root[:, :last, :last], -1, -2)
    w = np.linalg.solve(turned, root[:, last, :last, None])[..., 0]
    v, r = root[:, last, last] ** 2, coefficients[:, last]
    total = variance + r**2 * v
    gain = np.zeros_like(cov)
    gain[:, np.arange(last), np.arange(1, last + 1)] = 1.0
    gain[:, last, 0] = v * r / total
    kept = (variance / total)[:, None] * w
    gain[:, last, 1:] = kept - gain[:, last, :1] * coefficients[:, :last]
    return gain, np.asarray(v * variance / total)


class Entries(NamedTuple):
    """q(x_0 | x_1) of some pairs of states.

    Attributes
    ----------
    moments, cross
        (E[x_0], E[x_0 x_0']), flat, and Cov[x_1, x_0].
    log_det
        Log-determinant of the precision matrix of q(x_0 | x_1).
    steps
        Cov[x_1 - A x_0], with the A of the first category; that of states of lags is not needed.
    """

    moments: Array
    cross: Array
    log_det: Array
    steps: Array


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
    middle, own = shift + apply(gain, x), xx - x[:, :, None] * x[:, None, :]
    spread = own @ np.swapaxes(gain, -1, -2)
    square = cov + gain @ spread + middle[:, :, None] * middle[:, None, :]
    matrix = A[:, 0]
    rest = np.eye(size) - matrix @ gain
    steps = rest @ own @ np.swapaxes(rest, -1, -2) + matrix @ cov @ np.swapaxes(matrix, -1, -2)
    return Entries(join(middle, flat(square)), spread, log_det(precision), steps)


def lag_entries(
    earlier: Array, now: Array, weight: Array, mean: Array, tau: Array, pull: Array
) -> Entries:
    """Return q(x_0 | x_1) of states of lags; the arguments are those of `entries`, by row."""
    size = mean.shape[-1]
    cov = inverse(-2 * symmetric(earlier[:, size:], size) + weight[:, None, None] * pull)
    gain, variance = lag_gain(cov, mean[:, 0], 1 / (weight * tau[:, 0, 0]))
    start = apply(cov, earlier[:, :size])
    x, xx = now[:, :size], now[:, size:].reshape(-1, size, size)
    middle = start + apply(gain, x - apply(shifted(mean), start))
    spread = (xx - x[:, :, None] * x[:, None, :]) @ np.swapaxes(gain, -1, -2)
    square = gain @ spread + middle[:, :, None] * middle[:, None, :]
    square[:, -1, -1] += variance
    return Entries(join(middle, flat(square)), spread, -np.log(variance), np.zeros_like(spread))
