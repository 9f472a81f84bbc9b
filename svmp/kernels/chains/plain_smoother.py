"""The twin of smoother.py in NumPy: the same recursions, for all sequences at a time.

Step t of all sequences that are long enough is one batch of small matrices. It needs no compiling,
and is used for small networks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from svmp.families.family import Array, Bools
from svmp.families.matrix import apply, cholesky, flat, inverse, join, log_det_root, symmetric
from svmp.kernels.chains.dynamics import Dynamics, OrderedRows, Output
from svmp.kernels.chains.filtering import FAR
from svmp.network.chains.transition import lag_gain
from svmp.network.grid import Ints, ragged


def smooth(rows: OrderedRows, dynamics: Dynamics, evidence: Array, out: Output) -> Bools:
    """Write q of all rows of some sequences; return which sequences are proper and finite.

    Only what depends on the next state is computed step by step, and all else for all rows at once.
    """
    size, count, moments = dynamics.mean.shape[1], len(rows.begin), out.moments
    out.cross[rows.order[rows.begin[rows.end > rows.begin]]] = 0.0
    owner, place = ragged(rows.begin, rows.end - rows.begin)
    every, followed = rows.order[place], place[place + 1 < rows.end[owner]]
    number = np.zeros(len(moments), dtype=np.int64)
    number[rows.order[followed]] = np.arange(len(followed))
    with np.errstate(all="ignore"):
        sound = _filter(rows, dynamics, evidence, moments, out.log_det)
        means, roots = _split(moments, size)
        covs = _square(roots)
        first, second = rows.order[followed], rows.order[followed + 1]
        _, spreads, gains, middles, aheads = _gain(dynamics, second, means[first], roots[first])
        means, mean, cov = means.copy(), np.zeros((count, size)), np.zeros((count, size, size))
        for who, now, after in _backward(rows):
            if after is not None:
                at = number[now]
                gain = gains[at]
                pair = gain @ cov[who]
                means[now] = middles[at] + apply(gain, mean[who] - aheads[at])
                covs[now] = _even(spreads[at] + pair @ _turned(gain))
                out.cross[after] = _turned(pair)
            mean[who], cov[who] = means[now], covs[now]
        middle, spread = means[every], covs[every]
        precision = inverse(spread)
        natural = join(apply(precision, middle), -0.5 * flat(precision))
        squares = spread + middle[:, :, None] * middle[:, None, :]
        out.natural[every], moments[every] = natural, join(middle, flat(squares))
        finite = np.isfinite(natural).all(axis=1) & np.isfinite(moments[every]).all(axis=1)
        sound[owner[~finite]] = False
    return sound


def predict(rows: OrderedRows, dynamics: Dynamics, evidence: Array) -> tuple[Array, Array, Bools]:
    """Return mean and covariance of every state given the evidence before it, and what is sound."""
    size = dynamics.mean.shape[1]
    mean, cov = np.zeros((len(evidence), size)), np.zeros((len(evidence), size, size))
    with np.errstate(all="ignore"):
        scratch = np.empty_like(evidence), np.empty(len(evidence))
        return mean, cov, _filter(rows, dynamics, evidence, *scratch, mean, cov)


def draw(rows: OrderedRows, dynamics: Dynamics, evidence: Array, noise: Array) -> Bools:
    """Turn standard Normal numbers (draws, rows, K) into joint draws of the sequences, in place."""
    size, out = dynamics.mean.shape[1], np.empty_like(evidence)
    with np.errstate(all="ignore"):
        sound = _filter(rows, dynamics, evidence, out, np.empty(len(evidence)))
        for _, now, after in _backward(rows):
            filtered, root = _split(out[now], size)
            if after is None:
                noise[:, now] = filtered + apply(_turned(root), noise[:, now])
                continue
            root, _, gain, mean, ahead = _gain(dynamics, after, filtered, root)
            own = apply(_turned(root), noise[:, now])
            noise[:, now] = mean + apply(gain, noise[:, after] - ahead) + own
    return sound


def _filter(
    rows: OrderedRows,
    dynamics: Dynamics,
    evidence: Array,
    out: Array,
    log_det: Array,
    predicted: Array | None = None,
    spread: Array | None = None,
) -> Bools:
    """Write filtered means and M of all rows; return which sequences are sound."""
    size, (log_start, log_noise) = dynamics.mean.shape[1], dynamics.log_det
    sound = np.ones(len(rows.begin), dtype=bool)
    lengths = rows.end - rows.begin
    owner, place = ragged(rows.begin, lengths)
    every = rows.order[place]
    moving = size if len(dynamics.back) else 1
    log_det[every] = -log_noise[dynamics.kind[every]] - moving * np.log(dynamics.step[every])
    inners, sees = np.empty((len(evidence), size, size)), _evidence(rows, dynamics, evidence)
    for t in range(int(lengths.max(initial=0))):
        who = np.flatnonzero(lengths > t)
        now = rows.order[rows.begin[who] + t]
        if t == 0:
            mean, cov = dynamics.mean[dynamics.start[who]], dynamics.cov[dynamics.start[who]]
            log_det[now] = -log_start[dynamics.start[who]]
        else:
            before, root = _split(out[rows.order[rows.begin[who] + t - 1]], size)
            kind, step = dynamics.kind[now], dynamics.step[now]
            cov = step[:, None, None] * dynamics.noise[kind] + _square(root @ dynamics.matrix[kind])
            mean = _ahead(dynamics, now, before)
        if predicted is not None and spread is not None:
            predicted[now], spread[now] = mean, cov
        lower, seen = cholesky(cov), sees[now]
        inner = inners[now] = cholesky(np.eye(size) + _turned(lower) @ seen @ lower)
        root = _solve(inner, _turned(lower))
        slope, base = evidence[now, :size] - apply(seen, mean), mean
        far = _far(mean, _square(root))
        if len(far):
            slope[far], base = evidence[now[far], :size], np.array(mean)
            white = _solve(lower[far], mean[far][:, :, None])
            white = _solve(inner[far] @ _turned(inner[far]), white)
            base[far] = (lower[far] @ white)[:, :, 0]
        out[now, :size] = base + apply(_turned(root), apply(root, slope))
        out[now, size:] = flat(root)
    log_det[every] += log_det_root(inners[every])
    sound[owner[~np.isfinite(log_det[every])]] = False
    return sound


def _evidence(rows: OrderedRows, dynamics: Dynamics, evidence: Array) -> Array:
    """Return the precision that each row adds: its own, and what the next state is uncertain of."""
    size = dynamics.mean.shape[1]
    seen = -2 * symmetric(evidence[:, size:], size)
    if len(dynamics.spread):
        owner, place = ragged(rows.begin, rows.end - rows.begin)
        more = place[place + 1 < rows.live[owner]]
        coming = rows.order[more + 1]
        spread_of = dynamics.spread[dynamics.kind[coming]]
        seen[rows.order[more]] += spread_of / dynamics.step[coming][:, None, None]
    return np.asarray(seen)


def _gain(
    dynamics: Dynamics, after: Ints, filtered: Array, root: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Return N, C and G of states given the next ones, and the means of `gain_of`: m and a.

    E[x_t | x_(t+1)] = m + G (x_(t+1) - a).
    """
    kind, step = dynamics.kind[after], dynamics.step[after][:, None, None]
    if not len(dynamics.back):
        noise = step[:, 0, 0] * dynamics.noise[kind][:, 0, 0]
        gain, variance = lag_gain(_square(root), dynamics.matrix[kind][:, :, 0], noise)
        cov = np.zeros_like(gain)
        cov[:, -1, -1] = variance
        return np.sqrt(cov), cov, gain, filtered, _ahead(dynamics, after, filtered)
    inner = np.eye(root.shape[-1]) + root @ dynamics.gram[kind] @ _turned(root) / step
    given = _solve(cholesky(inner), root)
    cov = _square(given)
    mean, ahead = filtered, _ahead(dynamics, after, filtered)
    far = _far(filtered, cov)
    if len(far):
        mean, some = np.array(filtered), root[far]
        white = _solve(_turned(some), filtered[far][:, :, None])
        mean[far] = (_turned(some) @ _solve(inner[far], white))[:, :, 0]
        ahead[far] = dynamics.offset[after][far] if len(dynamics.offset) else 0.0
    return given, cov, cov @ dynamics.back[kind] / step, mean, ahead


