"""What the rows of one key say about it: mu_e = a_e . x + rest_e with K slopes a_e each.

Slopes stand in lines, one for each row, of K numbers rounded up to eights; what is over counts for
nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.kernels.machine.compiling import bare, jit
from svmp.kernels.machine.simd import EIGHT, add_to, eight, fill, put, times, times_plus
from svmp.kernels.multilinear.terms import (
    TILE,
    Mean,
    Rows,
    differ,
    moments_of,
    own_weight,
    partner_of,
    place,
    product,
    reader,
    rest,
    tangents,
)
from svmp.network.grid import Ints


class Room(NamedTuple):
    """Room of one thread.

    Attributes
    ----------
    lines, target
        The slopes of TILE rows, and their values without the other terms.
    places, seen, spare
        Where TILE rows read, their values and weights, and a product.
    own
        The means of the key, and zeros after them.
    square
        sum w E[a^2] over the rows.
    """

    lines: NDArray[Any]
    target: NDArray[Any]
    places: Ints
    seen: NDArray[Any]
    spare: NDArray[Any]
    own: NDArray[Any]
    square: Array


@bare
def in_eights(width: int) -> int:
    """Return K rounded up to eights."""
    return (width + EIGHT - 1) // EIGHT * EIGHT


@jit
def room_for(mean: Mean, width: int) -> Room:
    """Return room for the rows of keys with so many slopes."""
    dtype, padded = mean.packed.dtype, in_eights(width)
    return Room(
        np.zeros(TILE * padded, dtype),
        np.empty(TILE, dtype),
        np.empty(TILE, np.uintp),
        np.empty((2, TILE), dtype),
        np.empty(2 * mean.width.max(), dtype),
        np.zeros(padded, dtype),
        np.empty(padded),
    )


@bare
def copy_slopes(
    packed: Array, width: int, weighted: bool, count: int, room: Room, square: Array
) -> None:
    """Copy the slopes of rows from their places, and add up their second moments."""
    eight_on = np.uintp(EIGHT)
    for k in range(np.uintp(0), width, eight_on):
        added = fill(packed.dtype.type(0))
        for i in range(np.uintp(count)):
            at = room.places[i] + k
            slopes, squares = eight(packed, at), eight(packed, at + width)
            root = fill(room.seen[1, i] if weighted else packed.dtype.type(1))
            put(room.lines, i * width + k, times(root, slopes))
            added = times_plus(times(root, root), squares, added)
        add_to(square, k, added)


@bare
def gather_targets(
    mean: Mean, rows: Rows, term: int, own: int, first: int, count: int, room: Room
) -> None:
    """Read the values of at most TILE rows of a key, without what other terms say of them.

    Where rows differ in weight, they are multiplied by its root, which stands beside what was seen.
    """
    target, seen = room.target, room.seen
    if rows.logit:
        moments_of(mean, rows, term, own, first, count, seen, target, room.spare)
        tangents(rows, first, count, seen)
        for i in range(count):
            target[i] = seen[1, i] * (seen[0, i] - target[i])
        return
    rest(mean, rows, term, own, first, count, target, room.spare)
    for i in range(count):
        target[i] = rows.target[first + i] - target[i]
    if differ(rows):
        for i in range(count):
            seen[1, i] = np.sqrt(own_weight(rows, first + i))
            target[i] *= seen[1, i]


@bare
def gather(
    mean: Mean,
    rows: Rows,
    term: int,
    operand: int,
    own: int,
    first: int,
    count: int,
    room: Room,
    square: Array,
) -> None:
    """Read at most TILE rows of a key, slopes as well, and add to sum w E[a^2]."""
    width, padded = mean.width[term], in_eights(mean.width[term])
    weighted, partner = differ(rows), partner_of(mean, term, operand)
    seen, spare = room.seen, room.spare
    gather_targets(mean, rows, term, own, first, count, room)
    if partner >= 0 and width == padded:
        other = reader(mean, term, partner)
        for i in range(count):
            room.places[i] = place(other, rows, own, first + i)
        copy_slopes(mean.packed, np.uintp(width), weighted, count, room, square)
        return
    for i in range(count):
        product(mean, rows, term, operand, own, first + i, spare)
        root = seen[1, i] if weighted else 1
        for k in range(width):
            room.lines[i * padded + k] = root * spare[k]
            square[k] += root * root * spare[width + k]
