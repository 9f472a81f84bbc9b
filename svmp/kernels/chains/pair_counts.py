"""Expected transitions of chains of states, from the q of some rows.

With b_t up to a constant and T, the symbols of network/chains/forward_backward.py,

    q(z_(t-1) = i, z_t = j) = q(z_(t-1) = i) T(i, j) exp(b_t(j)) / sum_k T(i, k) exp(b_t(k)),

with exponentials of E[log P] for T, so that a row takes as many exponentials as there are states,
and no array of (rows, states, states) is made. Rows are taken in blocks, whose counts are added in
their order: the same bits for any number of threads.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.chains.states import LEAST
from svmp.kernels.machine.compiling import bare, claim, shared
from svmp.kernels.machine.special import exp, log
from svmp.kernels.machine.threads import share, threads_for
from svmp.network.chains import forward_backward
from svmp.network.chains.forward_backward import Transitions
from svmp.network.grid import Ints

BLOCK, BLOCKS = 4096, 64
"""Fewest rows of a block, and most blocks."""


def pair_counts(
    marginal: Array, potential: Array, transition: Array, pairs: Transitions
) -> tuple[Array, float]:
    """Return the expected numbers of some transitions by group, and the entropy of their links.

    Parameters
    ----------
    marginal, potential
        q(z_t) and b_t of each row of the table.
    transition
        T by version and group, (versions, groups, states, states).
    pairs
        The rows, and what they follow.
    """
    if not (transition > LEAST).all():  # in logarithms, as such chains are solved
        return forward_backward.pair_counts(marginal, potential, transition, pairs)
    states = marginal.shape[1]
    size = max(BLOCK, -(-len(pairs.rows) // BLOCKS))
    starts = np.append(np.arange(0, len(pairs.rows), size), len(pairs.rows))
    counts = np.zeros((len(starts) - 1, *transition.shape[1:]))
    entropy = np.zeros(len(starts) - 1)
    with threads_for(len(pairs.rows) * states**2):
        share(
            _count_blocks,
            starts,
            marginal,
            potential,
            np.exp(transition),
            transition,
            *pairs,
            counts,
            entropy,
        )
    return counts.sum(axis=0), float(entropy.sum())


@bare
def _count(
    before: Array, later: Array, matrix: Array, logs: Array, count: Array, weight: Array
) -> float:
    """Add the pairs of a row; return their entropy."""
    states, entropy = len(before), 0.0
    top = later[0]
    for j in range(1, states):
        top = max(top, later[j])
    for j in range(states):
        apart = later[j] - top
        weight[j] = exp(apart) if apart > -700.0 else 0.0
    for i in range(states):
        beta = 0.0
        for j in range(states):
            beta += matrix[i, j] * weight[j]
        if before[i] > 0.0:
            scale, shift = before[i] / beta, top + log(beta)
            for j in range(states):
                pair = scale * matrix[i, j] * weight[j]
                count[i, j] += pair
                entropy -= pair * (logs[i, j] + later[j] - shift)
    return entropy


@shared
def _count_blocks(
    taken: Ints,
    starts: Ints,
    marginal: Array,
    potential: Array,
    matrices: Array,
    logs: Array,
    rows: Ints,
    previous: Ints,
    version: Ints,
    group: Ints,
    counts: Array,
    entropy: Array,
) -> None:
    """Add up the blocks that this thread claims."""
    weight = np.empty(marginal.shape[1])
    block = claim(taken, 1)
    while block < len(entropy):
        for place in range(starts[block], starts[block + 1]):
            v, g = version[place], group[place]
            entropy[block] += _count(
                marginal[previous[place]],
                potential[rows[place]],
                matrices[v, g],
                logs[v, g],
                counts[block, g],
                weight,
            )
        block = claim(taken, 1)
