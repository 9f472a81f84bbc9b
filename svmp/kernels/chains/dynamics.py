"""The arrays that the loops of Gaussian chains read and write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.network.grid import Ints


class OrderedRows(NamedTuple):
    """Rows in the order of time: those of sequence s are `order[begin[s]:end[s]]`.

    Rows from `live[s]` on in that order have no observed descendants: the evidence that transitions
    add to the state before is left out where they lead to such a row.
    """

    order: Ints
    begin: Ints
    end: Ints
    live: Ints


class Dynamics(NamedTuple):
    """The expected dynamics of a chain of vectors of length K.

    Attributes
    ----------
    mean, cov, start
        Mean and covariance of the first state of each kind of sequence, and the kind of each
        sequence.
    matrix, noise, back, gram
        For each kind of transition A', Q, A' Q^-1 and A' Q^-1 A. For states of lags, in which the
        first entry alone moves, Q has one entry that is not 0, and there are no `back` and `gram`.
    spread
        For each kind of transition V, where a transition multiplies the density by
        exp(-x_(t-1)' V x_(t-1) / (2 s)); no matrices if all are 0.
    log_det
        log|P| of each kind of sequence, and log|Q| of each kind of transition, or that of the entry
        that moves.
    kind, step
        The kind of the transition into each row, and the factor of its covariance; those of the
        first row of a sequence are not used.
    offset
        c of each row; no rows if it is 0.
    """

    mean: Array
    cov: Array
    start: Ints
    matrix: Array
    noise: Array
    back: Array
    gram: Array
    spread: Array
    log_det: tuple[Array, Array]
    kind: Ints
    step: Array
    offset: Array


class Output(NamedTuple):
    """What smoothing writes, in place, for each row.

    Attributes
    ----------
    natural, moments
        The natural parameter of the marginal, an MvNormal, and (E[x], E[x x']).
    cross
        Cov[x_t, x_(t-1)], (rows, K, K); 0 for first rows.
    log_det
        The sum of these numbers over the first rows of a sequence, up to the last with evidence or
        to any row after it, is the log-determinant of the precision matrix of their joint q.
    """

    natural: Array
    moments: Array
    cross: Array
    log_det: Array

    @classmethod
    def empty(cls, rows: int, size: int) -> Output:
        """Return arrays for vectors of some size."""
        line = size + size**2
        return cls(
            np.empty((rows, line)),
            np.empty((rows, line)),
            np.empty((rows, size, size)),
            np.empty(rows),
        )
