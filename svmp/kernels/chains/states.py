"""Forward-backward in one loop per sequence, scaled; plain: network/chains/forward_backward.py.

For each step, from the last to the first, b_t = exp(u_t) beta_t is scaled so that its largest entry
is 1, and beta_(t-1) = T b_t; then from the first to the last

    w_i = q(z_(t-1) = i) / beta_(t-1)(i),   q(z_t = j) = b_t(j) sum_i w_i T(i, j)

and the expected transitions are the sum of w_i b_t(j), times T(i, j): three products of a vector
with a matrix of states a step, without logarithms in them. Scaled numbers lose states that are less
likely than 1e-308 given the past alone, which matters only where the future can bring them back:
where every transition is likelier than `LEAST`, what is lost is below 1e-100. Other chains, as
those with impossible transitions, are solved in logarithms.

Threads take blocks of sequences. Each block has counts of its own, and blocks are added in order:
the same bits on any number of threads. b_t and beta_t are kept in the arrays of the result until
these are written, so that nothing of the size of q is allocated.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import bare, claim, shared
from svmp.kernels.machine.special import exp, log
from svmp.kernels.machine.threads import share, threads_for
from svmp.network.chains.forward_backward import LOG_ZERO, Solution, Steps
from svmp.network.grid import Ints

LEAST = -230.0
"""Logarithm of the least likely transition for which chains are solved without logarithms."""
BLOCK = 4096
"""Fewest steps of a block."""
BLOCKS = 64
"""Most blocks, each of which has counts of its own."""
TINY = 1e-300
"""Smaller probabilities count as 0."""
UNLIKELY = 1e-150
"""Smallest sum of scaled numbers in which those that are lost, below 1e-300, do not matter."""


def solve(
    initial: Array, transition: Array, unary: Array, steps: Steps, into: tuple[Array, Array, Array]
) -> Solution:
    """Return the optimal q of some sequences, in arrays that are given.

    Parameters
    ----------
    initial, transition, unary, steps
        As in network/chains/forward_backward.py; `unary` is not changed.
    into
        Arrays for log q(z_t), q(z_t) and b_t, of (steps, states).
    """
    log_marginal, marginal, potential = into
    blocks = block_starts(steps.starts)
    counts = np.zeros((len(blocks) - 1, *transition.shape))
    parts = np.zeros(len(blocks) - 1)
    scaled = bool((transition > LEAST).all())
    matrices = np.exp(transition) if scaled else np.maximum(transition, -1e300)
    given = np.maximum(initial, -1e300)
    with threads_for(len(unary) * transition.shape[-1] ** 2):
        share(
            solve_blocks,
            blocks,
            *steps,
            given,
            matrices,
            unary,
            log_marginal,
            marginal,
            potential,
            counts,
            parts,
            scaled,
        )
    total = counts.sum(axis=0)
    if scaled:
        total *= matrices
    entropy = float(parts.sum()) - float((total * np.where(total > 0, transition, 0.0)).sum())
    return Solution(log_marginal, marginal, potential, total, entropy)


def block_starts(starts: Ints) -> Ints:
    """Return the first sequence of each block, and the number of sequences."""
    steps = int(starts[-1]) if len(starts) > 1 else 0
    size = max(BLOCK, -(-steps // BLOCKS))
    cuts = np.searchsorted(starts, np.arange(0, steps, size), side="left")
    return np.unique(np.concatenate([cuts, [0, len(starts) - 1]])).astype(np.int64)


@bare
def add_first_scaled(
    s: int,
    initial: Array,
    unary: Array,
    potential: Array,
    weight: Array,
    marginal: Array,
    live: int,
) -> float:
    """Write q(z_1) from scaled b_1, which is there; return its share of the entropy.

    Where all states that may be the first are `UNLIKELY` given what follows, their scaled numbers
    mean nothing, and q(z_1) is computed in logarithms.
    """
    states = unary.shape[1]
    top = initial[0]
    for j in range(1, states):
        top = max(top, initial[j])
    total = 0.0
    for j in range(states):
        weight[j] = exp(initial[j] - top) if initial[j] - top > -700.0 else 0.0
        weight[j] *= marginal[s, j]
        total += weight[j]
    if total < UNLIKELY:
        return add_first(s, initial, unary, potential, marginal, live)
    part = 0.0
    for j in range(states):
        marginal[s, j] = weight[j] / total
        if marginal[s, j] > 0.0:
            part -= marginal[s, j] * (initial[j] + unary[s, j])
    return part + top + log(total) if live > 0 else 0.0


@bare
def add_first(
    s: int, initial: Array, unary: Array, potential: Array, marginal: Array, live: int
) -> float:
    """Write q(z_1) from log b_1; return its share of the entropy."""
    states = unary.shape[1]
    top = initial[0] + potential[s, 0]
    for j in range(1, states):
        top = max(top, initial[j] + potential[s, j])
    total = 0.0
    for j in range(states):
        apart = initial[j] + potential[s, j] - top
        marginal[s, j] = exp(apart) if apart > -700.0 else 0.0
        total += marginal[s, j]
    part = 0.0
    for j in range(states):
        marginal[s, j] /= total
        if marginal[s, j] > 0.0:
            part -= marginal[s, j] * (initial[j] + unary[s, j])
    return part + top + log(total) if live > 0 else 0.0


@bare
def write_log(marginal: Array, t: int, out: Array) -> None:
    """Write the logarithm of q(z_t)."""
    for j in range(marginal.shape[1]):
        p = marginal[t, j]
        out[t, j] = log(p) if p > TINY else LOG_ZERO


@bare
def solve_scaled(
    s: int,
    e: int,
    live: int,
    group: Ints,
    initial: Array,
    matrices: Array,
    unary: Array,
    log_marginal: Array,
    marginal: Array,
    potential: Array,
    counts: Array,
    weight: Array,
) -> float:
    """Solve one sequence; return its entropy without that of the counts."""
    states = unary.shape[1]
    part = 0.0
    for t in range(e - 1, s - 1, -1):
        last = t + 1 >= s + live
        top = unary[t, 0]
        for j in range(1, states):
            top = max(top, unary[t, j])
        largest = 0.0
        for j in range(states):
            beta = 1.0 if last else log_marginal[t, j]
            marginal[t, j] = exp(unary[t, j] - top) * beta
            potential[t, j] = unary[t, j] - top + (0.0 if last else log(beta))
            largest = max(largest, marginal[t, j])
        scale, shift = 1.0 / largest, log(largest)
        for j in range(states):
            marginal[t, j] *= scale
            potential[t, j] -= shift
        if t < s + live:
            part += top + shift
        if t > s:
            matrix = matrices[group[t]]
            for i in range(states):
                beta = 0.0
                for j in range(states):
                    beta += matrix[i, j] * marginal[t, j]
                log_marginal[t - 1, i] = beta
    part += add_first_scaled(s, initial, unary, potential, weight, marginal, live)
    for t in range(s + 1, e):
        for i in range(states):
            weight[i] = marginal[t - 1, i] / log_marginal[t - 1, i]
        write_log(marginal, t - 1, log_marginal)
        matrix = matrices[group[t]]
        if t < s + live:
            count = counts[group[t]]
            for i in range(states):
                for j in range(states):
                    count[i, j] += weight[i] * marginal[t, j]
        total = 0.0
        for j in range(states):
            follows = 0.0
            for i in range(states):
                follows += weight[i] * matrix[i, j]
            marginal[t, j] *= follows
            total += marginal[t, j]
        total = 1.0 / total
        for j in range(states):
            marginal[t, j] *= total
        if t < s + live:
            for j in range(states):
                part -= marginal[t, j] * unary[t, j]
    write_log(marginal, e - 1, log_marginal)
    return part


@bare
def solve_logs(
    s: int,
    e: int,
    live: int,
    group: Ints,
    initial: Array,
    matrices: Array,
    unary: Array,
    log_marginal: Array,
    marginal: Array,
    potential: Array,
    counts: Array,
    weight: Array,
) -> float:
    """Solve one sequence in logarithms; return its entropy without that of the counts."""
    states = unary.shape[1]
    part = 0.0
    for t in range(e - 1, s - 1, -1):
        last = t + 1 >= s + live
        for j in range(states):
            potential[t, j] = unary[t, j] + (0.0 if last else log_marginal[t, j])
        top = potential[t, 0]
        for j in range(1, states):
            top = max(top, potential[t, j])
        for j in range(states):
            potential[t, j] -= top
        if t < s + live:
            part += top
        if t > s:
            matrix = matrices[group[t]]
            for i in range(states):
                top = matrix[i, 0] + potential[t, 0]
                for j in range(1, states):
                    top = max(top, matrix[i, j] + potential[t, j])
                total = 0.0
                for j in range(states):
                    apart = matrix[i, j] + potential[t, j] - top
                    total += exp(apart) if apart > -700.0 else 0.0
                log_marginal[t - 1, i] = top + log(total)
    part += add_first(s, initial, unary, potential, marginal, live)
    for t in range(s + 1, e):
        for i in range(states):
            weight[i] = log_marginal[t - 1, i]
        write_log(marginal, t - 1, log_marginal)
        matrix = matrices[group[t]]
        for j in range(states):
            marginal[t, j] = 0.0
        for i in range(states):
            before = marginal[t - 1, i]
            if before > 0.0:
                for j in range(states):
                    apart = matrix[i, j] + potential[t, j] - weight[i]
                    pair = before * exp(min(apart, 0.0)) if apart > -700.0 else 0.0
                    marginal[t, j] += pair
                    if t < s + live:
                        counts[group[t], i, j] += pair
        total = 0.0
        for j in range(states):
            total += marginal[t, j]
        for j in range(states):
            marginal[t, j] /= total
            if t < s + live:
                part -= marginal[t, j] * unary[t, j]
    write_log(marginal, e - 1, log_marginal)
    return part


@shared
def solve_blocks(
    taken: Ints,
    blocks: Ints,
    starts: Ints,
    live: Ints,
    group: Ints,
    initial: Array,
    matrices: Array,
    unary: Array,
    log_marginal: Array,
    marginal: Array,
    potential: Array,
    counts: Array,
    parts: Array,
    scaled: bool,
) -> None:
    """Solve the sequences of each block, scaled or in logarithms."""
    weight = np.empty(unary.shape[1])
    b = claim(taken, 1)
    while b < len(parts):
        for n in range(blocks[b], blocks[b + 1]):
            s, e = starts[n], starts[n + 1]
            if e == s:
                continue
            given = s, e, live[n], group, initial[n], matrices, unary
            out = log_marginal, marginal, potential, counts[b], weight
            parts[b] += solve_scaled(*given, *out) if scaled else solve_logs(*given, *out)
        b = claim(taken, 1)
