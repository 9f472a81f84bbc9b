"""Solving sequences of a chain of vectors: expected dynamics, and Kalman smoothing on them.

With A, B and tau independent in q, exp E[log p(x_t | x_(t-1))] is a transition with the expected
parameters, times exp(-x_(t-1)' V x_(t-1) / 2) for the spread V of A, which is evidence on the state
before. With categories of weight w_k the precision is T = sum_k w_k E[tau_k], the matrix is A =
T^-1 sum_k w_k E[tau_k A_k], and V has sum_k w_k (E[A_k] - A)' E[tau_k] (E[A_k] - A) in addition.

Rows after the last with observed descendants get no such evidence: their q is a prediction.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.families.matrix import apply, inverse, log_det, symmetric
from svmp.kernels.chains import smoother
from svmp.kernels.chains.dynamics import Dynamics, OrderedRows, Output
from svmp.kernels.chains.pair_sums import PairRows, pair_sums
from svmp.network.beliefs import Beliefs
from svmp.network.chains import disturbances
from svmp.network.chains.chain import Chain
from svmp.network.chains.linear_chain import LinearChain
from svmp.network.chains.sequences import Spans
from svmp.network.chains.transition import Pairs
from svmp.network.grid import Ints

SQUARES = 1e8
"""Condition from which disturbances are no longer differences of moments: 8 digits are left."""
WITHOUT_SQUARES, WITH_SQUARES = 1e11, 1e26
"""Conditions that are refused, where disturbances are differences of moments and where not."""
VAGUE = 1e6
"""Variance of the start of a span within a sequence, in variances of a step."""
Parts = tuple[Array, Array, Array, Array, Array]
"""A', Q, A' tau, A' tau A and log|Q| of each kind of transition."""


def solve_vectors(how: ModuleType, chain: Chain, q: Beliefs, spans: Spans, messages: Array) -> None:
    """Solve spans of sequences of vectors; `how` is the module with the smoother."""
    assert isinstance(chain, LinearChain)
    name, rows = chain.variable.name, spans.rows
    steps, dynamics, evidence = expected(chain, q, spans, messages)
    whole = spans.whole and chain.sequences.in_table_order
    joint = q.joint[name]
    if whole:
        out = Output(q.natural[name], q.moments[name], joint["cross"], joint["log_det"])
    else:
        out = Output.empty(len(rows), chain.size)
    sound = how.smooth(steps, dynamics, evidence, out)
    if not sound.all():
        number = int(np.argmin(sound))
        begin, end = int(steps.begin[number]), int(steps.end[number])
        refuse(how, chain, q, spans.one(number), messages[begin:end])
    if not whole:
        q.natural[name][rows], q.moments[name][rows] = out.natural, out.moments
        joint["cross"][rows], joint["log_det"][rows] = out.cross, out.log_det
    _keep_digits(chain, q, spans, dynamics)
    joint.pop("pairs", None)
    if spans.whole and chain.selector is None and how is smoother:
        joint["pairs"] = _sums(chain, q, spans.live)
    q.version += 1


def renew_pairs(chain: LinearChain, q: Beliefs, present: Ints | None) -> None:
    """Add up the moments of pairs again, where they are kept: all means have changed."""
    joint = q.joint[chain.variable.name] = dict(q.joint[chain.variable.name])
    if "pairs" in joint:
        joint["pairs"] = _sums(chain, q, chain.sequences.live(present))


def _sums(chain: LinearChain, q: Beliefs, live: Ints) -> Array:
    """Return the moments of all pairs of rows that count, summed by group."""
    joint, moments = q.joint[chain.variable.name], q.moments[chain.variable.name]
    pairs = pair_rows(chain, live)
    if "steps" in joint:
        return chain.sum_pairs(q, pairs.rows, chain.group[pairs.rows])
    lines = pair_sums(pairs, chain.group_count, moments, joint["cross"], chain.moving)
    if chain.known is None:
        return lines
    return Pairs.of(lines, chain.moving, chain.width).about(chain.known).lines()


