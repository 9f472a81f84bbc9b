"""One pass over all elements of a variable: how far they moved, if they are sound, their bound.

Sums are made block by block, so that the bits are the same on any number of threads. The plain
twins are in families/ and factors/.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from svmp.families.family import Array, Bools
from svmp.kernels.compiling import bare, parallel
from svmp.kernels.special import log
from svmp.kernels.threads import threads_for
from svmp.network.grid import Ints

BLOCK = 4096


def follow(natural: Array, moments: Array, last: Array, last_moments: Array) -> float:
    """Return the symmetrised KL between q and a former one, which becomes the same as q."""
    with threads_for(natural.size):
        flat = (a.reshape(-1) for a in (natural, moments, last, last_moments))
        return float(_follow(*flat).sum())


@parallel
def _follow(natural: Array, moments: Array, last: Array, last_moments: Array) -> Array:
    blocks = (len(natural) + BLOCK - 1) // BLOCK
    out = np.empty(blocks)
    for b in prange(blocks):
        here = slice(b * BLOCK, (b + 1) * BLOCK)
        out[b] = _follow_block(natural[here], moments[here], last[here], last_moments[here])
    return out


@bare
def _follow_block(natural: Array, moments: Array, last: Array, last_moments: Array) -> float:
    """(lambda - lambda') . (m - m'), and then lambda' = lambda, m' = m."""
    total = 0.0
    for i in range(len(natural)):
        total += (natural[i] - last[i]) * (moments[i] - last_moments[i])
        last[i] = natural[i]
        last_moments[i] = moments[i]
    return total


def are_normals(natural: Array, keys: Ints, width: int) -> bool:
    """Whether the natural parameters of all elements of some keys are those of Normals."""
    with threads_for(len(keys) * width):
        return bool(_are_normals(natural, keys, width).all())


@parallel
def _are_normals(natural: Array, keys: Ints, width: int) -> Bools:
    out = np.empty(len(keys), np.bool_)
    for m in prange(len(keys)):
        sound, first = True, np.uintp(keys[m]) * np.uintp(width)
        for k in range(np.uintp(width)):
            linear, square = natural[first + k, 0], natural[first + k, 1]
            sound &= (abs(linear) < np.inf) & (square < 0) & (square > -np.inf)
        out[m] = sound
    return out


def normal_bound(natural: Array, moments: Array, mu: Array, tau: Array) -> float:
    """E[log p(x)] - E[log q(x)] of Normals, added up; mu and tau are for each, or one for all."""
    with threads_for(natural.size):
        return float(_normal_bound(natural, moments, mu, tau).sum())


@parallel
def _normal_bound(natural: Array, moments: Array, mu: Array, tau: Array) -> Array:
    blocks = (len(natural) + BLOCK - 1) // BLOCK
    out = np.empty(blocks)
    for b in prange(blocks):
        here = slice(b * BLOCK, (b + 1) * BLOCK)
        ours = mu[here] if len(mu) > 1 else mu, tau[here] if len(tau) > 1 else tau
        out[b] = _normal_bound_block(natural[here], moments[here], *ours)
    return out


@bare
def _normal_bound_block(natural: Array, moments: Array, mu: Array, tau: Array) -> float:
    """Half of E[log tau] - log(q's own precision) + 1 - E[tau] E[(x - mu)^2]."""
    entropy = energy = 0.0
    for i in range(len(natural)):
        entropy += 1 - log(-2 * natural[i, 1])
    for i in range(len(natural)):
        m, t = mu[min(i, len(mu) - 1)], tau[min(i, len(tau) - 1)]
        gap = moments[i, 0] - m[0]
        spread = -0.5 / natural[i, 1] + (m[1] - m[0] * m[0])
        energy += t[1] - t[0] * (gap * gap + spread)
    return 0.5 * (entropy + energy)
