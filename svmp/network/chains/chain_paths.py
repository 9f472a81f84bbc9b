"""What a structured q of states says about whole sequences: pairs, paths, draws, filtered states.

A q is given by its marginals, and by log q(z_t = j | z_(t-1) = i) up to a constant for each i:
T(i, j) + b_t(j), with the symbols of forward_backward.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from svmp.families.family import Array
from svmp.network.chains.forward_backward import columns, log_links, log_of
from svmp.network.chains.sequences import Sequences
from svmp.network.grid import Ints


@dataclass(frozen=True, eq=False)
class StatePaths:
    """The structured q of all sequences of a chain of states.

    Attributes
    ----------
    sequences
        The rows of each sequence.
    group
        Which transition matrix leads to each row.
    marginal, potential
        q(z_t) and b_t of each row, (rows, states).
    transition, version
        T by version and matrix, and the version of each sequence.
    """

    sequences: Sequences
    group: Ints
    marginal: Array
    potential: Array
    transition: Array
    version: NDArray[np.int64]

    def links(self, rows: Ints) -> Array:
        """Return log q(z_t = j | z_(t-1) = i) of rows that are not first, (rows, i, j)."""
        version = self.version[self.sequences.code[rows]]
        return log_links(self.transition[version, self.group[rows]], self.potential[rows])

    def pairs(self, rows: Ints) -> Array:
        """Return q(z_(t-1) = i, z_t = j) of rows that are not first, (rows, i, j)."""
        before = self.marginal[self.sequences.previous[rows]]
        return np.asarray(before[:, :, None] * np.exp(self.links(rows)))

    @cached_property
    def _columns(self) -> list[Any]:
        """The rows of all sequences at the first place, at the second, and so on."""
        order, every = self.sequences.order, self.sequences.lengths
        found = columns(self.sequences.starts, every)
        return [(at.first, order[at.steps]) for at in found]

    def best(self) -> Ints:
        """Return the most likely path of each sequence, as a state for each row."""
        previous, size = self.sequences.previous, len(self.marginal)
        score, came_from = np.zeros(self.marginal.shape), np.zeros(self.marginal.shape, np.int64)
        for first, rows in self._columns:
            if first:
                score[rows] = log_of(self.marginal[rows])
            else:
                follows = score[previous[rows]][:, :, None] + self.links(rows)
                came_from[rows] = follows.argmax(axis=1)
                score[rows] = follows.max(axis=1)
        path = np.full(size, -1, dtype=np.int64)
        ends = self.sequences.order[self.sequences.starts[1:][self.sequences.lengths > 0] - 1]
        path[ends] = score[ends].argmax(axis=1)
        for first, rows in reversed(self._columns):
            if not first:
                path[previous[rows]] = came_from[rows, path[rows]]
        return path

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return draws of whole paths, (size, rows)."""
        out = np.zeros((size, len(self.marginal)))
        previous = self.sequences.previous
        for first, rows in self._columns:
            if first:
                chances = np.broadcast_to(self.marginal[rows], (size, *self.marginal[rows].shape))
            else:
                before = out[:, previous[rows]].astype(np.int64)
                chances = np.exp(self.links(rows))[np.arange(len(rows)), before]
            total = np.cumsum(chances, axis=2)
            level = rng.random((size, len(rows), 1)) * total[..., -1:]
            out[:, rows] = (total < level).sum(axis=2)
        return out

    def filtered(self) -> Array:
        """Return the probabilities of each row's state given the rows up to it, (rows, states).

        With beta_t = log sum_j exp(T(., j) + b_(t+1)(j)) the messages to a row are b_t - beta_t.
        """
        previous, beta = self.sequences.previous, np.zeros(self.marginal.shape)
        later = np.flatnonzero(previous >= 0)
        version = self.version[self.sequences.code[later]]
        size = max(1, (1 << 18) // self.marginal.shape[1] ** 2)
        for start in range(0, len(later), size):
            some, own = later[start : start + size], version[start : start + size]
            follows = self.transition[own, self.group[some]] + self.potential[some][:, None, :]
            beta[previous[some]] = logsumexp(follows, axis=2)
        found = np.empty(self.marginal.shape)
        for first, rows in self._columns:
            if first:
                found[rows] = softmax(log_of(self.marginal[rows]) - beta[rows], axis=1)
            else:
                number = self.version[self.sequences.code[rows]]
                matrix = np.exp(self.transition[number, self.group[rows]])
                reached = np.einsum("ni,nij->nj", found[previous[rows]], matrix)
                message = self.potential[rows] - beta[rows]
                found[rows] = softmax(log_of(reached) + message, axis=1)
        return found


def forecast(state: Array, matrix: Array, steps: int) -> Array:
    """Return the probabilities of the next states, (steps, ..., states).

    Parameters
    ----------
    state
        Probabilities of the current state, (..., states), as the last filtered ones.
    matrix
        Transition probabilities, (states, states), as E[P].
    steps
        Number of steps ahead.

    >>> forecast(np.array([1.0, 0.0]), np.array([[0.5, 0.5], [0.0, 1.0]]), 2)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    found = []
    for _ in range(steps):
        state = state @ matrix
        found.append(state)
    return np.array(found).reshape(steps, *np.shape(state))