def _keep_digits(chain: LinearChain, q: Beliefs, spans: Spans, dynamics: Dynamics) -> None:
    """Compute covariances of disturbances as sums of squares where their condition asks for it.

    Refuse conditions that leave too few digits of the variances of steps.
    """
    name, size, rows = chain.variable.name, chain.size, spans.rows
    joint = q.joint[name]
    if spans.whole:
        joint.pop("steps", None)
    M, tau, _ = chain.by_group(q)
    moments = q.moments[name] if spans.whole else q.moments[name][rows]
    largest = moments[:, size :: size + 1].max(initial=0.0)
    reach = 1 + np.abs(M[:, :, :size]).sum(axis=2).max(initial=0.0)
    crude = np.einsum("gii->gi", tau).max(initial=0.0) * reach**2 * largest
    if "steps" not in joint and crude <= SQUARES * chain.least_step:
        return
    later = _later(chain, spans)
    worst, condition = _worst(chain, q, rows[later], M[:, :, :size], tau)
    if "steps" not in joint and condition <= SQUARES:
        return
    diagonal = np.einsum("gii->gi", tau)
    apart = float((diagonal.max(axis=1) / diagonal.min(axis=1)).max())
    differences = chain.known is None and condition > WITHOUT_SQUARES
    if condition > SQUARES and (differences or condition * apart**2 > WITH_SQUARES):
        raise ModelError(too_small(name, worst, condition))
    if chain.known is None:
        return
    steps = joint.get("steps")
    if steps is None:
        steps = _differences(chain, q)
    some, kind = rows[later], dynamics.kind[later]
    noise = chain.step[some][:, None, None] * dynamics.noise[kind]
    A, natural = chain.known[chain.group[some]][:, :, :size], q.natural[name][some]
    steps[some] = disturbances.covariances(natural, joint["cross"][some], A, noise)
    joint["steps"] = steps


def _later(chain: LinearChain, spans: Spans) -> Ints:
    """Return the places of the rows of spans that follow another and have observed descendants."""
    lengths = np.diff(spans.starts)
    place = np.arange(len(spans.rows)) - np.repeat(spans.starts[:-1], lengths)
    counts = place < np.repeat(spans.live, lengths)
    return np.flatnonzero(counts & (chain.sequences.previous[spans.rows] >= 0))


def _worst(
    chain: LinearChain, q: Beliefs, later: Ints, A: Array, tau: Array
) -> tuple[int, float]:  # fmt: skip
    """Return the row whose disturbance has the worst condition, and that condition."""
    if not len(later):
        return -1, 0.0
    moments = q.moments[chain.variable.name]
    now, before = moments[later], moments[chain.sequences.previous[later]]
    found = np.zeros(len(later))
    for k in range(chain.components):
        kind = chain.group[later] * chain.components + k
        precision = tau[kind] / chain.step[later][:, None, None]
        found = np.maximum(
            found, disturbances.conditions(now, before, A[kind], precision, chain.size)
        )
    place = int(np.argmax(found))
    return int(later[place]), float(found[place])


def _differences(chain: LinearChain, q: Beliefs) -> Array:
    """Return the covariances of disturbances as differences of moments, of all rows."""
    name, size = chain.variable.name, chain.size
    rows = np.flatnonzero(chain.sequences.previous >= 0)
    moments, cross = q.moments[name], q.joint[name]["cross"]
    assert chain.known is not None
    A, before = chain.known[chain.group[rows]][:, :, :size], chain.sequences.previous[rows]
    found = np.zeros((chain.variable.size, size, size))
    found[rows] = disturbances.differences(moments[rows], moments[before], cross[rows], A)
    return found


def too_small(name: str, row: int, condition: float) -> str:
    """Say that steps are too small beside states."""
    return (
        f"the precision tau of the steps of '{name}' at row {row} is about {condition:.0e} times "
        "1 / E[x^2] of its states, which leaves too few digits of the variance of a step; subtract "
        "a constant from the data, use a smaller tau, or declare one state for all rows"
    )


def pair_rows(chain: LinearChain, live: Ints) -> PairRows:
    """Return the transitions that count, by group; they are kept with the chain."""
    if "pair rows" not in chain.derived:
        sequences = chain.sequences
        place = np.arange(len(sequences.order)) - np.repeat(
            sequences.starts[:-1], sequences.lengths
        )
        rows = np.sort(sequences.order[(place > 0) & (place < np.repeat(live, sequences.lengths))])
        rows = rows[np.argsort(chain.group[rows], kind="stable")]
        chain.derived["pair rows"] = PairRows.of(
            rows, chain.group[rows], sequences.previous, chain.inputs, chain.step
        )
    found: PairRows = chain.derived["pair rows"]
    return found


