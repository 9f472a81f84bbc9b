"""Single passes over all elements of a variable: how far q moves, and its term of the bound.

Each block has a sum of its own, and blocks are added in order, so the bits are the same on any
number of threads. The plain versions are in families/ and factors/.

The loops over blocks differ in the function that they call for each. It is not an argument, because
a loop that takes a function cannot be cached: the type of that argument holds its address.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.families.normal import LOG_2PI
from svmp.kernels.machine.compiling import bare, claim, shared
from svmp.kernels.machine.special import log
from svmp.kernels.machine.threads import STREAM, share, threads_for
from svmp.network.grid import Ints

BLOCK = 4096
"""Elements of a block."""
FEW = 4096
"""Largest size of an array that is processed without a compiled loop."""


def moved_kl(natural: Array, moments: Array, last: Array, last_moments: Array) -> float:
    """Return the symmetrised KL divergence of q from an earlier copy, then update the copy.

    A few elements are taken without a loop, so that nothing is compiled for small networks.
    """
    if natural.size <= FEW:
        moved = float(((natural - last) * (moments - last_moments)).sum())
        last[...], last_moments[...] = natural, moments
        return moved
    with threads_for(natural.size // STREAM):
        flat = (a.reshape(-1) for a in (natural, moments, last, last_moments))
        out = np.empty(-(-natural.size // BLOCK))
        share(_moved_kl, *flat, out)
        return float(out.sum())


@shared
def _moved_kl(
    taken: Ints, natural: Array, moments: Array, last: Array, last_moments: Array, out: Array
) -> None:
    b = claim(taken, 1)
    while b < len(out):
        here = slice(b * BLOCK, (b + 1) * BLOCK)
        out[b] = _moved_kl_block(natural[here], moments[here], last[here], last_moments[here])
        b = claim(taken, 1)


@bare
def _moved_kl_block(natural: Array, moments: Array, last: Array, last_moments: Array) -> float:
    """Return (lambda - lambda') . (m - m') and set lambda' = lambda, m' = m."""
    total = 0.0
    for i in range(len(natural)):
        total += (natural[i] - last[i]) * (moments[i] - last_moments[i])
    for i in range(len(natural)):  # apart from the sum: see mean_logs in categorical/topics.py
        last[i] = natural[i]
        last_moments[i] = moments[i]
    return total


def normal_change(natural: Array, moments: Array, old: Array) -> float:
    """Return the sum of precision (m - old)^2 over Normals with means m."""
    with threads_for(natural.size // STREAM):
        out = np.empty(-(-len(natural) // BLOCK))
        share(_normal_change, natural, moments, old, out)
        return float(out.sum())


@shared
def _normal_change(taken: Ints, natural: Array, moments: Array, old: Array, out: Array) -> None:
    b = claim(taken, 1)
    while b < len(out):
        total = 0.0
        for i in range(b * BLOCK, min((b + 1) * BLOCK, len(natural))):
            step = moments[i, 0] - old[i, 0]
            total += -2 * natural[i, 1] * step * step
        out[b] = total
        b = claim(taken, 1)


def move_normals(natural: Array, moments: Array, old: Array, beyond: float) -> None:
    """Add beyond (m - old) to the means m of Normals, in place; their precisions stay."""
    with threads_for(natural.size // STREAM):
        share(_move_normals, natural, moments, old, beyond)


@shared
def _move_normals(taken: Ints, natural: Array, moments: Array, old: Array, beyond: float) -> None:
    b = claim(taken, 1)
    while b * BLOCK < len(natural):
        for i in range(b * BLOCK, min((b + 1) * BLOCK, len(natural))):
            mean = moments[i, 0]
            step = beyond * (mean - old[i, 0])
            natural[i, 0] += -2 * natural[i, 1] * step
            moments[i, 0] = mean + step
            moments[i, 1] += step * (2 * mean + step)  # (m + d)^2 - m^2
        b = claim(taken, 1)


def normal_entropy(natural: Array) -> float:
    """Return the sum of -E[log q(x)] over Normals."""
    with threads_for(natural.size // STREAM):
        out = np.empty(-(-len(natural) // BLOCK))
        share(_normal_entropy, natural, out)
        return float(out.sum())


@shared
def _normal_entropy(taken: Ints, natural: Array, out: Array) -> None:
    b = claim(taken, 1)
    while b < len(out):
        out[b] = _normal_entropy_block(natural[b * BLOCK : (b + 1) * BLOCK])
        b = claim(taken, 1)


@bare
def _normal_entropy_block(natural: Array) -> float:
    """Return the sum of (log(2 pi) + 1 - log(precision)) / 2."""
    total = 0.0
    for i in range(len(natural)):
        total += LOG_2PI + 1 - log(-2 * natural[i, 1])
    return 0.5 * total


def normal_bound(natural: Array, moments: Array, mu: Array, tau: Array) -> float:
    """Return the sum of E[log p(x)] - E[log q(x)] over Normals."""
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
        out[b] = _normal_energy_block(natural[here], moments[here], mu[here], tau[here])
        out[b] += _normal_entropy_block(natural[here])
        b = claim(taken, 1)


@bare
def _normal_energy_block(natural: Array, moments: Array, mu: Array, tau: Array) -> float:
    """Return the sum of (E[log tau] - log(2 pi) - E[tau] E[(x - mu)^2]) / 2."""
    total = 0.0
    for i in range(len(natural)):
        m, t = mu[i], tau[i]
        gap = moments[i, 0] - m[0]
        spread = -0.5 / natural[i, 1] + (m[1] - m[0] * m[0])
        total += t[1] - LOG_2PI - t[0] * (gap * gap + spread)
    return 0.5 * total
