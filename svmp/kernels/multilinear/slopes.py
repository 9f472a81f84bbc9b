"""Rows as linear functions of the K elements of one key: mu_e = a_e . x + rest_e.

The slopes a_e of a tile of rows are gathered in lines, one per row, of K padded to a multiple of
eight. The padding is zero. Sums over the rows then read memory sequentially.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.kernels.machine.compiling import bare, jit
from svmp.kernels.machine.simd import EIGHT, accumulate8, broadcast8, fma8, load8, mul8, store8
from svmp.kernels.multilinear.terms import (
    TILE,
    LoopRows,
    Mean,
    layout_of,
    moments_of,
    own_weight,
    partner_of,
    place,
    product,
    rest,
    tangents,
    weights_differ,
    widest,
)
from svmp.network.grid import Ints


class Scratch(NamedTuple):
    """Scratch arrays of one thread.

    Attributes
    ----------
    lines, target
        Slopes of TILE rows, and their values minus the other terms.
    places, seen, spare
        Places in `Mean.packed` that TILE rows read, their values and weights, and one product.
    own
        The means of the key, padded with zeros.
    square
        sum w Var[a] over the rows.
    sums
        The sums of a key, in the layout of `sums.add_sums`.
    tile
        Residuals and slopes of all rows of a key, for updates from residuals.
    """

    lines: NDArray[Any]
    target: NDArray[Any]
    places: Ints
    seen: NDArray[Any]
    spare: NDArray[Any]
    own: NDArray[Any]
    square: Array
    sums: Array
    tile: NDArray[Any]


@bare
def padded_width(width: int) -> int:
    """Return K rounded up to a multiple of eight."""
    return (width + EIGHT - 1) // EIGHT * EIGHT


@jit
def sums_for(width: int) -> Array:
    """Return an array for the sums of a key, the linear system made of them, and its solution."""
    padded = padded_width(width)
    return np.empty((2 * padded + 5, padded))


@jit
def scratch_for(mean: Mean, width: int, tile: int) -> Scratch:
    """Return scratch arrays for keys with K = `width`, and a tile of `tile` numbers."""
    dtype, padded = mean.packed.dtype, padded_width(width)
    return Scratch(
        np.zeros(TILE * padded, dtype),
        np.empty(TILE, dtype),
        np.empty(TILE, np.uintp),
        np.empty((2, TILE), dtype),
        np.empty(2 * widest(mean), dtype),
        np.zeros(padded, dtype),
        np.empty(padded),
        sums_for(width),
        np.empty(tile, dtype),
    )


@bare
def copy_slopes(
    packed: Array, width: int, weighted: bool, count: int, scratch: Scratch, square: Array
) -> None:
    """Copy the slopes of rows from `Mean.packed`, and add up their variances."""
    eight_on = np.uintp(EIGHT)
    for k in range(np.uintp(0), width, eight_on):
        added = broadcast8(packed.dtype.type(0))
        for i in range(np.uintp(count)):
            at = scratch.places[i] + k
            slopes, variances = load8(packed, at), load8(packed, at + width)
            root = broadcast8(scratch.seen[1, i] if weighted else packed.dtype.type(1))
            store8(scratch.lines, i * width + k, mul8(root, slopes))
            added = fma8(mul8(root, root), variances, added)
        accumulate8(square, k, added)


@bare
def gather_targets(
    mean: Mean, rows: LoopRows, term: int, own: int, first: int, count: int, scratch: Scratch
) -> None:
    """Write the values of at most TILE rows of a key minus the other terms.

    Where weights differ between rows, the values are multiplied by the root of the weight, which is
    written to `seen[1]`.
    """
    target, seen = scratch.target, scratch.seen
    if rows.logit:
        moments_of(mean, rows, term, own, first, count, seen, target, scratch.spare)
        tangents(rows, first, count, seen)
        for i in range(count):
            target[i] = seen[1, i] * (seen[0, i] - target[i])
        return
    rest(mean, rows, term, own, first, count, target, scratch.spare)
    for i in range(count):
        target[i] = rows.target[first + i] - target[i]
    if weights_differ(rows):
        for i in range(count):
            seen[1, i] = np.sqrt(own_weight(rows, first + i))
            target[i] *= seen[1, i]


@bare
def gather(
    mean: Mean,
    rows: LoopRows,
    term: int,
    operand: int,
    own: int,
    first: int,
    count: int,
    scratch: Scratch,
    square: Array,
) -> None:
    """Write the values and slopes of at most TILE rows of a key, and add to sum w Var[a]."""
    width, padded = mean.width[term], padded_width(mean.width[term])
    weighted, partner = weights_differ(rows), partner_of(mean, term, operand)
    seen, spare = scratch.seen, scratch.spare
    gather_targets(mean, rows, term, own, first, count, scratch)
    if partner >= 0 and width == padded:
        other = layout_of(mean, term, partner)
        for i in range(count):
            scratch.places[i] = place(other, rows, own, first + i)
        copy_slopes(mean.packed, np.uintp(width), weighted, count, scratch, square)
        return
    for i in range(count):
        product(mean, rows, term, operand, own, first + i, spare)
        root = seen[1, i] if weighted else 1
        for k in range(width):
            scratch.lines[i * padded + k] = root * spare[k]
            square[k] += root * root * spare[width + k]
