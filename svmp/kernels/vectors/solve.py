"""Updates in two halves: messages of rows, which add over disjoint parts, and their solution.

The sums of a key are the summed messages of its rows to (x, x x^T), K + K^2 numbers in double
precision. Rows may be split in any way: the sums of the parts are added, and `solve_keys` then does
what `update` does with all rows, up to rounding.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array, Bools
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.machine.threads import share
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


def sums_of_keys(to: Receiver, rows: LoopRows, mean: Mean) -> Array:
    """Return the summed messages of the rows of each key, with the noise precision in them."""
    out = np.empty((len(to.keys), to.width + to.width**2))
    share(write_sums, to, rows, mean, out)
    for m in np.flatnonzero(rows.end - rows.begin > LONG):
        sums = sums_of_long(to, int(m), rows, mean)
        write_message(sums, to.width, int(mean.width[to.term]), out[m])
    return out


def solve_keys(to: Receiver, messages: Array, natural: Array, moments: Array) -> Bools:
    """Update each key from its messages, in place; return which are proper MvNormals."""
    sound = np.ones(len(to.keys), dtype=bool)
    share(solve_claimed, to, messages, natural, moments, sound)
    return sound


@bare
def write_message(sums: Array, width: int, padded: int, out: Array) -> None:
    """Write the message (linear, -square / 2) of a key's sums."""
    place = 2 * padded
    for k in range(width):
        out[k] = sums[k]
        out[width + k * width + k] = -0.5 * sums[padded + k]
        for j in range(k + 1, width):
            out[width + k * width + j] = out[width + j * width + k] = -0.5 * sums[place]
            place += 1


@bare
def read_message(message: Array, width: int, sums: Array) -> None:
    """Write the sums of a message, without padding."""
    place = 2 * width
    for k in range(width):
        sums[k] = message[k]
        sums[width + k] = -2 * message[width + k * width + k]
        for j in range(k + 1, width):
            sums[place] = -2 * message[width + k * width + j]
            place += 1


@shared
def write_sums(taken: Ints, to: Receiver, rows: LoopRows, mean: Mean, out: Array) -> None:
    """Write the messages of all keys but long ones."""
    scratch, padded = scratch_for(mean, to), mean.width[to.term]
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            begin, end = rows.begin[m], rows.end[m]
            if end - begin <= LONG:
                add_rows(mean, rows, to, m, begin, end, scratch, scratch.sums)
                write_message(scratch.sums, to.width, padded, out[m])
        first = claim(taken, CHUNK)


@shared
def solve_claimed(
    taken: Ints, to: Receiver, messages: Array, natural: Array, moments: Array, sound: Bools
) -> None:
    """Update the keys that this thread claims from their messages."""
    width, system = to.width, system_for(to.width)
    sums = np.empty(2 * width + width * (width - 1) // 2)
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            read_message(messages[m], width, sums)
            if not update_from_sums(to, m, width, sums, system, natural, moments):
                sound[m] = False
        first = claim(taken, CHUNK)
