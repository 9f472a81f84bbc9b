"""Loops for topic models: z_t ~ Categorical(theta_d), w_t ~ Categorical(phi_z), z not stored.

Tokens of one document with the same word have the same q(z), so they are one pair (d, w) with a
count. With a = exp E[log theta_d] and b = exp E[log phi_w], the pair has topic k with probability

    q(z = k) = a_k b_k / s,    s = sum_k a_k b_k,

and all that the rest of the network needs is the weight n_dw / s of the pair: the message to
theta_d is a_k sum_w (n_dw / s) b_k, and the message to phi is b_k sum_d (n_dw / s) a_k. Both are
sums over the pairs of a document or a word, in order, so they have the same bits on any number of
threads. There is no array of tokens by topics. The plain version is network/lookup.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.kernels.machine.blend import blend
from svmp.kernels.machine.compiling import claim, jit, shared
from svmp.kernels.machine.special import digamma, exp, log
from svmp.kernels.machine.threads import share
from svmp.network.grid import Ints

Small = NDArray[np.int32]
TINY = 1e-200
"""A smaller s has lost digits to underflow, and q(z) is computed in logarithms."""
LINES = 64
"""Words at a time, so that their messages stay in the cache while they are read topic by topic."""


class DocumentPairs(NamedTuple):
    """Pairs by document.

    Attributes
    ----------
    cuts
        Where blocks of documents begin, which threads claim.
    starts
        Where the pairs of each document begin.
    word, times
        The word of each pair, and the number of its tokens.
    """

    cuts: Ints
    starts: Ints
    word: Small
    times: Array


class WordPairs(NamedTuple):
    """Pairs by word.

    Attributes
    ----------
    cuts
        Where blocks of words begin, which threads claim.
    starts, pair
        Where the pairs of each word begin, and their numbers among all pairs by document.
    document, times
        The document of each pair, and the number of its tokens.
    """

    cuts: Ints
    starts: Ints
    pair: Small
    document: Small
    times: Array


class Exponentials(NamedTuple):
    """E[log p] in lines, exp(E[log p] - top) with the largest of each line as top, and the tops."""

    logs: Array
    exponentials: Array
    top: Array


class TopicStep(NamedTuple):
    """A step of phi.

    Attributes
    ----------
    elements
        The element of phi of each topic.
    place, message
        The line of each word among the messages, or -1; messages by word and topic.
    scale, rho, prior
        The factor of each topic's messages, its step, and its prior.
    """

    elements: Ints
    place: Small
    message: Array
    scale: Array
    rho: Array
    prior: Array


@jit
def exponential(logs: Array, out: Array) -> float:
    """Write exp(log - largest), and return the largest."""
    largest = -np.inf
    for k in range(len(logs)):
        largest = max(largest, logs[k])
    for k in range(len(logs)):
        out[k] = exp(logs[k] - largest)
    return largest


@shared
def by_word(
    taken: Ints, moments: Array, elements: Ints, words: Ints, logs: Array, out: Array, top: Array
) -> None:
    """Write E[log phi] by word and topic, exp(log - largest) of each word, and the largest."""
    first = claim(taken, LINES)
    while first < len(words):
        for i in range(first, min(first + LINES, len(words))):
            for k in range(len(elements)):
                logs[i, k] = moments[elements[k], words[i]]
            top[i] = exponential(logs[i], out[i])
        first = claim(taken, LINES)


@shared
def exponentials(taken: Ints, logs: Array, out: Array, top: Array) -> None:
    """Write exp(log - largest) of each line, and the largest."""
    first = claim(taken, LINES)
    while first < len(logs):
        for i in range(first, min(first + LINES, len(logs))):
            top[i] = exponential(logs[i], out[i])
        first = claim(taken, LINES)


@jit
def log_shares(a: Array, b: Array, out: Array) -> float:
    """Write q(z) of a pair from E[log theta_d] and E[log phi_w]; return the log of s."""
    top, total = -np.inf, 0.0
    for k in range(len(a)):
        top = max(top, a[k] + b[k])
    for k in range(len(a)):
        out[k] = exp(a[k] + b[k] - top)
    for k in range(len(a)):
        total += out[k]
    for k in range(len(a)):
        out[k] /= total
    return top + log(total)


@shared
def read_documents(
    taken: Ints,
    pairs: DocumentPairs,
    theta: Exponentials,
    phi: Exponentials,
    weight: Array,
    to_theta: Array,
    evidence: Array,
) -> None:
    """Write the weight of every pair, and the message to theta and the sum of log s by document.

    A negative weight marks a pair whose q(z) is computed in logarithms.
    """
    cuts, starts, word, count = pairs
    topics = to_theta.shape[1]
    shares = np.empty(topics)
    block = claim(taken, 1)
    while block < len(cuts) - 1:
        for d in range(cuts[block], cuts[block + 1]):
            a, out = theta.exponentials[d], to_theta[d]
            out[:] = 0.0
            total = 0.0
            for e in range(starts[d], starts[d + 1]):
                b = phi.exponentials[word[e]]
                s = 0.0
                for k in range(topics):
                    s += a[k] * b[k]
                if s > TINY:
                    weight[e] = count[e] / s
                    for k in range(topics):
                        out[k] += weight[e] * b[k]
                    total += count[e] * (log(s) + phi.top[word[e]] + theta.top[d])
                else:
                    weight[e] = -1.0
            for k in range(topics):
                out[k] *= a[k]
            for e in range(starts[d], starts[d + 1]):
                if weight[e] < 0:
                    total += count[e] * log_shares(theta.logs[d], phi.logs[word[e]], shares)
                    for k in range(topics):
                        out[k] += count[e] * shares[k]
            evidence[d] = total
        block = claim(taken, 1)


@shared
def read_words(
    taken: Ints,
    pairs: WordPairs,
    log_theta: Array,
    theta: Array,
    phi: Exponentials,
    weight: Array,
    to_phi: Array,
) -> None:
    """Write the message of the pairs of each word to its entries of phi."""
    cuts, starts, pair, document, count = pairs
    topics = theta.shape[1]
    shares = np.empty(topics)
    block = claim(taken, 1)
    while block < len(cuts) - 1:
        for w in range(cuts[block], cuts[block + 1]):
            out = to_phi[w]
            out[:] = 0.0
            lost = 0
            for i in range(starts[w], starts[w + 1]):
                e = pair[i]
                a = theta[document[e]]
                if weight[e] < 0:
                    lost += 1
                else:
                    for k in range(topics):
                        out[k] += weight[e] * a[k]
            for k in range(topics):
                out[k] *= phi.exponentials[w, k]
            if lost > 0:
                for i in range(starts[w], starts[w + 1]):
                    e = pair[i]
                    if weight[e] < 0:
                        log_shares(log_theta[document[e]], phi.logs[w], shares)
                        for k in range(topics):
                            out[k] += count[e] * shares[k]
        block = claim(taken, 1)


@jit
def mean_logs(natural: Array, out: Array) -> float:
    """Write psi of each concentration, and return their sum.

    Sums have a loop of their own, here and elsewhere: one that also writes is compiled twice, and
    which version runs, and so the last bit, depends on addresses (tests/kernels/test_addresses.py).
    """
    total = 0.0
    for w in range(len(natural)):
        total += natural[w] + 1
    for w in range(len(natural)):
        out[w] = digamma(natural[w] + 1)
    return total


def update_topics(step: TopicStep, natural: Array, moments: Array) -> None:
    """Move phi by a step towards its prior plus the messages of words, with its moments, in place.

    Sums of concentrations are made block by block, so that they have the same bits on any number of
    threads.
    """
    sums = np.empty((-(-natural.shape[1] // LINES), len(step.elements)))
    share(blend_topics, step, natural, moments, sums)
    share(shift_topics, step.elements, sums.sum(axis=0), moments)


@shared
def blend_topics(taken: Ints, step: TopicStep, natural: Array, moments: Array, sums: Array) -> None:
    """Move phi, and write psi of its concentrations and their sums, for blocks of words."""
    elements, place, message, scale, rho, prior = step
    words = natural.shape[1]
    block = claim(taken, 1)
    while block < len(sums):
        first, last = block * LINES, min(words, (block + 1) * LINES)
        for k in range(len(elements)):
            lam, mean_log = natural[elements[k], first:last], moments[elements[k], first:last]
            for w in range(first, last):
                heard = message[place[w], k] if place[w] >= 0 else 0.0
                target = prior[k, w] + scale[k] * heard
                lam[w - first] = blend(lam[w - first], target, rho[k])
            sums[block, k] = mean_logs(lam, mean_log)
        block = claim(taken, 1)


@shared
def shift_topics(taken: Ints, elements: Ints, totals: Array, moments: Array) -> None:
    """Subtract psi of the sum of concentrations, which turns their psi into E[log phi]."""
    k = claim(taken, 1)
    while k < len(elements):
        shift = digamma(totals[k])
        for w in range(moments.shape[1]):
            moments[elements[k], w] -= shift
        k = claim(taken, 1)
