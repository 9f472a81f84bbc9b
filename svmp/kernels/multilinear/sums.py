"""Three sums over the rows of a key, from which its K elements follow.

With slopes a and weights w they are

    gram = sum w a a^T,  linear = sum w a (y - rest),  square = sum w E[a^2].

Those of TILE rows are made in the precision of the data, and added up in double.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import bare, jit
from svmp.kernels.machine.simd import EIGHT, add_to, eight, fill, times_plus
from svmp.kernels.multilinear.slopes import Room, gather, gather_targets, in_eights
from svmp.kernels.multilinear.terms import TILE, Mean, Rows, coefficient, differ, is_alone


@jit
def sums_for(width: int) -> Array:
    """Return room for the three sums, the system that is made of them, and its solution."""
    padded = in_eights(width)
    return np.empty((2 * padded + 3, padded))


@bare
def add_outer(lines: Array, count: int, gram: Array) -> None:
    """Add a a^T of some lines, eight by eight factors at a time, up to the diagonal."""
    size, one = np.uintp(len(gram)), np.uintp(1)
    for k in range(np.uintp(0), size, np.uintp(EIGHT)):
        for j in range(np.uintp(0), k + one, np.uintp(EIGHT)):
            s = t = u = v = w = x = y = z = fill(lines.dtype.type(0))
            for i in range(np.uintp(count)):
                at, right = i * size + k, eight(lines, i * size + j)
                s = times_plus(fill(lines[at]), right, s)
                t = times_plus(fill(lines[at + np.uintp(1)]), right, t)
                u = times_plus(fill(lines[at + np.uintp(2)]), right, u)
                v = times_plus(fill(lines[at + np.uintp(3)]), right, v)
                w = times_plus(fill(lines[at + np.uintp(4)]), right, w)
                x = times_plus(fill(lines[at + np.uintp(5)]), right, x)
                y = times_plus(fill(lines[at + np.uintp(6)]), right, y)
                z = times_plus(fill(lines[at + np.uintp(7)]), right, z)
            for r, found in enumerate((s, t, u, v, w, x, y, z)):
                add_to(gram[k + np.uintp(r)], j, found)


@bare
def add_linear(lines: Array, count: int, target: Array, linear: Array) -> None:
    """Add the sum of some lines, each times its target."""
    size = np.uintp(len(linear))
    for k in range(np.uintp(0), size, np.uintp(EIGHT)):
        found = fill(lines.dtype.type(0))
        for i in range(np.uintp(count)):
            found = times_plus(fill(target[i]), eight(lines, i * size + k), found)
        add_to(linear, k, found)


@bare
def sum_alone(
    mean: Mean, rows: Rows, term: int, own: int, first: int, last: int, sums: Array, room: Room
) -> None:
    """Make the sums of some rows for an element that stands alone, whose slopes are numbers."""
    weighted, linear, square = differ(rows), 0.0, 0.0
    for start in range(first, last, TILE):
        count = min(TILE, last - start)
        gather_targets(mean, rows, term, own, start, count, room)
        for i in range(count):
            slope = coefficient(mean, rows, term, start + i)
            if weighted:
                slope *= room.seen[1, i]
            linear += slope * room.target[i]
            square += slope * slope
    padded = sums.shape[1]
    sums[0] = 0  # it has no others beside it
    sums[2 * padded, 0], sums[2 * padded + 1, 0] = linear, square


@bare
def add_sums(
    mean: Mean,
    rows: Rows,
    term: int,
    operand: int,
    own: int,
    first: int,
    last: int,
    sums: Array,
    room: Room,
) -> None:
    """Make the three sums of some rows of one key.

    `sums` has lines of K rounded up to eights: as many for the sum of a a^T, as many for the system
    that is made of it, and one each for the other two sums and the solution.
    """
    if is_alone(mean, term):
        sum_alone(mean, rows, term, own, first, last, sums, room)
        return
    padded = sums.shape[1]
    gram, linear, square = sums[:padded], sums[2 * padded], sums[2 * padded + 1]
    gram[:] = 0
    linear[:] = 0
    square[:] = 0
    for start in range(first, last, TILE):
        count = min(TILE, last - start)
        gather(mean, rows, term, operand, own, start, count, room, square)
        add_linear(room.lines, count, room.target, linear)
        add_outer(room.lines, count, gram)