def expected(
    chain: LinearChain, q: Beliefs, spans: Spans, messages: Array
) -> tuple[OrderedRows, Dynamics, Array]:
    """Return some spans of sequences, their expected dynamics, and their evidence.

    `messages` are those of the children of each row.
    """
    size, rows = chain.size, spans.rows
    begin, end = spans.starts[:-1], spans.starts[1:]
    lengths = end - begin
    steps = OrderedRows(np.arange(len(rows)), begin, end, begin + spans.live)
    mean, cov, log_start = starts(chain, q, spans)
    step = chain.step[rows]
    if chain.selector is None:
        parts, pull = by_group(chain, q)
        kind, offset = chain.group[rows], offsets(chain, q, rows)
    else:
        parts, pull, offset, slope = by_row(chain, q, rows)
        kind = np.arange(len(rows))
        if len(slope):
            alive = np.arange(len(rows)) < np.repeat(steps.live, lengths)
            alive[begin[lengths > 0]] = False
            later = np.flatnonzero(alive)
            messages = np.array(messages)
            messages[later - 1, :size] += slope[later] / step[later, None]
    spread = np.ascontiguousarray(pull) if pull.any() else np.zeros((0, size, size))
    A, noise, back, gram, log_noise = parts
    first, log_dets = np.arange(len(begin)), (log_start, log_noise)
    dynamics = Dynamics(
        mean, cov, first, A, noise, back, gram, spread, log_dets, kind, step, offset
    )
    return steps, dynamics, np.ascontiguousarray(messages)


def starts(chain: LinearChain, q: Beliefs, spans: Spans) -> tuple[Array, Array, Array]:
    """Return the mean, the covariance and its log-determinant of the first states of spans.

    That of a sequence that goes on follows from its last state: x_1 ~ N(A m + c, A P A' + s Q),
    where P is the covariance of the last state after the evidence that its transition adds, unless
    the sequence has no observed descendants. A span that begins within its sequence has a vague
    start.
    """
    rows, size = spans.firsts, chain.size
    given = chain.start_moments(q, rows)
    cov = inverse(given["tau"][:, :-1].reshape(-1, size, size))
    mean = np.array(np.broadcast_to(given["mu"][:, :size], (len(rows), size)))
    cov = np.array(np.broadcast_to(cov, (len(rows), size, size)))
    places, earlier = chain.entering(q, rows)
    if len(places):
        some, step = rows[places], chain.first_step[rows[places]]
        turned, noise, pull, offset, slope = transitions_to(chain, q, some)
        told = (spans.live[places] > 0) / step
        tau = -2 * symmetric(earlier[:, size:], size) + told[:, None, None] * pull
        linear = earlier[:, :size] + (told[:, None] * slope if len(slope) else 0.0)
        last, A = inverse(tau), np.swapaxes(turned, 1, 2)
        mean[places] = apply(A, apply(last, linear)) + (offset if len(offset) else 0.0)
        cov[places] = A @ last @ turned + step[:, None, None] * noise
    if spans.within is not None and spans.within.any():
        some = rows[spans.within]
        _, noise, *_ = transitions_to(chain, q, some)
        spread = np.einsum("nkk->nk", noise)
        spread = np.where(spread > 0, spread, spread.max(axis=1, keepdims=True))  # of copies
        spread = VAGUE * chain.step[some][:, None] * spread
        cov[spans.within] += spread[:, :, None] * np.eye(size)
    return mean, cov, log_det(cov)


def transitions_to(
    chain: LinearChain, q: Beliefs, rows: Ints
) -> tuple[Array, Array, Array, Array, Array]:
    """Return A', Q, V, c and the linear evidence on the state before, of each of some rows."""
    if chain.selector is not None:
        parts, pull, offset, slope = by_row(chain, q, rows)
        return parts[0], parts[1], pull, offset, slope
    parts, pull = by_group(chain, q)
    of, none = chain.group[rows], np.zeros((0, chain.size))
    return parts[0][of], parts[1][of], pull[of], offsets(chain, q, rows), none


