"""The loop that optimises documents: theta_d and the topics of its tokens, for a fixed phi.

A pass is theta_d -> q(z) -> theta_d, with the pairs of topics.py. The part of exp E[log phi] that a
document reads is copied into a small tile, topic by topic in float32, so that both halves of a pass
read it sequentially: s of the pairs, then the message to each topic. Single precision changes the
optimum of a document by a relative 1e-6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.kernels.categorical.topics import DocumentPairs, Exponentials, log_shares
from svmp.kernels.machine.compiling import claim, jit, shared
from svmp.kernels.machine.special import digamma_parts, exp_digamma
from svmp.network.grid import Ints

TINY = 1e-30
"""In single precision, a smaller s has lost digits, and q(z) is computed in logarithms."""


class Optimised(NamedTuple):
    """Results of `optimise_documents` besides the concentrations.

    Attributes
    ----------
    passes
        The number of passes of each document.
    exponential, weight
        exp E[log theta_d] up to a factor, and the weights of the pairs for it.
    """

    passes: Ints
    exponential: Array
    weight: Array


@jit
def weigh_pairs(tile: Array, theta: Array, times: Array, weight: Array) -> bool:
    """Write n / s of each pair, or 0 where s has underflowed; return whether any has.

    Four topics at a time: the loops over pairs are vectorised, and `weight` is loaded less often.
    """
    topics, pairs = tile.shape
    weight[:] = 0
    k = 0
    while k + 4 <= topics:
        a, b, c, d = theta[k], theta[k + 1], theta[k + 2], theta[k + 3]
        for e in range(pairs):
            both = a * tile[k, e] + b * tile[k + 1, e]
            weight[e] += both + (c * tile[k + 2, e] + d * tile[k + 3, e])
        k += 4
    while k < topics:
        for e in range(pairs):
            weight[e] += theta[k] * tile[k, e]
        k += 1
    least = weight[0]
    for e in range(pairs):
        least = min(least, weight[e])
    if least > TINY:
        for e in range(pairs):
            weight[e] = times[e] / weight[e]
        return False
    for e in range(pairs):
        weight[e] = times[e] / weight[e] if weight[e] > TINY else np.float32(0)
    return True


@jit
def sum_pairs(tile: Array, weight: Array, out: Array) -> None:
    """Write the weighted sum of the pairs for each topic, four topics at a time."""
    topics, pairs = tile.shape
    k = 0
    zero = np.float32(0)
    while k + 4 <= topics:
        a, b, c, d = zero, zero, zero, zero
        for e in range(pairs):
            w = weight[e]
            a += w * tile[k, e]
            b += w * tile[k + 1, e]
            c += w * tile[k + 2, e]
            d += w * tile[k + 3, e]
        out[k], out[k + 1], out[k + 2], out[k + 3] = a, b, c, d
        k += 4
    while k < topics:
        a = zero
        for e in range(pairs):
            a += weight[e] * tile[k, e]
        out[k] = a
        k += 1


@jit
def add_pairs_in_logs(
    a: Array, word: Ints, times: Array, log_phi: Array, weight: Array, out: Array
) -> None:
    """Add the messages of the pairs without a weight, from q(z) computed in logarithms."""
    logs, shares = np.empty_like(a), np.empty_like(a)
    for k in range(len(a)):
        y, t = digamma_parts(a[k])
        logs[k] = np.log(y) - t
    for e in range(len(word)):
        if weight[e] == 0:
            log_shares(logs, log_phi[word[e]], shares)
            for k in range(len(a)):
                out[k] += times[e] * shares[k]


@shared
def optimise_documents(
    taken: Ints,
    pairs: DocumentPairs,
    prior: Array,
    concentration: Array,
    phi: Exponentials,
    tolerance: float,
    max_passes: int,
    found: Optimised,
) -> None:
    """Optimise the concentrations of each theta_d in place.

    A document of n tokens has converged when a pass moves its n + 1 elements by at most `tolerance`
    nats each, as a symmetrised KL divergence. For q(z) and theta_d together that is the change of
    E[log theta_d] times the change of the message; logarithms of ratios r are approximated by
    2 (r - 1) / (r + 1).
    """
    cuts, starts, word, times = pairs
    passes, exponential, pair_weight = found
    topics = prior.shape[1]
    theta, message = np.empty((2, topics), dtype=np.float32)
    own, before, shift = np.empty((3, topics))
    block = claim(taken, 1)
    while block < len(cuts) - 1:
        for d in range(cuts[block], cuts[block + 1]):
            first, last = starts[d], starts[d + 1]
            a = concentration[d]
            tile = np.empty((topics, last - first), dtype=np.float32)
            for e in range(first, last):
                for k in range(topics):
                    tile[k, e - first] = phi.exponentials[word[e], k]
            count = times[first:last].astype(np.float32)
            weight = np.empty(last - first, dtype=np.float32)
            size = 1.0 + times[first:last].sum()
            top = 0.0
            for k in range(topics):
                own[k] = exp_digamma(a[k])
                top = max(top, own[k])
            before[:] = 0.0
            passes[d] = max_passes
            for step in range(max_passes):
                for k in range(topics):
                    theta[k] = own[k] / top
                lost = weigh_pairs(tile, theta, count, weight)
                sum_pairs(tile, weight, message)
                extra = np.zeros(topics if lost else 0)
                if lost:
                    here = word[first:last], times[first:last]
                    add_pairs_in_logs(a, *here, phi.logs, weight, extra)
                moved, top = 0.0, 0.0
                for k in range(topics):
                    new = prior[d, k] + theta[k] * message[k]
                    if lost:
                        new += extra[k]
                    now = exp_digamma(new)
                    change = 2 * (now - own[k]) / (now + own[k])
                    shift[k] = (new - a[k]) * (change + before[k])
                    before[k] = change
                    a[k], own[k] = new, now
                    top = max(top, now)
                for k in range(topics):
                    moved += shift[k]
                if step > 0 and moved <= tolerance * size:
                    passes[d] = step + 1
                    break
            for k in range(topics):
                exponential[d, k] = own[k] / top
                theta[k] = exponential[d, k]
            weigh_pairs(tile, theta, count, weight)
            for e in range(first, last):
                pair_weight[e] = weight[e - first] if weight[e - first] > 0 else -1.0
        block = claim(taken, 1)
