"""Forward-backward without logarithms, for chains in which no transition is nearly impossible.

With the symbols of forward_backward.py, from the last step to the first

    b_t = exp(u_t) beta_t, scaled so that its largest entry is 1,    beta_(t-1) = P b_t,

and from the first to the last

    w_i = q(z_(t-1) = i) / beta_(t-1)(i),    q(z_t = j) = b_t(j) sum_i w_i P(i, j).

The loops over steps have only these products; everything else is computed for all steps at a time.
The expected transitions are the sum of w_i b_t(j), times P(i, j). As in the compiled loops
(kernels/chains/states.py), what scaled numbers lose is below 1e-100 where every transition is
likelier than `LEAST`; other chains are solved in logarithms.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from svmp.families.family import Array
from svmp.network.chains.forward_backward import Solution, Steps, columns, entropy_of, log_of
from svmp.network.grid import Ints
from svmp.network.means.row_sums import sum_of_products

LEAST = -230.0
"""Logarithm of the least likely transition."""


def is_likely(transition: Array) -> bool:
    """Return whether all transitions are likely enough for scaled numbers."""
    return bool((transition > LEAST).all())


def solve(initial: Array, transition: Array, unary: Array, steps: Steps) -> Solution:
    """Return the optimal q of some sequences; the arguments are those of forward_backward.py."""
    matrices = np.exp(transition)
    turned = np.ascontiguousarray(np.swapaxes(matrices, 1, 2))
    at = list(columns(steps.starts, steps.live))
    b = np.exp(unary - unary.max(axis=1, keepdims=True))
    for column in reversed(at):
        now = column.steps[column.more]
        if len(now):
            x = b[now] * _times(b[now + 1], turned, steps.group[now + 1])
            b[now] = x / x.max(axis=1, keepdims=True)
    beta = _times(b, turned, steps.group)  # that of the step before each
    beta[steps.starts[:-1][np.diff(steps.starts) > 0]] = 1.0
    potential = np.array(unary)
    none = np.zeros(0, dtype=np.int64)  # where no sequence has rows
    follows = np.concatenate([none, *(column.steps[column.more] for column in at)])
    potential[follows] += np.log(beta[follows + 1])
    potential -= potential.max(axis=1, keepdims=True)
    marginal = np.empty_like(b)
    for column in at:
        now = column.steps
        if column.first:
            marginal[now] = softmax(initial[column.sequences] + potential[now], axis=1)
        else:
            weight = marginal[now - 1] / beta[now]
            marginal[now] = b[now] * _times(weight, matrices, steps.group[now])
    marginal /= marginal.sum(axis=1, keepdims=True)
    later = np.sort(follows) + 1
    counts = np.zeros_like(transition)
    for group in range(len(transition)):
        some = later if len(transition) == 1 else later[steps.group[later] == group]
        counts[group] = sum_of_products(marginal[some - 1] / beta[some], b[some])
    counts *= matrices
    first = steps.starts[:-1][steps.live > 0]
    entropy = entropy_of(marginal[first]) - float((counts * transition).sum())
    entropy -= float((marginal[later] * potential[later]).sum())
    entropy += float((marginal[later - 1] * np.log(beta[later])).sum())
    return Solution(log_of(marginal), marginal, potential, counts, entropy)


def _times(lines: Array, matrices: Array, group: Ints) -> Array:
    """Return each line times the matrix of its group."""
    if len(matrices) == 1:
        return np.asarray(lines @ matrices[0])
    return np.asarray((lines[:, None, :] @ matrices[group])[:, 0])
