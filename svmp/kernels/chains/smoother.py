"""Moments, predictions and joint draws of Gaussian chains: threads share the sequences.

The recursions are in filtering.py. Results have the same bits for any number of threads.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array, Bools
from svmp.kernels.chains.blocks import add_gram, mirror, multiply, solve_lower
from svmp.kernels.chains.dynamics import Dynamics, OrderedRows, Output
from svmp.kernels.chains.filtering import (
    add_evidence,
    begin_step,
    filter_sequence,
    gain_of,
    gather_evidence,
)
from svmp.kernels.machine.cholesky import factorise
from svmp.kernels.machine.compiling import bare, claim, shared
from svmp.kernels.machine.threads import share, threads_for
from svmp.network.grid import Ints

SHARE = 4
"""Sequences that a thread claims at a time."""
SCRATCH = 8
"""Matrices of scratch memory."""


def smooth(rows: OrderedRows, dynamics: Dynamics, evidence: Array, out: Output) -> Bools:
    """Write q of all rows of some sequences; return which sequences are proper and finite.

    Parameters
    ----------
    rows, dynamics
        The sequences, and the density of their states.
    evidence
        For each row (b, -O / 2), flat, as the natural parameter of an MvNormal.
    out
        Where q is written. For sequences that are not sound it means nothing.
    """
    sound = np.zeros(len(rows.begin), dtype=np.bool_)
    with threads_for(len(rows.order) * dynamics.mean.shape[1]):
        share(_smooth_claimed, rows, dynamics, evidence, out, sound)
    return sound


def predict(rows: OrderedRows, dynamics: Dynamics, evidence: Array) -> tuple[Array, Array, Bools]:
    """Return mean and covariance of every state given the evidence before it, and what is sound."""
    size, count = dynamics.mean.shape[1], len(rows.begin)
    mean, cov = np.zeros((len(evidence), size)), np.zeros((len(evidence), size, size))
    sound = np.zeros(count, dtype=np.bool_)
    with threads_for(len(rows.order) * size):
        share(_predict_claimed, rows, dynamics, evidence, mean, cov, sound)
    return mean, cov, sound


def draw(rows: OrderedRows, dynamics: Dynamics, evidence: Array, noise: Array) -> Bools:
    """Turn standard Normal numbers (draws, rows, K) into joint draws of the sequences, in place.

    Returns which sequences are sound.
    """
    sound = np.zeros(len(rows.begin), dtype=np.bool_)
    with threads_for(noise.size):
        share(_draw_claimed, rows, dynamics, evidence, noise, sound)
    return sound


@bare
def _finish(cov: Array, mean: Array, work: Array, natural: Array, moments: Array) -> bool:
    """Write the marginal of a row; return whether it is proper and finite."""
    size = len(mean)
    root, inverse = work[1], work[3]
    for i in range(size):
        for j in range(size):
            root[i, j] = cov[i, j]
            inverse[i, j] = 1.0 if i == j else 0.0
    if not factorise(root):
        return False
    solve_lower(root, inverse, size)
    for i in range(size):
        for j in range(size):
            root[i, j] = 0.0
    add_gram(inverse, root, size)
    mirror(root, size)
    total = 0.0
    for i in range(size):
        linear = 0.0
        moments[i] = mean[i]
        for j in range(size):
            linear += root[i, j] * mean[j]
            natural[size + i * size + j] = -0.5 * root[i, j]
            moments[size + i * size + j] = cov[i, j] + mean[i] * mean[j]
            total += root[i, j] + moments[size + i * size + j]
        natural[i] = linear
        total += linear
    return bool(np.isfinite(total))


@bare
def _smooth_sequence(
    rows: OrderedRows,
    dynamics: Dynamics,
    sequence: int,
    work: Array,
    lines: Array,
    out: Output,
) -> bool:
    """Replace filtered means and M by moments, the last row first."""
    size, moments, cross = lines.shape[1], out.moments, out.cross
    begin, end = rows.begin[sequence], rows.end[sequence]
    after, product, gain = work[7], work[2], work[6]  # the covariance of the next state
    for position in range(end - 1, begin - 1, -1):
        row = rows.order[position]
        if position == end - 1:
            for i in range(size):
                lines[2, i] = moments[row, i]
                for j in range(size):
                    work[0, i, j] = moments[row, size + i * size + j]
                    after[i, j] = 0.0
            add_gram(work[0], after, size)
            mirror(after, size)
        else:
            coming = rows.order[position + 1]
            if not gain_of(dynamics, coming, moments[row], work, lines):
                return False
            for k in range(size):
                lines[1, k] = lines[2, k] - lines[1, k]
            for i in range(size):
                value = lines[0, i]
                for k in range(size):
                    value += gain[i, k] * lines[1, k]
                lines[2, i] = value
            multiply(gain, after, product, size)  # Cov[x_t, x_(t+1)]
            for i in range(size):
                for j in range(size):
                    cross[coming, j, i] = product[i, j]
            for i in range(size):
                for j in range(i + 1):
                    value = work[5, i, j]
                    for k in range(size):
                        value += product[i, k] * gain[j, k]
                    after[i, j] = value
            mirror(after, size)
        if not _finish(after, lines[2], work, out.natural[row], moments[row]):
            return False
    cross[rows.order[begin]] = 0.0
    return True


@shared
def _smooth_claimed(
    taken: Ints,
    rows: OrderedRows,
    dynamics: Dynamics,
    evidence: Array,
    out: Output,
    sound: Bools,
) -> None:
    """Smooth the sequences that this thread claims."""
    size = dynamics.mean.shape[1]
    work, lines = np.empty((SCRATCH, size, size)), np.empty((3, size))
    first = claim(taken, SHARE)
    while first < len(rows.begin):
        for s in range(first, min(first + SHARE, len(rows.begin))):
            sound[s] = filter_sequence(
                rows, dynamics, evidence, s, work, lines, out.moments, out.log_det
            ) and _smooth_sequence(rows, dynamics, s, work, lines, out)
        first = claim(taken, SHARE)


@shared
def _predict_claimed(
    taken: Ints,
    rows: OrderedRows,
    dynamics: Dynamics,
    evidence: Array,
    mean: Array,
    cov: Array,
    sound: Bools,
) -> None:
    """Predict every state of the sequences that this thread claims from those before it."""
    size = dynamics.mean.shape[1]
    work, lines = np.empty((SCRATCH, size, size)), np.empty((3, size))
    first = claim(taken, SHARE)
    while first < len(rows.begin):
        for s in range(first, min(first + SHARE, len(rows.begin))):
            sound[s] = True
            for position in range(rows.begin[s], rows.end[s]):
                row = rows.order[position]
                begin_step(dynamics, s, row, position == rows.begin[s], work, lines)
                mirror(work[1], size)
                for i in range(size):
                    mean[row, i] = lines[1, i]
                    for j in range(size):
                        cov[row, i, j] = work[1, i, j]
                gather_evidence(rows, dynamics, evidence, s, position, work)
                if not add_evidence(evidence[row], work, lines):
                    sound[s] = False
                    break
        first = claim(taken, SHARE)


@shared
def _draw_claimed(
    taken: Ints,
    rows: OrderedRows,
    dynamics: Dynamics,
    evidence: Array,
    noise: Array,
    sound: Bools,
) -> None:
    """Draw the sequences that this thread claims, the last row first."""
    size, none = dynamics.mean.shape[1], np.empty(0)
    work, lines = np.empty((SCRATCH, size, size)), np.empty((3, size))
    first = claim(taken, SHARE)
    while first < len(rows.begin):
        for s in range(first, min(first + SHARE, len(rows.begin))):
            begin, end = rows.begin[s], rows.end[s]
            filtered = np.empty((end - begin, size + size * size))
            sound[s] = filter_sequence(rows, dynamics, evidence, s, work, lines, filtered, none)
            for position in range(end - 1, begin - 1, -1):
                if not sound[s]:
                    break
                row, last = rows.order[position], position == end - 1
                if last:
                    for i in range(size):
                        lines[0, i] = filtered[position - begin, i]
                        for j in range(size):
                            work[4, i, j] = filtered[position - begin, size + i * size + j]
                else:
                    coming = rows.order[position + 1]
                    sound[s] = gain_of(dynamics, coming, filtered[position - begin], work, lines)
                for d in range(len(noise)):
                    for i in range(size):
                        lines[2, i] = lines[0, i]
                    for k in range(size):
                        value = noise[d, row, k]
                        for i in range(size):
                            lines[2, i] += value * work[4, k, i]
                        if not last:
                            value = noise[d, coming, k] - lines[1, k]
                            for i in range(size):
                                lines[2, i] += work[6, i, k] * value
                    for i in range(size):
                        noise[d, row, i] = lines[2, i]
        first = claim(taken, SHARE)
