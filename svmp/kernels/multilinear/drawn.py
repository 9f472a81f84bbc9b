"""Algorithm 1 in a loop: each element of each key reads rows of its own, drawn anew.

The twin is the plain path of the engine with `DrawnChildren`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svmp.families.family import Array, Bools
from svmp.kernels.machine.compiling import bare, claim, shared
from svmp.kernels.machine.simd import EIGHT, eight, prefetch, sum_of, times
from svmp.kernels.machine.streams import sample, stream_key
from svmp.kernels.multilinear.slopes import Room, room_for
from svmp.kernels.multilinear.sums import sums_for
from svmp.kernels.multilinear.terms import (
    OWN,
    Mean,
    Rows,
    dot,
    moments_of,
    own_weight,
    partner_of,
    place,
    product,
    reader,
    rest,
    shared_weight,
    tangent,
)
from svmp.kernels.multilinear.update import (
    LONG,
    Receiver,
    are_normals,
    blend,
    follow,
    scratch_for,
    settle_whole,
)
from svmp.network.grid import Ints

KEYS = 128
"""Keys that a thread takes at a time: all read about as many rows, and the more are taken at once,
the less do threads write side by side."""
AHEAD = 128
"""Rows that are drawn ahead, so that all they read is on its way at once."""


class Handful(NamedTuple):
    """Some elements of each of some keys, and the rows that all of them together draw.

    Attributes
    ----------
    first, last
        The keys.
    begin, end
        The elements of each.
    apart
        How far apart in `chosen` are the rows of one element and those of the next.
    """

    first: int
    last: int
    begin: Any
    end: Any
    apart: Any


@bare
def place_in(handful: Handful, m: int, k: int) -> Any:
    """Return where the rows begin that an element has drawn."""
    many = handful.end - handful.begin
    return (np.uintp(m - handful.first) * many + k - handful.begin) * handful.apart


@bare
def draw_ahead(
    handful: Handful,
    to: Receiver,
    stream: np.uint64,
    most: Ints,
    rows: Rows,
    mean: Mean,
    chosen: Ints,
) -> None:
    """Draw the rows of a handful, and fetch what will be read: first of the rows, then of q."""
    partner = partner_of(mean, to.term, to.operand)
    other = reader(mean, to.term, partner)
    for m in range(handful.first, handful.last):
        first, count = rows.begin[m], rows.end[m] - rows.begin[m]
        if count > most[m]:
            for k in range(handful.begin, handful.end):
                part = chosen[place_in(handful, m, k) :]
                sample(stream, np.uintp(to.keys[m] * to.width) + k, count, most[m], part)
                for i in range(most[m]):
                    part[i] += first
                    prefetch(rows.target, np.uintp(part[i]))
                    if partner >= 0 and other.column != OWN:
                        prefetch(rows.columns[other.column], np.uintp(part[i]))
    if partner >= 0:
        for m in range(handful.first, handful.last):
            if rows.end[m] - rows.begin[m] > most[m]:
                for k in range(handful.begin, handful.end):
                    start = place_in(handful, m, k)
                    for i in range(start, start + np.uintp(most[m])):
                        prefetch(mean.packed, place(other, rows, to.keys[m], chosen[i]))


@bare
def settle_drawn(
    handful: Handful,
    to: Receiver,
    m: int,
    take: int,
    rows: Rows,
    mean: Mean,
    chosen: Ints,
    room: Room,
    natural: Array,
    moments: Array,
) -> bool:
    """Update elements of a key one after the other, each from the rows that it has drawn."""
    packed, term, operand, own = mean.packed, to.term, to.operand, to.keys[m]
    width, zero = np.uintp(mean.width[term]), np.uintp(0)
    partner, weight = partner_of(mean, term, operand), shared_weight(rows, own)
    other, alone = reader(mean, term, partner), len(mean.width) == 1
    x, slopes, others, spare, seen = room.own, room.lines, room.target, room.spare, room.seen
    others[0] = mean.intercept
    scale = weight * (rows.end[m] - rows.begin[m]) / take
    begin: Any = np.uintp(own * to.width)
    for k in range(np.uintp(to.width)):
        x[k] = moments[begin + k, 0]
    for k in range(handful.begin, handful.end):
        start = place_in(handful, m, k)
        linear = square = 0.0
        for i in range(start, start + np.uintp(take)):
            e = chosen[i]
            target, of_row = rows.target[e], own_weight(rows, e)
            if rows.logit:
                moments_of(mean, rows, term, own, e, 1, seen, others, spare)
                target, root = tangent(seen[0, 0], seen[1, 0], target)
                of_row = root * root
            elif not alone:
                rest(mean, rows, term, own, e, 1, others, spare)
            if partner >= 0:
                at = place(other, rows, own, e)
                inner = dot(packed, at, x, zero, width)
                slope, second = packed[at + k], packed[at + width + k]
            else:
                product(mean, rows, term, operand, own, e, slopes)
                inner = dot(slopes, zero, x, zero, width)
                slope, second = slopes[k], slopes[width + k]
            linear += of_row * slope * (target - others[0] - inner + slope * x[k])
            square += of_row * second
        blend(to, m, k, begin + k, scale * linear, -0.5 * scale * square, natural)
        if to.at_once:
            x[k] = follow(natural, moments, begin + k)
    return are_normals(natural, begin + handful.begin, handful.end - handful.begin)


@bare
def is_narrow(to: Receiver, rows: Rows, mean: Mean) -> bool:
    """Whether the mean is one dot product, of at most eight elements."""
    one = len(mean.width) == 1 and partner_of(mean, to.term, to.operand) >= 0
    return one and mean.width[to.term] == EIGHT and not rows.logit


@bare
def settle_narrow(
    handful: Handful,
    to: Receiver,
    m: int,
    take: int,
    rows: Rows,
    mean: Mean,
    chosen: Ints,
    places: Ints,
    left: Array,
    room: Room,
    natural: Array,
    moments: Array,
) -> bool:
    """Do the same where a row is eight slopes: all rows are read before any element moves.

    What is left of each row then follows the elements that move, one number at a time, so that an
    element need not wait for the one before it to be read back.
    """
    packed, x, own, width = mean.packed, room.own, to.keys[m], np.uintp(EIGHT)
    other = reader(mean, to.term, partner_of(mean, to.term, to.operand))
    scale = shared_weight(rows, own) * (rows.end[m] - rows.begin[m]) / take
    begin: Any = np.uintp(own * to.width)
    for k in range(np.uintp(to.width)):
        x[k] = moments[begin + k, 0]
    means = eight(x, np.uintp(0))
    for k in range(handful.begin, handful.end):
        start = place_in(handful, m, k)
        for i in range(start, start + np.uintp(take)):
            e = chosen[i]
            at = places[i] = place(other, rows, own, e)
            left[i] = rows.target[e] - mean.intercept - sum_of(times(means, eight(packed, at)))
    for k in range(handful.begin, handful.end):
        start = place_in(handful, m, k)
        linear = square = 0.0
        for i in range(start, start + np.uintp(take)):
            weight, slope = own_weight(rows, chosen[i]), packed[places[i] + k]
            linear += weight * slope * (left[i] + slope * x[k])
            square += weight * packed[places[i] + width + k]
        blend(to, m, k, begin + k, scale * linear, -0.5 * scale * square, natural)
        if to.at_once:
            change = packed.dtype.type(follow(natural, moments, begin + k) - x[k])
            for j in range(k + np.uintp(1), handful.end):
                start = place_in(handful, m, j)
                for i in range(start, start + np.uintp(take)):
                    left[i] -= change * packed[places[i] + k]
    return are_normals(natural, begin + handful.begin, handful.end - handful.begin)


@bare
def take_keys(
    taken: Ints,
    to: Receiver,
    stream: np.uint64,
    most: Ints,
    ahead: int,
    apart: int,
    rows: Rows,
    mean: Mean,
    chosen: Ints,
    places: Ints,
    left: Array,
    sums: Array,
    scratch: Array,
    room: Room,
    natural: Array,
    moments: Array,
    sound: Bools,
) -> None:
    """Update keys that no thread has taken yet, `ahead` elements at a time, until none is left."""
    keys, width, own = max(1, ahead // to.width), np.uintp(to.width), (room, natural, moments)
    elements, narrow = np.uintp(min(ahead, to.width)), is_narrow(to, rows, mean)
    first = claim(taken, KEYS)
    while first < len(to.keys):
        end = min(first + KEYS, len(to.keys))
        for start in range(first, end, keys):
            last = min(start + keys, end)
            for k in range(np.uintp(0), width, elements):
                handful = Handful(start, last, k, min(k + elements, width), np.uintp(apart))
                draw_ahead(handful, to, stream, most, rows, mean, chosen)
                for m in range(start, last):
                    if rows.end[m] - rows.begin[m] <= most[m]:
                        continue
                    read = (most[m], rows, mean, chosen)
                    if narrow:
                        fine = settle_narrow(handful, to, m, *read, places, left, *own)
                    else:
                        fine = settle_drawn(handful, to, m, *read, *own)
                    if not fine:
                        sound[m] = False
        for m in range(first, end):
            few = rows.end[m] - rows.begin[m] <= min(most[m], LONG)
            if few and not settle_whole(to, m, rows, mean, sums, scratch, *own):
                sound[m] = False
        first = claim(taken, KEYS)


@shared
def update_drawn(
    taken: Ints,
    to: Receiver,
    seed: int,
    iteration: int,
    variable: int,
    most: Ints,
    rows: Rows,
    mean: Mean,
    natural: Array,
    moments: Array,
    sound: Bools,
) -> None:
    """Update each element of each key from rows of its own, drawn anew: Algorithm 1.

    A key that has no more rows than that reads them all.
    """
    stream, largest = stream_key(seed, iteration, variable), max(1, most.max())
    chosen, ahead = np.empty(max(AHEAD, largest), np.int64), max(1, AHEAD // largest)
    places, left = np.empty(len(chosen), np.uintp), np.empty(len(chosen), mean.packed.dtype)
    scratch = np.empty(scratch_for(to, rows, most), mean.packed.dtype)
    room, sums = room_for(mean, to.width), sums_for(to.width)
    draw, read = (stream, most, ahead, largest), (rows, mean, chosen, places, left)
    take_keys(taken, to, *draw, *read, sums, scratch, room, natural, moments, sound)
