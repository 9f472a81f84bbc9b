"""Three sums over the rows of a key, which determine the update of its K elements.

With slopes a and weights w they are

    gram = sum w a a^T,  linear = sum w a (y - rest),  square = sum w E[a^2].

The sums of TILE rows are made in the precision of the data, and added in double precision. Weights
that are common to all rows of a key are left out here, and multiplied in by the update.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import bare
from svmp.kernels.machine.simd import EIGHT, accumulate8, broadcast8, fma8, load8
from svmp.kernels.multilinear.slopes import Scratch, gather, gather_targets
from svmp.kernels.multilinear.terms import (
    TILE,
    LoopRows,
    Mean,
    coefficient,
    is_alone,
    weights_differ,
)


@bare
def add_outer(lines: Array, count: int, gram: Array) -> None:
    """Add a a^T of some lines: its 8 x 8 blocks on and below the diagonal.

    The eight sums of a block stay in registers over all lines.
    """
    size, one = np.uintp(len(gram)), np.uintp(1)
    for k in range(np.uintp(0), size, np.uintp(EIGHT)):
        for j in range(np.uintp(0), k + one, np.uintp(EIGHT)):
            s = t = u = v = w = x = y = z = broadcast8(lines.dtype.type(0))
            for i in range(np.uintp(count)):
                at, right = i * size + k, load8(lines, i * size + j)
                s = fma8(broadcast8(lines[at]), right, s)
                t = fma8(broadcast8(lines[at + np.uintp(1)]), right, t)
                u = fma8(broadcast8(lines[at + np.uintp(2)]), right, u)
                v = fma8(broadcast8(lines[at + np.uintp(3)]), right, v)
                w = fma8(broadcast8(lines[at + np.uintp(4)]), right, w)
                x = fma8(broadcast8(lines[at + np.uintp(5)]), right, x)
                y = fma8(broadcast8(lines[at + np.uintp(6)]), right, y)
                z = fma8(broadcast8(lines[at + np.uintp(7)]), right, z)
            for r, found in enumerate((s, t, u, v, w, x, y, z)):
                accumulate8(gram[k + np.uintp(r)], j, found)


@bare
def add_linear(lines: Array, count: int, target: Array, linear: Array) -> None:
    """Add the sum of some lines, each multiplied by its target."""
    size = np.uintp(len(linear))
    for k in range(np.uintp(0), size, np.uintp(EIGHT)):
        found = broadcast8(lines.dtype.type(0))
        for i in range(np.uintp(count)):
            found = fma8(broadcast8(target[i]), load8(lines, i * size + k), found)
        accumulate8(linear, k, found)


@bare
def sum_alone(
    mean: Mean,
    rows: LoopRows,
    term: int,
    own: int,
    first: int,
    last: int,
    sums: Array,
    scratch: Scratch,
) -> None:
    """Write the sums of some rows where K = 1 and the slopes are coefficients."""
    weighted, linear, square = weights_differ(rows), 0.0, 0.0
    for start in range(first, last, TILE):
        count = min(TILE, last - start)
        gather_targets(mean, rows, term, own, start, count, scratch)
        for i in range(count):
            slope = coefficient(mean, rows, term, start + i)
            if weighted:
                slope *= scratch.seen[1, i]
            linear += slope * scratch.target[i]
            square += slope * slope
    padded = sums.shape[1]
    sums[0] = 0  # unused: a single element has no cross terms
    sums[2 * padded, 0], sums[2 * padded + 1, 0] = linear, square
    sums[2 * padded + 3, 0], sums[2 * padded + 4, 0] = 0, square


@bare
def add_sums(
    mean: Mean,
    rows: LoopRows,
    term: int,
    operand: int,
    own: int,
    first: int,
    last: int,
    sums: Array,
    scratch: Scratch,
) -> None:
    """Write the three sums of some rows of one key.

    `sums` has lines of K padded to a multiple of eight: that many lines for gram, as many for the
    linear system that is made of it, then one line each for linear, square, the solution, and the
    two parts of square, sum w Var[a] and sum w E[a]^2.
    """
    if is_alone(mean, term):
        sum_alone(mean, rows, term, own, first, last, sums, scratch)
        return
    padded = sums.shape[1]
    gram, linear, square = sums[:padded], sums[2 * padded], sums[2 * padded + 1]
    gram[:] = 0
    linear[:] = 0
    square[:] = 0
    for start in range(first, last, TILE):
        count = min(TILE, last - start)
        gather(mean, rows, term, operand, own, start, count, scratch, square)
        add_linear(scratch.lines, count, scratch.target, linear)
        add_outer(scratch.lines, count, gram)
    for k in range(padded):  # E[a^2] = E[a]^2 + Var[a]
        sums[2 * padded + 3, k], sums[2 * padded + 4, k] = square[k], gram[k, k]
        square[k] += gram[k, k]
