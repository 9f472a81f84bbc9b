"""Updates in two halves: sums over rows, which add over disjoint parts, and their solution.

The sums of a key are one line in double precision, with slopes a and weights w

    gram = sum w a a^T  (lower triangle, K (K + 1) / 2 numbers),
    linear = sum w a (y - rest)  (K numbers),  square = sum w E[a^2]  (K numbers).

Rows may be split in any way, on several machines for example: the sums of the parts are added, and
`solve_keys` then does what `update_whole` does with all rows, up to rounding. The rows of a logit
have the tangents at the q of which the sums are made.

E[log p] of the rows of a key is, up to what does not depend on its elements x,

    sum_k (linear_k E[x_k] - square_k E[x_k^2] / 2) - sum_(j < k) gram_kj E[x_j] E[x_k].
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array, Bools
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.machine.simd import EIGHT, broadcast8, fma8, load8, mul8, store8, sum8
from svmp.kernels.machine.threads import share
from svmp.kernels.multilinear.slopes import scratch_for, sums_for
from svmp.kernels.multilinear.sums import add_sums
from svmp.kernels.multilinear.table import plain
from svmp.kernels.multilinear.terms import LoopRows, Mean, Receiver, shared_weight
from svmp.kernels.multilinear.update import (
    LONG,
    are_normals,
    refresh_moments,
    sums_of_long,
    update_from_sums,
)
from svmp.network.grid import Ints

ONE = np.ones(1)


def line_size(width: int) -> int:
    """Return how many numbers the sums of a key with K = `width` have.

    >>> line_size(1), line_size(32)
    (3, 592)
    """
    return width * (width + 1) // 2 + 2 * width


def sums_of_keys(to: Receiver, rows: LoopRows, mean: Mean) -> Array:
    """Return the sums over the rows of each key, with the noise precision in them."""
    total = np.zeros((len(to.keys), line_size(to.width)))
    add_to_keys(to, rows, mean, np.arange(len(to.keys)), total)
    return total


def add_to_keys(to: Receiver, rows: LoopRows, mean: Mean, places: Ints, total: Array) -> None:
    """Add the sums over the rows of each key to its line of a total.

    No two keys have the same place. The sums of the rows are made first, so that the bits are those
    of an array of sums that is added to the total.
    """
    share(add_claimed, to, rows, mean, places, total)
    for m in np.flatnonzero(rows.end - rows.begin > LONG):
        line, weight = np.empty(total.shape[1] + EIGHT), shared_weight(rows, int(to.keys[m]))
        pack_sums(sums_of_long(to, int(m), rows, mean), weight, to.width, line)
        total[places[m]] += line[: total.shape[1]]


def solve_keys(to: Receiver, sums: Array, natural: Array, moments: Array) -> Bools:
    """Update each key from its sums, in place; return which are proper Normals.

    Moments are made from the natural parameters, before and, if `at_once`, after the update.
    """
    sound = np.ones(len(to.keys), dtype=bool)
    share(solve_claimed, to, sums, natural, moments, sound)
    return sound


def solve_sums(sums: Array, prior: Array, natural: Array, width: int, joint: bool) -> Array:
    """Return lambda_temp of all elements from the sums of all keys.

    Elements that are updated in turn start from the current natural parameters.
    """
    keys, found = np.arange(len(sums)), np.array(natural, dtype=np.float64, order="C")
    to = Receiver(0, 0, width, keys, ONE, ONE, plain(prior), True, joint)
    solve_keys(to, plain(sums), found, np.empty_like(found))
    return found


def gains_of_sums(sums: Array, before: Array, after: Array, width: int) -> Array:
    """Return by how much E[log p] of the rows of each key rises from some moments to others."""
    found = np.empty(len(sums))
    share(add_gains, plain(sums), plain(before), plain(after), width, found)
    return found


@bare
def pack_sums(sums: Array, weight: float, width: int, line: Array) -> None:
    """Write the sums of a key without padding, times a common weight.

    Eight numbers are written at a time, so that up to seven behind the end of a part are written
    too, before the next part is: the line has space for eight more.
    """
    padded, eight_on, many = (
        np.uintp(sums.shape[1]),
        np.uintp(EIGHT),
        broadcast8(np.float64(weight)),
    )
    end, at = np.uintp(width), np.uintp(0)
    for k in range(end):  # only the lower triangle is sure to have been written
        for j in range(np.uintp(0), k + np.uintp(1), eight_on):
            store8(line, at + j, mul8(many, load8(sums[k], j)))
        at += k + np.uintp(1)
    for part in (sums[np.uintp(2) * padded], sums[np.uintp(2) * padded + np.uintp(1)]):
        for j in range(np.uintp(0), end, eight_on):
            store8(line, at + j, mul8(many, load8(part, j)))
        at += end


@bare
def unpack_sums(line: Array, width: int, sums: Array) -> None:
    """Write the sums of a key in the layout of `sums.add_sums`."""
    padded, at = sums.shape[1], 0
    if width < padded:
        sums[:padded] = 0
    for k in range(width):
        block = k // EIGHT * EIGHT
        for j in range(k + 1):
            sums[k, j] = line[at + j]
        for j in range(block, k):  # `update.mirror` copies the other blocks
            sums[j, k] = line[at + j]
        at += k + 1
    for k in range(width):
        sums[2 * padded, k] = line[at + k]
        sums[2 * padded + 1, k] = line[at + width + k]


@shared
def add_claimed(
    taken: Ints, to: Receiver, rows: LoopRows, mean: Mean, places: Ints, total: Array
) -> None:
    """Add the sums of all keys but long ones; keys without rows are not touched."""
    scratch, size = scratch_for(mean, to.width, 0), total.shape[1]
    line = np.empty(size + EIGHT)
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            begin, end = rows.begin[m], rows.end[m]
            if 0 < end - begin <= LONG:
                part = (to.term, to.operand, to.keys[m], begin, end)
                add_sums(mean, rows, *part, scratch.sums, scratch)
                pack_sums(scratch.sums, shared_weight(rows, to.keys[m]), to.width, line)
                own = total[places[m]]
                for j in range(size):
                    own[j] += line[j]
        first = claim(taken, CHUNK)


@shared
def solve_claimed(
    taken: Ints, to: Receiver, lines: Array, natural: Array, moments: Array, sound: Bools
) -> None:
    """Update the keys that this thread claims from their sums."""
    sums = sums_for(to.width)
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            for at in range(to.keys[m] * to.width, (to.keys[m] + 1) * to.width):
                refresh_moments(natural, moments, at)
            unpack_sums(lines[m], to.width, sums)
            update_from_sums(to, m, 1.0, sums, natural, moments)
            if not are_normals(natural, to.keys[m] * to.width, to.width):
                sound[m] = False
        first = claim(taken, CHUNK)


@bare
def gain_of_line(
    line: Array, before: Array, after: Array, first: int, width: int, new: Array, step: Array
) -> float:
    """Return the gain of a key, with its sums in an array that has space for eight more.

    It is computed from the changes d of means m, which may be small: no two large numbers are
    subtracted in m'_k m'_j - m_k m_j = d_k m'_j + m_k d_j. `new` and `step` have the m'_j and d_j
    of elements before k, and zeros behind them.
    """
    end, eight_on, start = np.uintp(width), np.uintp(EIGHT), np.uintp(0)
    linear = np.uintp(width * (width + 1) // 2)
    gain = 0.0
    new[:] = 0
    step[:] = 0
    for k in range(end):
        others = moved = broadcast8(0.0)
        for j in range(np.uintp(0), k, eight_on):
            found = load8(line, start + j)
            others = fma8(found, load8(new, j), others)
            moved = fma8(found, load8(step, j), moved)
        at = np.uintp(first) + k
        old, now = before[at, 0], after[at, 0]
        new[k], step[k] = now, now - old
        spread = (after[at, 1] - now * now) - (before[at, 1] - old * old)
        gain += step[k] * (line[linear + k] - sum8(others)) - old * sum8(moved)
        gain -= 0.5 * line[linear + end + k] * (step[k] * (now + old) + spread)
        start += k + np.uintp(1)
    return gain


@shared
def add_gains(
    taken: Ints, lines: Array, before: Array, after: Array, width: int, out: Array
) -> None:
    """Write the gain of the keys that this thread claims."""
    size = lines.shape[1]
    line, new, step = np.zeros(size + EIGHT), np.zeros(width + EIGHT), np.zeros(width + EIGHT)
    first = claim(taken, CHUNK)
    while first < len(lines):
        for m in range(first, min(first + CHUNK, len(lines))):
            for j in range(size):
                line[j] = lines[m, j]
            out[m] = gain_of_line(line, before, after, m * width, width, new, step)
        first = claim(taken, CHUNK)
