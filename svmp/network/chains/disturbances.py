"""The disturbances of a chain of vectors, e_t = x_t - A x_(t-1) - B u_t, with a known A.

E[e_t e_t'] as a difference of the moments of x_t and x_(t-1) has an error of eps E[x^2] for the
rounding error eps. In units of the variance 1 / tau of a step that is eps times the condition
tau E[x^2], so that a condition of 1 / eps leaves no digits. The mean of e_t is therefore the
difference of means, and where the condition asks for it its covariance is a sum of squares. Given
x_t, the state before is Normal with the mean m + G x_t and the covariance C = G Q A'^-1, and

    Cov[e_t] = (I - A G) Cov[x_t] (I - A G)' + A G Q,   G' = Cov[x_t]^-1 Cov[x_t, x_(t-1)].

The rounding error of I - A G is squared too: what is lost is eps^2 tau E[x^2].
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.families.matrix import apply, flat, inverse, join, symmetric


def moments(
    now: Array, before: Array, cross: Array, known: Array, inputs: Array, steps: Array | None
) -> tuple[Array, Array]:
    """Return (E[e], E[e e']), flat, and Cov[e, x_(t-1)], of some rows.

    Parameters
    ----------
    now, before
        (E[x], E[x x']) of x_t and of x_(t-1), flat.
    cross
        Cov[x_t, x_(t-1)].
    known, inputs
        (A, B) and u_t.
    steps
        Cov[e]; None if the moments of x have enough digits of it.
    """
    size = cross.shape[-1]
    A = known[:, :, :size]
    x, past = now[:, :size], before[:, :size]
    mean = x - apply(A, past)
    if inputs.shape[1]:
        mean = mean - apply(known[:, :, size:], inputs)
    if steps is None:
        steps = differences(now, before, cross, A)
    return join(mean, flat(steps + mean[:, :, None] * mean[:, None, :])), cross - A @ _cov(
        before, size
    )


def differences(now: Array, before: Array, cross: Array, A: Array) -> Array:
    """Return Cov[e] of some rows as a difference of moments."""
    size = cross.shape[-1]
    lag = cross - A @ _cov(before, size)
    moved = A @ np.swapaxes(cross, -1, -2)
    return np.asarray(_cov(now, size) - moved - lag @ np.swapaxes(A, -1, -2))


def _cov(moments: Array, size: int) -> Array:
    mean, square = moments[:, :size], moments[:, size:].reshape(-1, size, size)
    return np.asarray(square - mean[:, :, None] * mean[:, None, :])


def covariances(natural: Array, cross: Array, A: Array, noise: Array) -> Array:
    """Return Cov[e_t] of some rows.

    Parameters
    ----------
    natural
        The natural parameters of x_t.
    cross
        Cov[x_t, x_(t-1)].
    A, noise
        The matrix, and the covariance Q of a step for which q was computed.
    """
    size = cross.shape[-1]
    precision = -2 * symmetric(natural[:, size:], size)
    moved = A @ np.swapaxes(precision @ cross, -1, -2)
    rest = np.eye(size) - moved
    inner = moved @ noise
    inner = 0.5 * (inner + np.swapaxes(inner, -1, -2))
    return np.asarray(rest @ inverse(precision) @ np.swapaxes(rest, -1, -2) + inner)


def conditions(now: Array, before: Array, A: Array, tau: Array, size: int) -> Array:
    """Return the largest tau_ii (|x_i| + |A|_i |x_(t-1)|)^2 of each row, with root mean squares.

    Parameters
    ----------
    now, before
        (E[x], E[x x']) of x_t and of x_(t-1), flat.
    A, tau
        The matrix and the precision matrix of a step, of the first entries of x that move.
    """
    x, past = (np.sqrt(m[:, size :: size + 1]) for m in (now, before))
    reach = x[:, : A.shape[-2]] + apply(np.abs(A), past)
    return np.asarray((np.einsum("nii->ni", tau) * reach**2).max(axis=1, initial=0.0))