def _far(mean: Array, cov: Array) -> Ints:
    """Return which means are so large beside their covariance that differences fail."""
    spread = np.sqrt(np.einsum("nii->n", cov))
    return np.flatnonzero(np.abs(mean).max(axis=1) > FAR * spread)


def _ahead(dynamics: Dynamics, after: Ints, mean: Array) -> Array:
    """Return A mean + c, the prediction of the next states."""
    found = np.einsum("nk,nki->ni", mean, dynamics.matrix[dynamics.kind[after]])
    return found + dynamics.offset[after] if len(dynamics.offset) else found


def _backward(rows: OrderedRows) -> Iterator[tuple[Ints, Ints, Ints | None]]:
    """Yield sequences, their rows at one step and at the next (None at the last), last first."""
    lengths = rows.end - rows.begin
    for t in range(int(lengths.max(initial=0)) - 1, -1, -1):
        last = np.flatnonzero(lengths == t + 1)
        if len(last):
            yield last, rows.order[rows.begin[last] + t], None
        who = np.flatnonzero(lengths > t + 1)
        if len(who):
            now = rows.begin[who] + t
            yield who, rows.order[now], rows.order[now + 1]


def _split(out: Array, size: int) -> tuple[Array, Array]:
    return out[:, :size], out[:, size:].reshape(len(out), size, size)


def _turned(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


def _even(matrix: Array) -> Array:
    return np.asarray(0.5 * (matrix + _turned(matrix)))


def _square(root: Array) -> Array:
    return _even(_turned(root) @ root)


def _solve(matrix: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
