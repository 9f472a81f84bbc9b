"""Forward-backward on all sequences at once, in logarithms: the plain twin of the compiled loops.

The structured q of a sequence of states z_1, ..., z_n is

    q(z) = exp(a(z_1) + sum_t u_t(z_t) + sum_t T(z_(t-1), z_t)) / Z

with a = E[log init], T = E[log P] and u_t the summed messages of the rows that depend on z_t. With

    b_t(j) = u_t(j) + beta_t(j),   beta_(t-1)(i) = log sum_j exp(T(i, j) + b_t(j))

from the last step to the first, q is a Markov chain from the first step to the last:

    q(z_1 = j) = exp(a(j) + b_1(j)) / Z
    q(z_t = j | z_(t-1) = i) = exp(T(i, j) + b_t(j) - beta_(t-1)(i))

so that the marginals, b and T determine q: its pairwise probabilities, its draws, its entropy. b is
kept up to a constant for each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from svmp.families.family import Array
from svmp.network.grid import Ints

LOG_ZERO = -1000.0
"""Stands for the logarithm of a probability of 0 where numbers must be finite."""


class Steps(NamedTuple):
    """Some sequences, one after the other.

    Attributes
    ----------
    starts
        Where each sequence begins, and the number of steps.
    live
        Number of steps of each sequence up to the last that has observed descendants.
    group
        Which transition matrix leads to each step; it is not used at the first of a sequence.
    """

    starts: Ints
    live: Ints
    group: Ints


class Solution(NamedTuple):
    """The optimal q of some sequences.

    Attributes
    ----------
    log_marginal, marginal, potential
        log q(z_t), q(z_t), and b_t up to a constant, (steps, states).
    counts
        Expected number of transitions by matrix, (groups, states, states).
    entropy
        The entropy of q, of all sequences together.
    """

    log_marginal: Array
    marginal: Array
    potential: Array
    counts: Array
    entropy: float


def solve(initial: Array, transition: Array, unary: Array, steps: Steps) -> Solution:
    """Return the optimal q of some sequences.

    Parameters
    ----------
    initial
        E[log init] of each sequence, (sequences, states).
    transition
        E[log P] of each matrix, (groups, states, states).
    unary
        The summed messages to each step, (steps, states).
    """
    potential = np.array(unary)
    for at in reversed(list(columns(steps.starts, steps.live))):
        ahead = at.steps[at.more] + 1
        follows = transition[steps.group[ahead]] + potential[ahead][:, None, :]
        potential[at.steps[at.more]] += logsumexp(follows, axis=2)
        potential[at.steps] -= potential[at.steps].max(axis=1, keepdims=True)
    marginal = np.empty_like(potential)
    for at in columns(steps.starts, steps.live):
        if at.first:
            marginal[at.steps] = _softmax(initial[at.sequences] + potential[at.steps])
        else:
            links = _softmax(transition[steps.group[at.steps]] + potential[at.steps][:, None, :])
            marginal[at.steps] = np.einsum("ni,nij->nj", marginal[at.steps - 1], links)
    versions = np.zeros(len(steps.live), dtype=np.int64)
    counts, entropy = statistics(marginal, potential, transition[None], versions, steps)
    return Solution(log_of(marginal), marginal, potential, counts, entropy)


def statistics(
    marginal: Array, potential: Array, transition: Array, version: Ints, steps: Steps
) -> tuple[Array, float]:
    """Return the expected numbers of transitions and the entropy of q, without barren steps.

    `transition` has the matrices of each version, (versions, groups, states, states), and `version`
    says which of them each sequence was solved with.
    """
    lengths = np.diff(steps.starts)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(marginal)) - steps.starts[sequence]
    alive = place < steps.live[sequence]
    later = np.flatnonzero(alive & (place > 0))
    pairs = Transitions(later, later - 1, version[sequence[later]], steps.group[later])
    counts, entropy = pair_counts(marginal, potential, transition, pairs)
    return counts, entropy + entropy_of(marginal[alive & (place == 0)])


class Transitions(NamedTuple):
    """Some rows that follow another.

    Attributes
    ----------
    rows, previous
        The rows, and those before them.
    version, group
        Which matrix leads to each row.
    """

    rows: Ints
    previous: Ints
    version: Ints
    group: Ints


def pair_counts(
    marginal: Array, potential: Array, transition: Array, pairs: Transitions
) -> tuple[Array, float]:
    """Return the expected numbers of some transitions by group, and the entropy of their links.

    kernels/chains/pair_counts.py has the compiled twin.
    """
    counts, entropy = np.zeros(transition.shape[1:]), 0.0
    size = max(1, (1 << 18) // marginal.shape[1] ** 2)
    for start in range(0, len(pairs.rows), size):
        rows, previous, version, group = (part[start : start + size] for part in pairs)
        links = log_links(transition[version, group], potential[rows])
        both = marginal[previous][:, :, None] * np.exp(links)
        np.add.at(counts, group, both)
        entropy -= float((both * np.maximum(links, LOG_ZERO)).sum())
    return counts, entropy


def entropy_of(probability: Array) -> float:
    """Return the entropy of some distributions, added up."""
    return -float((probability * log_of(probability)).sum())


def log_links(transition: Array, potential: Array) -> Array:
    """Return log q(z_t = j | z_(t-1) = i), from a matrix and b_t of each step."""
    follows = transition + potential[:, None, :]
    return np.asarray(follows - logsumexp(follows, axis=2, keepdims=True))


def log_of(probability: Array) -> Array:
    """Return logarithms, bounded from below."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(probability), LOG_ZERO))


class Column(NamedTuple):
    """The steps of all sequences at one distance from their beginning.

    `more` are the positions of those that a live step follows.
    """

    first: bool
    sequences: Ints
    steps: Ints
    more: Ints


def columns(starts: Ints, live: Ints) -> Iterator[Column]:
    """Yield the first steps of all sequences, then the second ones, and so on."""
    lengths = np.diff(starts)
    sequences = np.argsort(-lengths, kind="stable")
    sequences = sequences[lengths[sequences] > 0]
    place = 0
    while len(sequences):
        more = np.flatnonzero(live[sequences] > place + 1)
        yield Column(place == 0, sequences, starts[sequences] + place, more)
        place += 1
        sequences = sequences[lengths[sequences] > place]


def _softmax(logits: Array) -> Array:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))
