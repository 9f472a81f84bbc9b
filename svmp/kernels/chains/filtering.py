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

The precision matrix of a sequence has the determinant prod |R|^2 / (|P_1| prod |s Q|), with R of
the steps forward; it gives the entropy.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.chains.blocks import add_gram, mirror, multiply, multiply_transposed, solve_lower
from svmp.kernels.chains.dynamics import Dynamics, OrderedRows
from svmp.kernels.machine.cholesky import factorise
from svmp.kernels.machine.compiling import bare

WIDE = 16
"""Size from which the product of all pivots might overflow, and logarithms are added."""
FAR = 1e7
"""Filtered means, in units of what the next state leaves possible, that are not subtracted."""


@bare
def step_mean(dynamics: Dynamics, row: int, mean: Array, out: Array, size: int) -> None:
    """Write A mean + c."""
    matrix = dynamics.matrix[dynamics.kind[row]]
    for i in range(size):
        out[i] = dynamics.offset[row, i] if len(dynamics.offset) else 0.0
    for k in range(size):
        value = mean[k]
        for i in range(size):
            out[i] += value * matrix[k, i]


@bare
def begin_step(
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
        step_mean(dynamics, row, lines[0], lines[1], size)


@bare
def gather_evidence(
    rows: OrderedRows,
    dynamics: Dynamics,
    evidence: Array,
    sequence: int,
    position: int,
    work: Array,
) -> None:
    """Write O of a row to work[7]: that of its evidence, and what the next transition adds."""
    line, seen, size = evidence[rows.order[position]], work[7], work.shape[1]
    for i in range(size):
        for j in range(size):
            seen[i, j] = -(line[size + i * size + j] + line[size + j * size + i])
    if len(dynamics.spread) and position + 1 < rows.live[sequence]:
        row = rows.order[position + 1]
        spread, inverse = dynamics.spread[dynamics.kind[row]], 1 / dynamics.step[row]
        for i in range(size):
            for j in range(size):
                seen[i, j] += inverse * spread[i, j]


@bare
def add_evidence(evidence: Array, work: Array, lines: Array) -> bool:
    """Add the evidence of a row: from P and its mean to M and its mean.

    O is in work[7]; R is written to work[3].
    """
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
            value = work[7, i, k]
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
    if _is_far(lines[1], root, size):  # mu = L (R R')^-1 L^-1 mu + M' M b, without differences
        for i in range(size):
            value = lines[1, i]
            for k in range(i):
                value -= cov[i, k] * lines[0, k]
            lines[0, i] = value / cov[i, i]
        _solve_both(inner, lines[0], size)
        for i in range(size - 1, -1, -1):
            value = 0.0
            for k in range(i + 1):
                value += cov[i, k] * lines[0, k]
            lines[0, i] = value
            lines[2, i] = evidence[i]
    for k in range(size):
        value = 0.0
        for j in range(size):
            value += root[k, j] * lines[2, j]
        for j in range(size):
            lines[0, j] += value * root[k, j]
    return True


@bare
def _is_far(mean: Array, root: Array, size: int) -> bool:
    """Return whether a mean is so large beside the covariance root' root that differences fail."""
    largest, spread = 0.0, 0.0
    for i in range(size):
        largest = max(largest, abs(mean[i]))
        for j in range(size):
            spread += root[i, j] * root[i, j]
    return bool(largest > FAR * np.sqrt(spread))


@bare
def log_det_of(root: Array, size: int) -> float:
    """Return the log-determinant of the matrix with this Cholesky root."""
    total, product = 0.0, 1.0
    for i in range(size):
        product *= root[i, i]
        if i % WIDE == WIDE - 1:
            total += np.log(product)
            product = 1.0
    return 2 * (total + np.log(product))


@bare
def filter_sequence(
    rows: OrderedRows,
    dynamics: Dynamics,
    evidence: Array,
    sequence: int,
    work: Array,
    lines: Array,
    out: Array,
    log_det: Array,
) -> bool:
    """Write the filtered mean and M of every row; return whether they are sound.

    If `log_det` has a line for each row, so has `out`; otherwise `out` has one for each step.
    """
    size = lines.shape[1]
    begin, end = rows.begin[sequence], rows.end[sequence]
    for position in range(begin, end):
        row = rows.order[position]
        place = row if len(log_det) else position - begin
        begin_step(dynamics, sequence, row, position == begin, work, lines)
        gather_evidence(rows, dynamics, evidence, sequence, position, work)
        if not add_evidence(evidence[row], work, lines):
            return False
        if len(log_det):
            if position > begin:
                log_noise = dynamics.log_det[1][dynamics.kind[row]]
                log_noise += (size if len(dynamics.back) else 1) * np.log(dynamics.step[row])
            else:
                log_noise = dynamics.log_det[0][dynamics.start[sequence]]
            log_det[row] = log_det_of(work[3], size) - log_noise
            if not np.isfinite(log_det[row]):
                return False
        for i in range(size):
            out[place, i] = lines[0, i]
            for j in range(size):
                out[place, size + i * size + j] = work[0, i, j]
    return True


@bare
def gain_of(dynamics: Dynamics, row: int, filtered: Array, work: Array, lines: Array) -> bool:
    """Write N to work[4], C to work[5] and G to work[6], of a state given that of the next `row`.

    E[x_t | x_(t+1)] = lines[0] + G (x_(t+1) - lines[1]): these are the filtered mean and its
    prediction of the next state, or (I - G A) mu and c, which are `safer`.
    """
    size = lines.shape[1]
    root, product, inner = work[0], work[2], work[3]
    kind, step = dynamics.kind[row], dynamics.step[row]
    inverse = 1 / step
    for i in range(size):
        lines[0, i] = filtered[i]
        for j in range(size):
            root[i, j] = work[4, i, j] = filtered[size + i * size + j]
    step_mean(dynamics, row, lines[0], lines[1], size)
    if not len(dynamics.back):
        return _lag_gain(dynamics, row, work, size)
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
    _safer_means(dynamics, row, work, lines)
    return True


@bare
def _lag_gain(dynamics: Dynamics, row: int, work: Array, size: int) -> bool:
    """Write N, C and G of a state of lags: `lag_gain` of network/chains/transition.py."""
    root, cov, gain, last = work[3], work[5], work[6], size - 1
    matrix = dynamics.matrix[dynamics.kind[row]]
    noise = dynamics.step[row] * dynamics.noise[dynamics.kind[row], 0, 0]
    for i in range(size):
        for j in range(size):
            root[i, j] = cov[i, j] = gain[i, j] = 0.0
    add_gram(work[0], root, size)
    if not factorise(root):
        return False
    v, r = root[last, last] * root[last, last], matrix[last, 0]
    total = noise + r * r * v
    gain[last, 0] = v * r / total
    for j in range(last - 1, -1, -1):  # w L_a = L_e, backwards
        value = root[last, j]
        for k in range(j + 1, last):
            value -= work[2, 0, k] * root[k, j]
        work[2, 0, j] = value / root[j, j]
    for j in range(last):
        gain[j, j + 1] = 1.0
        gain[last, j + 1] = noise / total * work[2, 0, j] - gain[last, 0] * matrix[j, 0]
    for i in range(size):
        for j in range(size):
            work[4, i, j] = 0.0
    cov[last, last] = v * noise / total
    work[4, last, last] = np.sqrt(cov[last, last])
    return True


@bare
def _safer_means(dynamics: Dynamics, row: int, work: Array, lines: Array) -> None:
    """Replace the means of `gain_of` where their difference would lose all digits.

    Where states explode, the filtered mean mu is far larger than anything that the next state
    leaves possible, and mu - G A mu cancels. It is computed as M' (R R')^-1 M'^-1 mu instead.
    """
    size = lines.shape[1]
    if not _is_far(lines[0], work[4], size):
        return
    root, inner, matrix = work[0], work[3], work[2]
    for i in range(size):  # M is R^-1 L', which is no triangle: M M' zeta = M mu
        for j in range(size):
            matrix[i, j] = 0.0
        for k in range(size):
            for j in range(i + 1):
                matrix[i, j] += root[i, k] * root[j, k]
    if not factorise(matrix):
        return
    vector = lines[1]
    for i in range(size):
        vector[i] = 0.0
        for k in range(size):
            vector[i] += root[i, k] * lines[0, k]
    _solve_both(matrix, vector, size)
    _solve_both(inner, vector, size)
    for i in range(size):
        value = 0.0
        for k in range(size):
            value += root[k, i] * vector[k]
        lines[0, i] = value
    for i in range(size):
        vector[i] = dynamics.offset[row, i] if len(dynamics.offset) else 0.0


@bare
def _solve_both(root: Array, vector: Array, size: int) -> None:
    """Replace a vector by (root root')^-1 times it."""
    for i in range(size):
        for k in range(i):
            vector[i] -= root[i, k] * vector[k]
        vector[i] /= root[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            vector[i] -= root[k, i] * vector[k]
        vector[i] /= root[i, i]
