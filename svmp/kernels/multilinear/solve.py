"""Updates in two halves: sums over rows, which add over disjoint parts, and their solution.

The sums of a key are a (K + 2, K) array in double precision, with slopes a and weights w

    gram = sum w a a^T  (K lines),  linear = sum w a (y - rest),  square = sum w E[a^2].

Rows may be split in any way, on several machines for example: the sums of the parts are added, and
`solve_keys` then does what `update_whole` does with all rows and `joint`, up to rounding.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array, Bools
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.machine.threads import share
from svmp.kernels.multilinear.slopes import scratch_for, sums_for
from svmp.kernels.multilinear.sums import add_sums
from svmp.kernels.multilinear.terms import LoopRows, Mean, Receiver, shared_weight
from svmp.kernels.multilinear.update import LONG, are_normals, sums_of_long, update_from_sums
from svmp.network.grid import Ints


def sums_of_keys(to: Receiver, rows: LoopRows, mean: Mean) -> Array:
    """Return the sums over the rows of each key, with the noise precision in them."""
    out = np.empty((len(to.keys), to.width + 2, to.width))
    share(write_sums, to, rows, mean, out)
    for m in np.flatnonzero(rows.end - rows.begin > LONG):
        weight = shared_weight(rows, int(to.keys[m]))
        pack_sums(sums_of_long(to, int(m), rows, mean), weight, out[m])
    return out


def solve_keys(to: Receiver, sums: Array, natural: Array, moments: Array) -> Bools:
    """Update each key from its sums, in place; return which are proper Normals."""
    sound = np.ones(len(to.keys), dtype=bool)
    share(solve_claimed, to, sums, natural, moments, sound)
    return sound


@bare
def pack_sums(sums: Array, weight: float, out: Array) -> None:
    """Write the sums of a key without padding, times a common weight."""
    padded, width = sums.shape[1], out.shape[1]
    for k in range(width):
        for j in range(k + 1):  # only the lower triangle is sure to have been written
            out[k, j] = out[j, k] = weight * sums[k, j]
        out[width, k] = weight * sums[2 * padded, k]
        out[width + 1, k] = weight * sums[2 * padded + 1, k]


@bare
def unpack_sums(packed: Array, sums: Array) -> None:
    """Write the sums of a key in the layout of `sums.add_sums`."""
    padded, width = sums.shape[1], packed.shape[1]
    sums[:] = 0
    for k in range(width):
        for j in range(width):
            sums[k, j] = packed[k, j]
        sums[2 * padded, k] = packed[width, k]
        sums[2 * padded + 1, k] = packed[width + 1, k]


@shared
def write_sums(taken: Ints, to: Receiver, rows: LoopRows, mean: Mean, out: Array) -> None:
    """Write the sums of all keys but long ones."""
    scratch = scratch_for(mean, to.width, 0)
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            begin, end = rows.begin[m], rows.end[m]
            if end - begin <= LONG:
                part = (to.term, to.operand, to.keys[m], begin, end)
                add_sums(mean, rows, *part, scratch.sums, scratch)
                pack_sums(scratch.sums, shared_weight(rows, to.keys[m]), out[m])
        first = claim(taken, CHUNK)


@shared
def solve_claimed(
    taken: Ints, to: Receiver, packed: Array, natural: Array, moments: Array, sound: Bools
) -> None:
    """Update the keys that this thread claims from their sums."""
    sums = sums_for(to.width)
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            unpack_sums(packed[m], sums)
            update_from_sums(to, m, 1.0, sums, natural, moments)
            if not are_normals(natural, to.keys[m] * to.width, to.width):
                sound[m] = False
        first = claim(taken, CHUNK)
