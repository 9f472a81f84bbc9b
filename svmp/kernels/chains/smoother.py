"""Kalman smoothing of Gaussian chains on expected natural parameters, one loop per sequence.

The density of a chain is a product of a start x_1 ~ N(m, P), transitions x_t ~ N(A x_(t-1) + c_t,
s_t Q) and evidence exp(b_t . x_t - x_t' O_t x_t / 2). With a matrix M for which the filtered
covariance is M' M, a step forward is

    P = s Q + (M A')' (M A') = L L',   I + L' O L = R R',   M = R^-1 L',
    mu = A mu + c + M' M (b - O (A mu + c)),

and with the covariance C of x_t given x_(t+1) and the gain G, a step backward is

    I + M (A' Q^-1 A) M' / s = R R',   N = R^-1 M,   C = N' N,   G = C A' Q^-1 / s,
    E[x_t] = mu + G (E[x_(t+1)] - A mu - c),   Cov[x_t] = C + G Cov[x_(t+1)] G'.

Covariances are sums of squares: nothing is subtracted, so that no digits are lost where evidence is
missing, where a start is vague, or where a state hardly changes. M takes the place in memory that
the moments of the row will have. Steps without evidence cost as much as others.

The precision matrix of a sequence has the determinant prod |R|^2 / (|P_1| prod |s Q|), with R of the
steps forward; it gives the entropy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svmp.families.family import Array, Bools
from svmp.kernels.chains.blocks import add_gram, mirror, multiply, multiply_transposed, solve_lower
from svmp.kernels.machine.cholesky import factorise
from svmp.kernels.machine.compiling import bare, claim, shared
from svmp.kernels.machine.threads import share, threads_for
from svmp.network.grid import Ints

SHARE = 4
"""Sequences that a thread claims at a time."""
SCRATCH = 8
"""Matrices of scratch memory."""
SMALL, LARGE = 1e-100, 1e100
"""Limits of a product of pivots before its logarithm is taken."""


class Sequences(NamedTuple):
    """Rows in the order of time: those of sequence s are `order[begin[s]:end[s]]`."""

    order: Ints
    begin: Ints
    end: Ints


class Dynamics(NamedTuple):
    """The expected dynamics of a chain of vectors of length K.

    Attributes
    ----------
    mean, cov, start
        Mean and covariance of the first state of each kind of sequence, and the kind of each
        sequence.
    matrix, noise, back, gram
        For each kind of transition A', Q, A' Q^-1 and A' Q^-1 A.
    log_det
        log|P| of each kind of sequence, and log|Q| of each kind of transition.
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
    log_det: tuple[Array, Array]
    kind: Ints
    step: Array
    offset: Array


class Smoothed(NamedTuple):
    """What smoothing returns, besides the moments that it writes.

    Attributes
    ----------
    log_det
        Log-determinant of the precision matrix of each sequence.
    sound
        Which sequences have a proper and finite q. The moments of others mean nothing.
    """

    log_det: Array
    sound: Bools


def smooth(
    rows: Sequences, dynamics: Dynamics, evidence: Array, moments: Array, cross: Array
) -> Smoothed:
    """Write the moments of all rows of some sequences; return what else is known of their q.

    Parameters
    ----------
    rows, dynamics
        The sequences, and the density of their states.
    evidence
        For each row (b, -O / 2), flat, as the natural parameter of an MvNormal.
    moments
        (E[x], E[x x']) of each row, written in place.
    cross
        Cov[x_t, x_(t-1)] of each row, (rows, K, K), written in place; 0 for first rows.
    """
    size, count = dynamics.mean.shape[1], len(rows.begin)
    found = Smoothed(np.zeros(count), np.zeros(count, dtype=np.bool_))
    with threads_for(len(rows.order) * size):
        share(_smooth_claimed, rows, dynamics, evidence, moments, cross, *found)
    return found


def predict(rows: Sequences, dynamics: Dynamics, evidence: Array) -> tuple[Array, Array, Bools]:
    """Return mean and covariance of every state given the evidence before it, and what is sound."""
    size, count = dynamics.mean.shape[1], len(rows.begin)
    mean, cov = np.zeros((len(evidence), size)), np.zeros((len(evidence), size, size))
    sound = np.zeros(count, dtype=np.bool_)
    with threads_for(len(rows.order) * size):
        share(_predict_claimed, rows, dynamics, evidence, mean, cov, sound)
    return mean, cov, sound


