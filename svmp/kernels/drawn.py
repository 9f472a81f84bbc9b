"""Algorithm 1 in a loop: each element of each key reads rows of its own, drawn anew.

The twin is the plain path of the engine with `DrawnChildren`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmp.families.family import Array
from svmp.inference.draws import sample, stream_key
from svmp.kernels.compiling import CHUNK, bare, claim, shared
from svmp.kernels.eights import prefetch
from svmp.kernels.multilinear import (
    LONG,
    Receiver,
    blend,
    follow,
    scratch_for,
    settle_whole,
    shared_weight,
)
from svmp.kernels.slopes import Room, room_for
from svmp.kernels.sums import sums_for
from svmp.kernels.terms import (
    Mean,
    Rows,
    dot,
    observe,
    partner_of,
    place,
    product,
    reader,
    rest,
)
from svmp.network.grid import Ints

AHEAD = 64
"""Rows that are drawn ahead, so that all they read is on its way at once."""


@bare
def settle_drawn(
    to: Receiver,
    m: int,
    stream: np.uint64,
    most: int,
    rows: Rows,
    mean: Mean,
    chosen: Ints,
    room: Room,
    natural: Array,
    moments: Array,
) -> None:
    """Update the elements of a key one after the other, each from rows that it draws."""
    packed, term, operand, own = mean.packed, to.term, to.operand, to.keys[m]
    width, zero = np.uintp(mean.width[term]), np.uintp(0)
    partner, weight = partner_of(mean, term, operand), shared_weight(rows)
    other, alone, weighted = reader(mean, term, partner), len(mean.width) == 1, len(rows.weight) > 1
    x, slopes, others, spare, seen = room.own, room.lines, room.target, room.spare, room.seen
    others[0] = mean.intercept
    first, count = rows.begin[m], rows.end[m] - rows.begin[m]
    take = min(most, count)
    scale = count / take
    begin: Any = np.uintp(own * to.width)
    for k in range(np.uintp(to.width)):
        x[k] = moments[begin + k, 0]
    ahead = np.uintp(max(1, AHEAD // take))
    for start in range(zero, np.uintp(to.width), ahead):
        end = min(start + ahead, np.uintp(to.width))
        for k in range(start, end):
            part = chosen[(k - start) * np.uintp(take) :]
            sample(stream, begin + k, count, take, part)
            for i in range(take):
                e = first + part[i]
                prefetch(rows.target, np.uintp(e))
                if partner >= 0:
                    prefetch(packed, place(other, rows, own, e))
        for k in range(start, end):
            part = chosen[(k - start) * np.uintp(take) :]
            linear = square = 0.0
            for i in range(take):
                e = first + part[i]
                target, own_weight = rows.target[e], 1.0
                if rows.logit:
                    observe(mean, rows, own, e, 1, seen, spare)
                    target, own_weight = seen[0, 0], seen[0, 1] * seen[0, 1]
                elif weighted:
                    own_weight = rows.weight[e]
                if partner >= 0:
                    at = place(other, rows, own, e)
                    inner = dot(packed, at, x, zero, width)
                    slope, second = packed[at + k], packed[at + width + k]
                else:
                    product(mean, rows, term, operand, own, e, slopes)
                    inner = dot(slopes, zero, x, zero, width)
                    slope, second = slopes[k], slopes[width + k]
                if not alone:
                    rest(mean, rows, term, own, e, 1, others, spare)
                linear += own_weight * slope * (target - others[0] - inner + slope * x[k])
                square += own_weight * second
            linear, square = scale * weight * linear, -0.5 * scale * weight * square
            blend(to, m, k, begin + k, linear, square, natural)
            if to.at_once:
                x[k] = follow(natural, moments, begin + k)


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
) -> None:
    """Update each element of each key from rows of its own, drawn anew: Algorithm 1.

    A key that has no more rows than that reads them all.
    """
    stream = stream_key(seed, iteration, variable)
    scratch = np.empty(scratch_for(to, rows, most), mean.packed.dtype)
    room, sums = room_for(mean, to.width), sums_for(to.width)
    chosen = np.empty(max(AHEAD, most.max()), np.int64)
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            count = rows.end[m] - rows.begin[m]
            if count > most[m]:
                settle_drawn(to, m, stream, most[m], rows, mean, chosen, room, natural, moments)
            elif count <= LONG:
                settle_whole(to, m, rows, mean, sums, scratch, room, natural, moments)
        first = claim(taken, CHUNK)
