"""Algorithm 1 in a loop: each element of each key reads its own rows, drawn anew.

Drawn rows are spread over memory, so that a loop that reads them one after the other waits for most
of them. Here the rows of many elements are drawn ahead and prefetched together. The plain version
is the engine with `DrawnChildren`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array, Bools
from svmp.kernels.machine.compiling import bare, claim, shared
from svmp.kernels.machine.simd import EIGHT, load8, mul8, prefetch, sum8
from svmp.kernels.machine.streams import sample, stream_key
from svmp.kernels.multilinear.slopes import Scratch, scratch_for
from svmp.kernels.multilinear.terms import (
    OWN,
    LoopRows,
    Mean,
    Receiver,
    dot,
    layout_of,
    moments_of,
    own_weight,
    partner_of,
    place,
    product,
    rest,
    shared_weight,
    tangent,
)
from svmp.kernels.multilinear.update import (
    LONG,
    are_normals,
    refresh_moments,
    tile_size,
    update_element,
    update_key,
)
from svmp.kernels.multilinear.work import Drawn
from svmp.network.grid import Ints

KEYS = 128
"""Keys that a thread claims at a time. All read about as many rows, so threads need not balance
their work, and with many keys at a time they rarely write to the same cache line."""
AHEAD = 128
"""Rows that are drawn and prefetched together."""


class Draws(NamedTuple):
    """The rows that elements draw, and scratch arrays for them.

    Attributes
    ----------
    stream
        Key of the random streams of all elements.
    most
        The largest number of rows that an element of each key draws.
    chosen
        Rows that were drawn: `largest` places for each element of a block.
    largest
        The largest number in `most`.
    places, left
        Where the slopes of each drawn row begin, and its residual.
    """

    stream: np.uint64
    most: Ints
    chosen: Ints
    largest: Any
    places: NDArray[np.uintp]
    left: NDArray[Any]


class DrawBlock(NamedTuple):
    """Elements `begin` to `end` of the keys `first` to `last`, whose rows are drawn together."""

    first: int
    last: int
    begin: Any
    end: Any


@bare
def first_draw(block: DrawBlock, draws: Draws, m: int, k: int) -> Any:
    """Return where in `chosen` the rows of an element begin."""
    elements = block.end - block.begin
    return (np.uintp(m - block.first) * elements + k - block.begin) * draws.largest


@bare
def draw_ahead(block: DrawBlock, to: Receiver, rows: LoopRows, mean: Mean, draws: Draws) -> None:
    """Draw the rows of a block and prefetch what they read: first of the rows, then of q.

    In two passes, because the key of a row must have arrived before q at that key can be asked for.
    """
    partner, most, chosen = partner_of(mean, to.term, to.operand), draws.most, draws.chosen
    other = layout_of(mean, to.term, partner)
    for m in range(block.first, block.last):
        first, count = rows.begin[m], rows.end[m] - rows.begin[m]
        if count > most[m]:
            for k in range(block.begin, block.end):
                part = chosen[first_draw(block, draws, m, k) :]
                sample(draws.stream, np.uintp(to.keys[m] * to.width) + k, count, most[m], part)
                for i in range(most[m]):
                    part[i] += first
                    prefetch(rows.target, np.uintp(part[i]))
                    if partner >= 0 and other.column != OWN:
                        prefetch(rows.columns[other.column], np.uintp(part[i]))
    if partner >= 0:
        for m in range(block.first, block.last):
            if rows.end[m] - rows.begin[m] > most[m]:
                for k in range(block.begin, block.end):
                    start = first_draw(block, draws, m, k)
                    for i in range(start, start + np.uintp(most[m])):
                        prefetch(mean.packed, place(other, rows, to.keys[m], chosen[i]))


@bare
def update_wide(
    block: DrawBlock,
    to: Receiver,
    m: int,
    rows: LoopRows,
    mean: Mean,
    draws: Draws,
    scratch: Scratch,
    natural: Array,
    moments: Array,
) -> bool:
    """Update elements of a key in turn, each from its drawn rows; return if they are proper."""
    packed, term, operand, own = mean.packed, to.term, to.operand, to.keys[m]
    width, zero, take, chosen = np.uintp(mean.width[term]), np.uintp(0), draws.most[m], draws.chosen
    partner, weight = partner_of(mean, term, operand), shared_weight(rows, own)
    other, alone = layout_of(mean, term, partner), len(mean.width) == 1
    x, slopes, others = scratch.own, scratch.lines, scratch.target
    others[0] = mean.intercept
    scale = weight * (rows.end[m] - rows.begin[m]) / take
    begin: Any = np.uintp(own * to.width)
    for k in range(np.uintp(to.width)):
        x[k] = moments[begin + k, 0]
    for k in range(block.begin, block.end):
        start = first_draw(block, draws, m, k)
        linear = square = 0.0
        for i in range(start, start + np.uintp(take)):
            e = chosen[i]
            target, of_row = rows.target[e], own_weight(rows, e)
            if rows.logit:
                moments_of(mean, rows, term, own, e, 1, scratch.seen, others, scratch.spare)
                target, root = tangent(scratch.seen[0, 0], scratch.seen[1, 0], target)
                of_row = root * root
            elif not alone:
                rest(mean, rows, term, own, e, 1, others, scratch.spare)
            if partner >= 0:
                at = place(other, rows, own, e)
                inner = dot(packed, at, x, zero, width)
                slope, variance = packed[at + k], packed[at + width + k]
            else:
                product(mean, rows, term, operand, own, e, slopes)
                inner = dot(slopes, zero, x, zero, width)
                slope, variance = slopes[k], slopes[width + k]
            linear += of_row * slope * (target - others[0] - inner + slope * x[k])
            square += of_row * (slope * slope + variance)
        update_element(to, m, k, begin + k, scale * linear, -0.5 * scale * square, natural)
        if to.at_once:
            x[k] = refresh_moments(natural, moments, begin + k)
    return are_normals(natural, begin + block.begin, block.end - block.begin)


@bare
def is_narrow(to: Receiver, rows: LoopRows, mean: Mean) -> bool:
    """Whether the mean of Normal rows is one plain dot product with K <= 8."""
    one = len(mean.width) == 1 and partner_of(mean, to.term, to.operand) >= 0
    return one and mean.width[to.term] == EIGHT and not rows.logit


@bare
def update_narrow(
    block: DrawBlock,
    to: Receiver,
    m: int,
    rows: LoopRows,
    mean: Mean,
    draws: Draws,
    scratch: Scratch,
    natural: Array,
    moments: Array,
) -> bool:
    """Do the same where `is_narrow`: all rows are read before any element changes.

    The residual of each row is then corrected for the elements that change, one number at a time,
    so that an element need not wait until the one before it has been stored and loaded again.
    """
    packed, x, own, width = mean.packed, scratch.own, to.keys[m], np.uintp(EIGHT)
    take, chosen, places, left = draws.most[m], draws.chosen, draws.places, draws.left
    other = layout_of(mean, to.term, partner_of(mean, to.term, to.operand))
    scale = shared_weight(rows, own) * (rows.end[m] - rows.begin[m]) / take
    begin: Any = np.uintp(own * to.width)
    for k in range(np.uintp(to.width)):
        x[k] = moments[begin + k, 0]
    means = load8(x, np.uintp(0))
    for k in range(block.begin, block.end):
        start = first_draw(block, draws, m, k)
        for i in range(start, start + np.uintp(take)):
            e = chosen[i]
            at = places[i] = place(other, rows, own, e)
            left[i] = rows.target[e] - mean.intercept - sum8(mul8(means, load8(packed, at)))
    for k in range(block.begin, block.end):
        start = first_draw(block, draws, m, k)
        linear = square = 0.0
        for i in range(start, start + np.uintp(take)):
            weight, slope = own_weight(rows, chosen[i]), packed[places[i] + k]
            linear += weight * slope * (left[i] + slope * x[k])
            square += weight * (slope * slope + packed[places[i] + width + k])
        update_element(to, m, k, begin + k, scale * linear, -0.5 * scale * square, natural)
        if to.at_once:
            change = packed.dtype.type(refresh_moments(natural, moments, begin + k) - x[k])
            for j in range(k + np.uintp(1), block.end):
                start = first_draw(block, draws, m, j)
                for i in range(start, start + np.uintp(take)):
                    left[i] -= change * packed[places[i] + k]
    return are_normals(natural, begin + block.begin, block.end - block.begin)


@bare
def update_claimed(
    taken: Ints,
    to: Receiver,
    rows: LoopRows,
    mean: Mean,
    draws: Draws,
    scratch: Scratch,
    natural: Array,
    moments: Array,
    sound: Bools,
) -> None:
    """Update the keys that this thread claims, the elements of some keys at a time."""
    ahead: Any = max(1, AHEAD // np.int64(draws.largest))
    most = draws.most
    keys, width = max(1, ahead // to.width), np.uintp(to.width)
    elements, narrow = np.uintp(min(ahead, to.width)), is_narrow(to, rows, mean)
    first = claim(taken, KEYS)
    while first < len(to.keys):
        end = min(first + KEYS, len(to.keys))
        for start in range(first, end, keys):
            last = min(start + keys, end)
            for k in range(np.uintp(0), width, elements):
                block = DrawBlock(start, last, k, min(k + elements, width))
                draw_ahead(block, to, rows, mean, draws)
                for m in range(start, last):
                    if rows.end[m] - rows.begin[m] <= most[m]:
                        continue
                    own = (rows, mean, draws, scratch, natural, moments)
                    if narrow:
                        proper = update_narrow(block, to, m, *own)
                    else:
                        proper = update_wide(block, to, m, *own)
                    if not proper:
                        sound[m] = False
        for m in range(first, end):
            few = rows.end[m] - rows.begin[m] <= min(most[m], LONG)
            if few and not update_key(to, m, rows, mean, scratch, natural, moments):
                sound[m] = False
        first = claim(taken, KEYS)


@shared
def update_drawn(
    taken: Ints,
    to: Receiver,
    drawn: Drawn,
    rows: LoopRows,
    mean: Mean,
    natural: Array,
    moments: Array,
    sound: Bools,
) -> None:
    """Update each element of each key from its own rows, drawn anew: Algorithm 1.

    A key that has no more rows than its number in `drawn.most` reads all of them.
    """
    most, largest = drawn.most, max(1, drawn.most.max())
    stream = stream_key(drawn.seed, drawn.iteration, drawn.variable)
    chosen = np.empty(max(AHEAD, largest), np.int64)
    places, left = np.empty(len(chosen), np.uintp), np.empty(len(chosen), mean.packed.dtype)
    draws = Draws(stream, most, chosen, np.uintp(largest), places, left)
    scratch = scratch_for(mean, to.width, tile_size(to, rows, most))
    update_claimed(taken, to, rows, mean, draws, scratch, natural, moments, sound)