def draw(rows: Sequences, dynamics: Dynamics, evidence: Array, noise: Array) -> Bools:
    """Turn standard Normal numbers (draws, rows, K) into joint draws of the sequences, in place.

    Returns which sequences are sound.
    """
    sound = np.zeros(len(rows.begin), dtype=np.bool_)
    with threads_for(noise.size):
        share(_draw_claimed, rows, dynamics, evidence, noise, sound)
    return sound


@bare
def _step_mean(dynamics: Dynamics, row: int, mean: Array, out: Array, size: int) -> None:
    """Write A mean + c."""
    matrix = dynamics.matrix[dynamics.kind[row]]
    for i in range(size):
        out[i] = dynamics.offset[row, i] if len(dynamics.offset) else 0.0
    for k in range(size):
        value = mean[k]
        for i in range(size):
            out[i] += value * matrix[k, i]


@bare
def _begin(
    dynamics: Dynamics, sequence: int, row: int, first: bool, work: Array, lines: Array
) -> None:
    """Write the covariance P and the mean of a state given the evidence before it.

    work[0] is M of the row before, and lines[0] its mean; P is written to work[1], the mean to
    lines[1].
    """
    size = lines.shape[1]
    root, cov, product = work[0], work[1], work[2]
    if first:
        begin = dynamics.cov[dynamics.start[sequence]]
        mean = dynamics.mean[dynamics.start[sequence]]
        for i in range(size):
            lines[1, i] = mean[i]
            for j in range(size):
                cov[i, j] = begin[i, j]
    else:
        kind, step = dynamics.kind[row], dynamics.step[row]
        noise = dynamics.noise[kind]
        multiply(root, dynamics.matrix[kind], product, size)
        for i in range(size):
            for j in range(size):
                cov[i, j] = step * noise[i, j]
        add_gram(product, cov, size)
        _step_mean(dynamics, row, lines[0], lines[1], size)


@bare
def _see(evidence: Array, work: Array, lines: Array) -> bool:
    """Add the evidence of a row: from P and its mean to M and its mean; R is in work[3]."""
    size = lines.shape[1]
    root, cov, product, inner = work[0], work[1], work[2], work[3]
    if not factorise(cov):
        return False
    for i in range(size):
        slope = evidence[i]
        for j in range(size):
            product[i, j] = 0.0
            inner[i, j] = 1.0 if i == j else 0.0
        for k in range(size):
            value = -(evidence[size + i * size + k] + evidence[size + k * size + i])
            slope -= value * lines[1, k]
            for j in range(k + 1):
                product[i, j] += value * cov[k, j]
        lines[2, i] = slope
    for k in range(size):
        for i in range(k + 1):
            value = cov[k, i]
            for j in range(i + 1):
                inner[i, j] += value * product[k, j]
    if not factorise(inner):
        return False
    for i in range(size):
        for j in range(size):
            root[i, j] = cov[j, i] if j >= i else 0.0
    solve_lower(inner, root, size)
    for i in range(size):
        lines[0, i] = lines[1, i]
    for k in range(size):
        value = 0.0
        for j in range(size):
            value += root[k, j] * lines[2, j]
        for j in range(size):
            lines[0, j] += value * root[k, j]
    return True


@bare
def _filter(
    rows: Sequences,
    dynamics: Dynamics,
    evidence: Array,
    sequence: int,
    work: Array,
    lines: Array,
    out: Array,
    shift: int,
) -> Any:
    """Write the filtered mean and M of every row to out[row - shift].

    Returns whether it is sound, and the log-determinant of the precision matrix.
    """
    size = lines.shape[1]
    begin, end = rows.begin[sequence], rows.end[sequence]
    total, pivots = -dynamics.log_det[0][dynamics.start[sequence]], 1.0
    for position in range(begin, end):
        row = rows.order[position]
        place = row if shift < 0 else position - shift
        _begin(dynamics, sequence, row, position == begin, work, lines)
        if not _see(evidence[row], work, lines):
            return False, 0.0
        if position > begin:
            total -= dynamics.log_det[1][dynamics.kind[row]] + size * np.log(dynamics.step[row])
        for i in range(size):
            pivots *= work[3, i, i]
            if not SMALL < pivots < LARGE:
                total += 2 * np.log(pivots)
                pivots = 1.0
            out[place, i] = lines[0, i]
            for j in range(size):
                out[place, size + i * size + j] = work[0, i, j]
    total += 2 * np.log(pivots)
    return np.isfinite(total), total