def by_group(chain: LinearChain, q: Beliefs) -> tuple[Parts, Array]:
    """Return A', Q, A' tau, A' tau A and log|Q| of each group, and the spread of A."""
    mean, tau, pull = chain.by_group(q)
    A, noise = chain.whole_steps(mean, tau)
    if chain.moving == chain.size:
        return parts_of(A, noise, tau), pull
    turned, none = np.ascontiguousarray(np.swapaxes(A, -1, -2)), np.zeros((0, *A.shape[1:]))
    return (turned, noise, none, none, -log_det(tau)), pull


def parts_of(A: Array, noise: Array, tau: Array) -> Parts:
    """Return the arrays of `Dynamics` for matrices A with covariances `noise` = tau^-1."""
    back = np.ascontiguousarray(np.swapaxes(A, -1, -2) @ tau)
    turned = np.ascontiguousarray(np.swapaxes(A, -1, -2))
    return turned, np.ascontiguousarray(noise), back, back @ A, log_det(noise)


def offsets(chain: LinearChain, q: Beliefs, rows: Ints) -> Array:
    """Return E[B] u at each row; no rows without inputs."""
    if not chain.inputs.shape[1]:
        return np.zeros((0, chain.size))
    mean, _, _ = chain.by_group(q)
    return apply(mean[:, :, chain.size :][chain.group[rows]], chain.inputs[rows])


def by_row(chain: LinearChain, q: Beliefs, rows: Ints) -> tuple[Parts, Array, Array, Array]:
    """Return the dynamics of each row with the weights of its categories.

    Also the evidence that they add to the state before: the matrices V, and linear terms.
    """
    size = chain.size
    assert chain.selector is not None
    weight = chain.selector.moments(q, rows)
    mean, tau, pull = (
        part.reshape(-1, chain.components, *part.shape[1:])[chain.group[rows]]
        for part in chain.by_group(q)
    )
    tau = weight[:, :, None, None] * tau
    A, B = mean[..., :size], mean[..., size:]
    total = tau.sum(axis=1)
    noise = inverse(total)
    matrix = noise @ (tau @ A).sum(axis=1)
    apart = A - matrix[:, None]
    spread = np.swapaxes(apart, -1, -2) @ tau @ apart
    V = (spread + weight[:, :, None, None] * pull).sum(axis=1)
    if not B.shape[-1]:
        return parts_of(matrix, noise, total), V, np.zeros((0, size)), np.zeros((0, size))
    pushes = (tau @ B) @ chain.inputs[rows][:, None, :, None]
    offset = apply(noise, pushes[..., 0].sum(axis=1))
    # A_k' tau_k (B_k u), of which the transition with the mean parameters has A' T c already.
    linear = (np.swapaxes(A, -1, -2) @ pushes)[..., 0].sum(axis=1)
    slope = apply(np.swapaxes(matrix, -1, -2), apply(total, offset)) - linear
    return parts_of(matrix, noise, total), V, offset, slope


def refuse(how: ModuleType, chain: LinearChain, q: Beliefs, span: Spans, messages: Array) -> None:
    """Say why and from which row on a sequence has no proper q in numbers of a computer."""
    name, sequence = chain.variable.name, int(span.sequence[0])
    steps, dynamics, evidence = expected(chain, q, span, messages)
    _, cov, _ = how.predict(steps, dynamics, evidence)
    spread = np.einsum("tkk->tk", cov)
    bad = np.flatnonzero(~(np.isfinite(spread) & (spread > 0)).all(axis=1))
    place = int(bad[0]) if len(bad) else len(spread) - 1
    row = int(span.rows[place])
    mean, tau, _ = chain.by_group(q)
    A, _ = chain.whole_steps(mean, tau)
    radius = float(np.abs(np.linalg.eigvals(A)).max())
    why = "precisions or observations are too far apart to compute with; use other units"
    if radius > 1:
        why = (
            f"the spectral radius of A is {radius:.4g}, so that without observations states grow "
            f"by a factor of 1e{place * np.log10(radius):.0f} in {place:,} steps; fix A, give it "
            "a prior that is close to stable values, or divide the sequence where nothing is "
            "observed"
        )
    raise ModelError(f"'{name}' has no finite q from row {row} of sequence {sequence} on: {why}")
