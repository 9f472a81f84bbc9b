"""Moments of pairs of rows of Gaussian chains, summed by group, for network/chains/transition.py.

A line has the sums of E[x x'] / s, E[x r'] / s and E[r r'] / s with r = (x_(t-1), u_t), the number
of rows and the sum of log s. Rows are taken in blocks of a fixed size, whose sums are added in
their order, so that the bits are the same for any number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.compiling import bare, claim, shared
from svmp.kernels.machine.threads import share, threads_for
from svmp.network.chains.transition import line_size
from svmp.network.grid import Ints
from svmp.network.means.row_sums import sum_by_owner

BLOCK = 2048
"""Rows of a block."""


class PairRows(NamedTuple):
    """The rows that follow another, by group.

    Attributes
    ----------
    rows, previous
        The rows, and the row before each.
    begin, end, group
        Where each block of rows begins and ends, and its group.
    inputs, step
        u and s of each row of the table.
    """

    rows: Ints
    previous: Ints
    begin: Ints
    end: Ints
    group: Ints
    inputs: Array
    step: Array

    @classmethod
    def of(cls, rows: Ints, groups: Ints, previous: Ints, inputs: Array, step: Array) -> PairRows:
        """Return rows in blocks; their groups are ascending."""
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        ends = np.append(starts[1:], len(rows))[: len(starts)]  # none where no row follows another
        begin = np.concatenate(
            [np.zeros(0, dtype=np.int64), *map(np.arange, starts, ends, [BLOCK] * len(starts))]
        )
        last = np.repeat(ends, -(-(ends - starts) // BLOCK))
        end = np.minimum(begin + BLOCK, last)
        return cls(rows, previous[rows], begin, end, groups[begin], inputs, step)


def pair_sums(pairs: PairRows, groups: int, moments: Array, cross: Array, moving: int) -> Array:
    """Return the sums of each group, a line each, of the first entries of x that move."""
    size, inputs = cross.shape[-1], pairs.inputs.shape[1]
    lines = np.zeros((len(pairs.begin), line_size(moving, size + inputs)))
    with threads_for(len(pairs.rows) * size):
        share(_add_claimed, pairs, moments, cross, lines, moving)
    return sum_by_owner(lines, pairs.group, groups)


@bare
def _add_row(
    now: Array, before: Array, cross: Array, inputs: Array, step: float, line: Array, moving: int
) -> None:
    """Add one row to a line."""
    size, count, factor = cross.shape[0], len(inputs), 1 / step
    width = size + count
    for i in range(moving):
        for j in range(moving):
            line[i * moving + j] += factor * now[size + i * size + j]
    for i in range(moving):
        place, value = moving * moving + i * width, factor * now[i]
        for j in range(size):
            line[place + j] += factor * cross[i, j] + value * before[j]
        for j in range(count):
            line[place + size + j] += value * inputs[j]
    first = moving * moving + moving * width
    for i in range(size):
        place = first + i * width
        for j in range(size):
            line[place + j] += factor * before[size + i * size + j]
        for j in range(count):
            line[place + size + j] += factor * before[i] * inputs[j]
    for i in range(count):
        place, value = first + (size + i) * width, factor * inputs[i]
        for j in range(size):
            line[place + j] += value * before[j]
        for j in range(count):
            line[place + size + j] += value * inputs[j]
    line[first + width * width] += 1.0
    if step != 1.0:
        line[first + width * width + 1] += np.log(step)


@shared
def _add_claimed(
    taken: Ints, pairs: PairRows, moments: Array, cross: Array, lines: Array, moving: int
) -> None:
    """Add up the blocks that this thread claims."""
    block = claim(taken, 1)
    while block < len(lines):
        for place in range(pairs.begin[block], pairs.end[block]):
            row = pairs.rows[place]
            before = moments[pairs.previous[place]]
            step, inputs = pairs.step[row], pairs.inputs[row]
            _add_row(moments[row], before, cross[row], inputs, step, lines[block], moving)
        block = claim(taken, 1)
