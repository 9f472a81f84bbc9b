"""Algorithm 1 in a loop: each element of each key reads rows of its own, drawn anew.

The twin is the plain path of the engine with `DrawnChildren`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from svmp.families.family import Array
from svmp.inference.draws import sample, stream_key
from svmp.kernels.compiling import CHUNK, bare, claim, parallel
from svmp.kernels.multilinear import (
    LONG,
    Receiver,
    blend,
    follow,
    scratch_for,
    settle_in_turn,
    shared_weight,
)
from svmp.kernels.terms import (
    LINE,
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


@bare
def settle_drawn(
    to: Receiver,
    m: int,
    stream: np.uint64,
    most: int,
    rows: Rows,
    mean: Mean,
    chosen: Ints,
    room: Array,
    natural: Array,
    moments: Array,
) -> None:
    """Update the elements of a key one after the other, each from rows that it draws."""
    packed, term, operand, own = mean.packed, to.term, to.operand, to.keys[m]
    width, zero = np.uintp(mean.width[term]), np.uintp(0)
    partner, weight = partner_of(mean, term, operand), shared_weight(rows)
    other, alone, weighted = reader(mean, term, partner), len(mean.width) == 1, len(rows.weight) > 1
    x, slopes, others, spare, seen = room[0], room[1], room[2], room[3], room[4:]
    others[0] = mean.intercept
    first, count = rows.begin[m], rows.end[m] - rows.begin[m]
    take = min(most, count)
    scale = count / max(take, 1)
    begin: Any = np.uintp(own) * width
    for k in range(width):
        x[k] = moments[begin + k, 0]
    for k in range(width):
        sample(stream, begin + k, count, take, chosen)
        linear = square = 0.0
        for i in range(take):
            e = first + chosen[i]
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
        blend(to, m, np.uintp(m) * width + k, begin + k, linear, square, natural)
        if to.at_once:
            x[k] = follow(natural, moments, begin + k)


@parallel
def update_drawn(
    to: Receiver,
    seed: int,
    iteration: int,
    variable: int,
    most: Ints,
    rows: Rows,
    mean: Mean,
    threads: int,
    natural: Array,
    moments: Array,
) -> None:
    """Update each element of each key from rows of its own, drawn anew: Algorithm 1.

    A key that has no more rows than that reads them all.
    """
    stream, taken, need = stream_key(seed, iteration, variable), np.zeros(1, np.int64), 0
    for m in range(len(to.keys)):
        if rows.end[m] - rows.begin[m] <= min(most[m], LONG):
            need = max(need, scratch_for(rows, m, to.width))
    for _ in prange(threads):
        scratch, square = np.empty(need, mean.packed.dtype), np.empty(to.width)
        room = np.empty((2 * LINE + 3, 2 * mean.width.max()), mean.packed.dtype)
        chosen = np.empty(most.max(), np.int64)
        first = claim(taken)
        while first < len(to.keys):
            for m in range(first, min(first + CHUNK, len(to.keys))):
                count = rows.end[m] - rows.begin[m]
                if count > most[m]:
                    settle_drawn(to, m, stream, most[m], rows, mean, chosen, room, natural, moments)
                elif count <= LONG:
                    settle_in_turn(to, m, rows, mean, scratch, room, square, natural, moments)
            first = claim(taken)
