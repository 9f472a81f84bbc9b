"""One pass over all elements of a variable: how far they moved, and their bound.

Sums are made block by block, so that the bits are the same on any number of threads. The plain
twins are in families/ and factors/.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.compiling import bare, claim, shared
from svmp.kernels.special import log
from svmp.kernels.threads import STREAM, share, threads_for
from svmp.network.grid import Ints

BLOCK = 4096


def follow(natural: Array, moments: Array, last: Array, last_moments: Array) -> float:
    """Return the symmetrised KL between q and a former one, which becomes the same as q."""
    with threads_for(natural.size // STREAM):
        flat = (a.reshape(-1) for a in (natural, moments, last, last_moments))
        out = np.empty(-(-natural.size // BLOCK))
        share(_follow, *flat, out)
        return float(out.sum())


@shared
def _follow(
    taken: Ints, natural: Array, moments: Array, last: Array, last_moments: Array, out: Array
) -> None:
    b = claim(taken, 1)
    while b < len(out):
        here = slice(b * BLOCK, (b + 1) * BLOCK)
        out[b] = _follow_block(natural[here], moments[here], last[here], last_moments[here])
        b = claim(taken, 1)


@bare
def _follow_block(natural: Array, moments: Array, last: Array, last_moments: Array) -> float:
    """(lambda - lambda') . (m - m'), and then lambda' = lambda, m' = m."""
    total = 0.0
    for i in range(len(natural)):
        total += (natural[i] - last[i]) * (moments[i] - last_moments[i])
        last[i] = natural[i]
        last_moments[i] = moments[i]
    return total


def normal_bound(natural: Array, moments: Array, mu: Array, tau: Array) -> float:
    """E[log p(x)] - E[log q(x)] of Normals, added up; mu and tau are for each, or one for all."""
    with threads_for(natural.size // STREAM):
        out = np.empty(-(-len(natural) // BLOCK))
        share(_normal_bound, natural, moments, mu, tau, out)
        return float(out.sum())


@shared
def _normal_bound(
    taken: Ints, natural: Array, moments: Array, mu: Array, tau: Array, out: Array
) -> None:
    b = claim(taken, 1)
    while b < len(out):
        here = slice(b * BLOCK, (b + 1) * BLOCK)
        ours = mu[here] if len(mu) > 1 else mu, tau[here] if len(tau) > 1 else tau
        out[b] = _normal_bound_block(natural[here], moments[here], *ours)
        b = claim(taken, 1)


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
