"""Brute force for chains of states: all paths of a sequence, with their probabilities."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Enumerated(NamedTuple):
    """The exact posterior of a path: log evidence, marginals, pairs by step, and the best path."""

    log_evidence: float
    marginals: Array
    pairs: Array
    entropy: float
    path: Array


def enumerate_paths(initial: Array, transition: Array, unary: Array) -> Enumerated:
    """Sum over all paths of a sequence.

    `transition` has a matrix of logarithms for each step after the first.
    """
    steps, states = unary.shape
    paths = np.array(list(product(range(states), repeat=steps)))
    score = initial[paths[:, 0]] + unary[np.arange(steps), paths].sum(axis=1)
    for t in range(1, steps):
        score = score + transition[t - 1][paths[:, t - 1], paths[:, t]]
    top = score.max()
    weight = np.exp(score - top)
    log_evidence = top + np.log(weight.sum())
    weight /= weight.sum()
    marginals, pairs = np.zeros((steps, states)), np.zeros((steps - 1, states, states))
    for path, w in zip(paths, weight, strict=True):
        marginals[np.arange(steps), path] += w
        pairs[np.arange(steps - 1), path[:-1], path[1:]] += w
    some = weight > 0
    entropy = -float(weight[some] @ np.log(weight[some]))
    return Enumerated(float(log_evidence), marginals, pairs, entropy, paths[score.argmax()])
