"""Updates of the elements of a mean or logit that is linear in each parent.

    mu_e = sum over terms t of c_te * sum_k prod over operands f of x_f[key_f(e), k]

For one key of one operand, a row is mu_e = a_e . x + rest_e with K slopes a_e. Slopes are read in
the precision of the data, and used in one of two ways.

- From three sums over the rows: gram = sum w a a^T, linear = sum w a (y - rest) and square =
  sum w E[a^2]. The K elements follow without reading a row again, in turn or together (`joint`).
  That costs O(K^2) per row, which for small K is less than the other way.
- From residuals: the slopes are transposed into a tile, with the residuals y - E[mu] beside it.
  Each element takes one pass over its slopes, which also subtracts the change of the element before
  it from the residuals. All K elements together cost O(K) per row.

Keys do not depend on each other, so they run in parallel, with the same bits on any number of
threads. The plain versions are network/means/linear.py and inference/updaters/joint.py.

Moments are (elements, 2) arrays of E[x] and E[x^2], naturals are (tau mu, -tau / 2).
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array, Bools
from svmp.kernels.machine.blend import blend
from svmp.kernels.machine.cholesky import solve
from svmp.kernels.machine.compiling import CHUNK, bare, claim, jit, shared
from svmp.kernels.machine.simd import EIGHT, broadcast8, fma8, load8, store8, sum8, transpose8
from svmp.kernels.machine.threads import share
from svmp.kernels.multilinear.losses import (
    Losses,
    LossScratch,
    loss_of_means,
    loss_of_variances,
    loss_scratch,
)
from svmp.kernels.multilinear.slopes import Scratch, gather, padded_width, scratch_for, sums_for
from svmp.kernels.multilinear.sums import add_sums
from svmp.kernels.multilinear.terms import (
    LINE,
    LoopRows,
    Mean,
    Receiver,
    per_key,
    shared_weight,
)
from svmp.network.grid import Ints

LONG = 65_536
"""Threads share the rows of a key that has more rows than this."""
FEW = 16
"""Up to this K, elements are updated from sums even if they are updated in turn."""


@bare
def refresh_moments(natural: Array, moments: Array, at: int) -> float:
    """Set the moments of a Normal from its natural parameters; return its mean."""
    variance = -0.5 / natural[at, 1]
    mean = variance * natural[at, 0]
    moments[at, 0] = mean
    moments[at, 1] = mean * mean + variance
    return mean


@bare
def step_towards(natural: Array, at: int, linear: float, square: float, step: float) -> None:
    """Move a natural parameter by a step towards a target."""
    natural[at, 0] = blend(natural[at, 0], linear, step)
    natural[at, 1] = blend(natural[at, 1], square, step)


@bare
def update_element(
    to: Receiver, m: int, k: int, at: int, linear: float, square: float, natural: Array
) -> None:
    """Move an element by a step towards its prior plus its message."""
    prior = to.prior[np.uintp(k if len(to.prior) == to.width else m * to.width + k)]
    step_towards(natural, at, prior[0] + linear, prior[1] + square, per_key(to.rho, m))


@bare
def are_normals(natural: Array, first: int, width: int) -> bool:
    """Whether the natural parameters of some elements are those of proper Normals."""
    sound = True
    for at in range(np.uintp(first), np.uintp(first + width)):
        linear, square = natural[at, 0], natural[at, 1]
        sound &= (abs(linear) < np.inf) & (square < 0) & (square > -np.inf)
    return sound


@bare
def mirror(gram: Array) -> None:
    """Copy the 8 x 8 blocks below the diagonal to those above it."""
    for k in range(EIGHT, len(gram)):
        for j in range(k // EIGHT * EIGHT):
            gram[j, k] = gram[k, j]


@bare
def update_in_turn_by_sums(
    to: Receiver, m: int, scale: float, sums: Array, natural: Array, moments: Array
) -> None:
    """Update the K elements of a key in turn, from its sums with the prior added.

    The product gram E[x] is kept beside the sums and corrected for each element that changes.
    """
    padded, width = np.uintp(sums.shape[1]), np.uintp(to.width)
    gram, explained = sums[:padded], sums[padded]
    linear, square, means = sums[2 * padded], sums[2 * padded + 1], sums[2 * padded + 2]
    at, step = np.uintp(to.keys[m]) * width, per_key(to.rho, m)
    mirror(gram)
    for k in range(width):
        means[k] = moments[at + k, 0]
    for j in range(np.uintp(0), padded, np.uintp(EIGHT)):
        found = broadcast8(0.0)
        for k in range(width):
            found = fma8(broadcast8(means[k]), load8(gram[k], j), found)
        store8(explained, j, found)
    for k in range(width):
        total = linear[k] - scale * (explained[k] - gram[k, k] * means[k])
        step_towards(natural, at + k, total, -0.5 * square[k], step)
        if to.at_once:
            change = broadcast8(refresh_moments(natural, moments, at + k) - means[k])
            for j in range(np.uintp(0), padded, np.uintp(EIGHT)):
                store8(explained, j, fma8(change, load8(gram[k], j), load8(explained, j)))


@bare
def update_from_sums(
    to: Receiver, m: int, weight: float, sums: Array, natural: Array, moments: Array
) -> None:
    """Update the K elements of a key from the three sums of its rows, times a common weight."""
    padded, width = sums.shape[1], to.width
    gram, system = sums[:padded], sums[padded : padded + width]
    linear, square, means = sums[2 * padded], sums[2 * padded + 1], sums[2 * padded + 2]
    at, step, scale = to.keys[m] * width, per_key(to.rho, m), per_key(to.scale, m) * weight
    for k in range(width):
        prior = to.prior[k if len(to.prior) == width else m * width + k]
        linear[k] = prior[0] + scale * linear[k]
        square[k] = scale * square[k] - 2 * prior[1]
        means[k] = linear[k]
    solved = False
    if to.joint:
        for k in range(width):
            row, found = system[k], gram[k]
            for j in range(k):
                row[j] = scale * found[j]
            row[k] = square[k]
        solved = solve(system, means[:width])
    if not solved:
        update_in_turn_by_sums(to, m, scale, sums, natural, moments)
        return
    for k in range(width):
        step_towards(natural, at + k, square[k] * means[k], -0.5 * square[k], step)
        if to.at_once:
            refresh_moments(natural, moments, at + k)


@bare
def transpose_lines(
    scratch: Scratch, padded: int, count: int, residual: Array, tile: Array, stride: int, start: int
) -> None:
    """Write the residuals of at most LINE rows, and their slopes element by element."""
    for i in range(count, LINE):
        scratch.target[i] = 0
        for k in range(padded):
            scratch.lines[np.uintp(i) * padded + k] = 0
    for i in range(np.uintp(0), np.uintp(LINE), np.uintp(EIGHT)):
        left = load8(scratch.target, i)
        for k in range(np.uintp(0), padded, np.uintp(EIGHT)):
            transpose8(scratch.lines, i * padded + k, padded, tile, k * stride + start + i, stride)
        for k in range(padded):
            left = fma8(broadcast8(-scratch.own[k]), load8(tile, k * stride + start + i), left)
        store8(residual, start + i, left)


@bare
def update_from_residuals(
    to: Receiver,
    m: int,
    rows: LoopRows,
    mean: Mean,
    scratch: Scratch,
    natural: Array,
    moments: Array,
) -> None:
    """Update the elements of a key in turn, with one pass over its slopes and residuals each."""
    width, padded, own = to.width, np.uintp(padded_width(to.width)), to.keys[m]
    first, count = rows.begin[m], rows.end[m] - rows.begin[m]
    scale, at = per_key(to.scale, m) * shared_weight(rows, own), np.uintp(own * width)
    whole = np.uintp((count + LINE - 1) // LINE * LINE)
    stride = whole | np.uintp(LINE)  # no power of two: elements fall into different cache sets
    residual, tile = scratch.tile[:whole], scratch.tile[whole:]
    sums = scratch.sums[2 * padded :]
    scratch.square[:] = 0
    for k in range(np.uintp(width)):
        scratch.own[k] = moments[at + k, 0]
    for start in range(0, count, LINE):
        here = min(LINE, count - start)
        gather(mean, rows, to.term, to.operand, own, first + start, here, scratch, scratch.square)
        transpose_lines(scratch, padded, here, residual, tile, stride, np.uintp(start))
    zero = tile.dtype.type(0)
    change, before, half = zero, np.uintp(0), np.uintp(EIGHT)
    for k in range(np.uintp(width)):
        this, back = k * stride, broadcast8(-change)
        # Two sums each, so that an addition need not wait for the one before it.
        inner = other = power = rest = broadcast8(zero)
        for e in range(np.uintp(0), whole, np.uintp(LINE)):
            left = fma8(back, load8(tile, before + e), load8(residual, e))
            right = fma8(back, load8(tile, before + e + half), load8(residual, e + half))
            store8(residual, e, left)
            store8(residual, e + half, right)
            a, b = load8(tile, this + e), load8(tile, this + e + half)
            inner, other = fma8(a, left, inner), fma8(b, right, other)
            power, rest = fma8(a, a, power), fma8(b, b, rest)
        squares = sum8(power) + sum8(rest)
        linear = scale * (sum8(inner) + sum8(other) + squares * moments[at + k, 0])
        sums[3, k], sums[4, k] = scratch.square[k], squares
        square = scale * (scratch.square[k] + squares)
        update_element(to, m, k, at + k, linear, -0.5 * square, natural)
        if to.at_once:
            new = refresh_moments(natural, moments, at + k)
            change = tile.dtype.type(new - scratch.own[k])
            before = this


@bare
def uses_sums(to: Receiver) -> bool:
    """Whether elements are updated from sums, not from residuals."""
    return to.joint or to.width <= FEW


@bare
def update_key_from_sums(
    to: Receiver,
    m: int,
    rows: LoopRows,
    mean: Mean,
    scratch: Scratch,
    natural: Array,
    moments: Array,
) -> bool:
    """Update a key from the sums of its rows; return whether its elements are proper Normals."""
    part = (to.term, to.operand, to.keys[m], rows.begin[m], rows.end[m])
    add_sums(mean, rows, *part, scratch.sums, scratch)
    weight = shared_weight(rows, to.keys[m])
    update_from_sums(to, m, weight, scratch.sums, natural, moments)
    return are_normals(natural, to.keys[m] * to.width, to.width)


@bare
def update_key(
    to: Receiver,
    m: int,
    rows: LoopRows,
    mean: Mean,
    scratch: Scratch,
    natural: Array,
    moments: Array,
) -> bool:
    """Update a key from all of its rows; return whether its elements are proper Normals."""
    if uses_sums(to):
        return update_key_from_sums(to, m, rows, mean, scratch, natural, moments)
    update_from_residuals(to, m, rows, mean, scratch, natural, moments)
    return are_normals(natural, to.keys[m] * to.width, to.width)


@jit
def tile_size(to: Receiver, rows: LoopRows, most: Ints) -> int:
    """Return the size of `Scratch.tile` for the longest key that is updated from residuals.

    Keys with more rows than LONG or than their number in `most` are not updated from all rows.
    """
    longest = 0
    if uses_sums(to):
        return longest
    for m in range(len(to.keys)):
        count = rows.end[m] - rows.begin[m]
        if count <= LONG and (len(most) == 0 or count <= most[m]):
            longest = max(longest, count)
    return (longest // LINE + 3) * LINE * (padded_width(to.width) + 1)


@bare
def write_loss(
    to: Receiver,
    m: int,
    rows: LoopRows,
    mean: Mean,
    moments: Array,
    sums: Array,
    losses: Losses,
    scratch: LossScratch,
) -> None:
    """Write the loss of a key after its update, if losses are asked for."""
    if len(losses.out) > 0:
        place = (to.term, to.operand, to.width, to.keys[m], rows.begin[m], rows.end[m])
        found = loss_of_means(mean, rows, losses.weight, *place, moments, scratch)
        losses.out[m] = found + loss_of_variances(sums, to.keys[m], to.width, moments)


@bare
def update_claimed_from_sums(
    taken: Ints,
    to: Receiver,
    rows: LoopRows,
    mean: Mean,
    scratch: Scratch,
    natural: Array,
    moments: Array,
    sound: Bools,
    losses: Losses,
    spare: LossScratch,
) -> None:
    """Update the keys that this thread claims from their sums."""
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            if rows.end[m] - rows.begin[m] <= LONG:
                if not update_key_from_sums(to, m, rows, mean, scratch, natural, moments):
                    sound[m] = False  # rare, so threads hardly ever write to the same cache line
                write_loss(to, m, rows, mean, moments, scratch.sums, losses, spare)
        first = claim(taken, CHUNK)


@shared
def update_whole_from_sums(
    taken: Ints,
    to: Receiver,
    rows: LoopRows,
    mean: Mean,
    natural: Array,
    moments: Array,
    sound: Bools,
    losses: Losses,
) -> None:
    """Do what `update_whole` does, where elements are updated from sums.

    It is compiled in less time, as it has no updates from residuals, and most fits need no others.
    """
    scratch, spare = scratch_for(mean, to.width, 0), loss_scratch(mean, to.term)
    own = (natural, moments, sound, losses, spare)
    update_claimed_from_sums(taken, to, rows, mean, scratch, *own)


@bare
def update_claimed(
    taken: Ints,
    to: Receiver,
    rows: LoopRows,
    mean: Mean,
    scratch: Scratch,
    natural: Array,
    moments: Array,
    sound: Bools,
    losses: Losses,
    spare: LossScratch,
) -> None:
    """Update the keys that this thread claims."""
    first = claim(taken, CHUNK)
    while first < len(to.keys):
        for m in range(first, min(first + CHUNK, len(to.keys))):
            if rows.end[m] - rows.begin[m] <= LONG:
                if not update_key(to, m, rows, mean, scratch, natural, moments):
                    sound[m] = False  # rare, so threads hardly ever write to the same cache line
                write_loss(to, m, rows, mean, moments, scratch.sums, losses, spare)
        first = claim(taken, CHUNK)


@shared
def update_whole(
    taken: Ints,
    to: Receiver,
    rows: LoopRows,
    mean: Mean,
    natural: Array,
    moments: Array,
    sound: Bools,
    losses: Losses,
) -> None:
    """Update all keys but long ones; `natural`, `moments` and `sound` change in place.

    Losses are written for the updated keys, if they are asked for.
    """
    scratch = scratch_for(mean, to.width, tile_size(to, rows, taken[:0]))
    own = (natural, moments, sound, losses, loss_scratch(mean, to.term))
    update_claimed(taken, to, rows, mean, scratch, *own)


@shared
def add_pieces(
    taken: Ints, to: Receiver, m: int, rows: LoopRows, mean: Mean, piece: int, sums: Array
) -> None:
    """Write the three sums of each piece of the rows of a key."""
    first, last, scratch = rows.begin[m], rows.end[m], scratch_for(mean, to.width, 0)
    b = claim(taken, 1)
    while b < len(sums):
        start = first + b * piece
        part = (to.term, to.operand, to.keys[m], start, min(last, start + piece))
        add_sums(mean, rows, *part, sums[b], scratch)
        b = claim(taken, 1)


def sums_of_long(to: Receiver, m: int, rows: LoopRows, mean: Mean) -> Array:
    """Return the three sums of a long key: pieces in parallel, added in order."""
    count = int(rows.end[m] - rows.begin[m])
    piece = max(LONG // 4, count // 256 + 1)
    sums = np.zeros((-(-count // piece), *sums_for(to.width).shape))
    share(add_pieces, to, m, rows, mean, piece, sums)
    return np.asarray(sums.sum(axis=0))


@shared
def add_losses(
    taken: Ints,
    to: Receiver,
    m: int,
    rows: LoopRows,
    mean: Mean,
    moments: Array,
    piece: int,
    weight: Array,
    out: Array,
) -> None:
    """Write the first line of the loss of each piece of the rows of a key."""
    last, scratch = rows.end[m], loss_scratch(mean, to.term)
    b = claim(taken, 1)
    while b < len(out):
        start = rows.begin[m] + b * piece
        place = (to.term, to.operand, to.width, to.keys[m], start, min(last, start + piece))
        out[b] = loss_of_means(mean, rows, weight, *place, moments, scratch)
        b = claim(taken, 1)


def update_long(
    to: Receiver,
    m: int,
    rows: LoopRows,
    mean: Mean,
    natural: Array,
    moments: Array,
    losses: Losses,
) -> bool:
    """Update a long key; return whether its elements are proper Normals."""
    own, sums = int(to.keys[m]), sums_of_long(to, m, rows, mean)
    update_from_sums(to, m, shared_weight(rows, own), sums, natural, moments)
    if len(losses.out) > 0:
        piece = LONG // 4
        out = np.empty(-(-int(rows.end[m] - rows.begin[m]) // piece))
        share(add_losses, to, m, rows, mean, moments, piece, losses.weight, out)
        losses.out[m] = out.sum() + loss_of_variances(sums, own, to.width, moments)
    return are_normals(natural, own * to.width, to.width)