@bare
def _gain(dynamics: Dynamics, row: int, filtered: Array, work: Array, lines: Array) -> bool:
    """Write N to work[4], C to work[5] and G to work[6], of a state given that of the next `row`.

    lines[0] is the filtered mean, lines[1] its prediction of the next state.
    """
    size = lines.shape[1]
    root, product, inner = work[0], work[2], work[3]
    kind, step = dynamics.kind[row], dynamics.step[row]
    inverse = 1 / step
    for i in range(size):
        lines[0, i] = filtered[i]
        for j in range(size):
            root[i, j] = work[4, i, j] = filtered[size + i * size + j]
    _step_mean(dynamics, row, lines[0], lines[1], size)
    multiply(root, dynamics.gram[kind], product, size)
    multiply_transposed(product, root, inner, size)
    for i in range(size):
        for j in range(size):
            inner[i, j] *= inverse
        inner[i, i] += 1.0
    if not factorise(inner):
        return False
    solve_lower(inner, work[4], size)
    for i in range(size):
        for j in range(size):
            work[5, i, j] = 0.0
    add_gram(work[4], work[5], size)
    mirror(work[5], size)
    multiply(work[5], dynamics.back[kind], work[6], size)
    for i in range(size):
        for j in range(size):
            work[6, i, j] *= inverse
    return True


@bare
def _finish(cov: Array, mean: Array, out: Array, size: int) -> bool:
    """Write mean and E[x x'] of a row; return whether they are finite."""
    total = 0.0
    for i in range(size):
        out[i] = mean[i]
        for j in range(size):
            value = cov[i, j] + mean[i] * mean[j]
            out[size + i * size + j] = value
            total += value
    return bool(np.isfinite(total))


@bare
def _smooth_sequence(
    rows: Sequences,
    dynamics: Dynamics,
    sequence: int,
    work: Array,
    lines: Array,
    moments: Array,
    cross: Array,
) -> bool:
    """Replace filtered means and M by moments, the last row first."""
    size = lines.shape[1]
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
            if not _gain(dynamics, coming, moments[row], work, lines):
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
        if not _finish(after, lines[2], moments[row], size):
            return False
    cross[rows.order[begin]] = 0.0
    return True


@shared
def _smooth_claimed(
    taken: Ints,
    rows: Sequences,
    dynamics: Dynamics,
    evidence: Array,
    moments: Array,
    cross: Array,
    log_det: Array,
    sound: Bools,
) -> None:
    """Smooth the sequences that this thread claims."""
    size = dynamics.mean.shape[1]
    work, lines = np.empty((SCRATCH, size, size)), np.empty((3, size))
    first = claim(taken, SHARE)
    while first < len(rows.begin):
        for s in range(first, min(first + SHARE, len(rows.begin))):
            proper, log_det[s] = _filter(rows, dynamics, evidence, s, work, lines, moments, -1)
            sound[s] = proper and _smooth_sequence(rows, dynamics, s, work, lines, moments, cross)
        first = claim(taken, SHARE)


@shared
def _predict_claimed(
    taken: Ints,
    rows: Sequences,
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
                _begin(dynamics, s, row, position == rows.begin[s], work, lines)
                mirror(work[1], size)
                for i in range(size):
                    mean[row, i] = lines[1, i]
                    for j in range(size):
                        cov[row, i, j] = work[1, i, j]
                if not _see(evidence[row], work, lines):
                    sound[s] = False
                    break
        first = claim(taken, SHARE)


@shared
def _draw_claimed(
    taken: Ints,
    rows: Sequences,
    dynamics: Dynamics,
    evidence: Array,
    noise: Array,
    sound: Bools,
) -> None:
    """Draw the sequences that this thread claims, the last row first."""
    size = dynamics.mean.shape[1]
    work, lines = np.empty((SCRATCH, size, size)), np.empty((3, size))
    first = claim(taken, SHARE)
    while first < len(rows.begin):
        for s in range(first, min(first + SHARE, len(rows.begin))):
            begin, end = rows.begin[s], rows.end[s]
            filtered = np.empty((end - begin, size + size * size))
            sound[s], _ = _filter(rows, dynamics, evidence, s, work, lines, filtered, begin)
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
                    sound[s] = _gain(dynamics, coming, filtered[position - begin], work, lines)
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
