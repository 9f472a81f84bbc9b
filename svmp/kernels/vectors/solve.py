"""Updates in two halves: sums over rows, which add over disjoint parts, and their solution.

The sums of a key are one line in double precision, with slopes a and weights w: sum w E[a] (y -
E[rest]), then the diagonal and then the upper triangle of sum w E[a a^T], K + K (K + 1) / 2 numbers
in all. Rows may be split in any way: the sums of the parts are added, and `solve_keys` then does
what `update` does with all rows, up to rounding.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array, Bools
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.machine.threads import share
from svmp.kernels.multilinear.table import plain
from svmp.kernels.multilinear.terms import LoopRows, Mean, Receiver
from svmp.kernels.vectors.update import (
    LONG,
    add_rows,
    scratch_for,
    sums_of_long,
    system_for,
    update_from_sums,
)
from svmp.network.grid import Ints

ONE = np.ones(1)


def line_size(width: int) -> int:
    """Return how many numbers the sums of a key with K = `width` have.

    >>> line_size(1), line_size(32)
    (2, 560)
    """
    return width + width * (width + 1) // 2


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
        sums = sums_of_long(to, int(m), rows, mean)
        add_line(sums, to.width, int(mean.width[to.term]), total[places[m]])


def solve_keys(to: Receiver, sums: Array, natural: Array, moments: Array) -> Bools:
    """Update each key from its sums, in place; return which are proper MvNormals."""
    sound = np.ones(len(to.keys), dtype=bool)
    share(solve_claimed, to, sums, natural, moments, sound)
    return sound


def solve_sums(sums: Array, prior: Array, natural: Array, width: int) -> Array:
    """Return lambda_temp of all elements from their sums."""
    found = np.array(natural, dtype=np.float64, order="C")
    to = Receiver(0, 0, width, np.arange(len(sums)), ONE, ONE, plain(prior), False, True)
    solve_keys(to, plain(sums), found, np.zeros((0, 0)))  # moments are left as they are
    return found


@bare
def add_line(sums: Array, width: int, padded: int, line: Array) -> None:
    """Add the sums of a key, without padding, to its line of a total."""
    for k in range(width):
        line[k] += sums[k]
    for k in range(width):
        line[width + k] += sums[padded + k]
    for j in range(width * (width - 1) // 2):
        line[2 * width + j] += sums[2 * padded + j]


@shared
def add_claimed(
    taken: Ints, to: Receiver, rows: LoopRows, mean: Mean, places: Ints, total: Array
) -> None:
    """Add the sums of all keys but long ones; keys without rows are not touched."""
    scratch, padded = scratch_for(mean, to), mean.width[to.term]
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            begin, end = rows.begin[m], rows.end[m]
            if 0 < end - begin <= LONG:
                add_rows(mean, rows, to, m, begin, end, scratch, scratch.sums)
                add_line(scratch.sums, to.width, padded, total[places[m]])
        first = claim(taken, CHUNK)


@shared
def solve_claimed(
    taken: Ints, to: Receiver, lines: Array, natural: Array, moments: Array, sound: Bools
) -> None:
    """Update the keys that this thread claims from their sums."""
    width, system = to.width, system_for(to.width)
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            if not update_from_sums(to, m, width, lines[m], system, natural, moments):
                sound[m] = False
        first = claim(taken, CHUNK)
