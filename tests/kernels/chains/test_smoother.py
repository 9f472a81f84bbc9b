"""Gaussian chains against dense solves of the whole precision matrix."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from svmp.families import MvNormal
from svmp.families.family import Array
from svmp.kernels.chains import plain_smoother, smoother
from svmp.kernels.chains.dynamics import Dynamics, OrderedRows, Output
from svmp.kernels.machine.threads import use_threads

BOTH = pytest.mark.parametrize("how", [smoother, plain_smoother], ids=["compiled", "plain"])
DRAWS = 20_000


def turned(matrix: Array) -> Array:
    return np.ascontiguousarray(np.swapaxes(matrix, -1, -2))


def dynamics(
    A: Array, Q: Array, mean: Array, cov: Array, start: Array, kind: Array, **other: Array
) -> Dynamics:
    """Return dynamics from transition matrices A, their noise Q, and starts."""
    n, size = len(kind), A.shape[-1]
    back = turned(A) @ np.linalg.inv(Q)
    log_det = np.linalg.slogdet(cov)[1], np.linalg.slogdet(Q)[1]
    step, offset = other.get("step", np.ones(n)), other.get("offset", np.zeros((0, size)))
    none = np.zeros((0, size, size))
    arrays = (turned(A), Q, np.ascontiguousarray(back), back @ A, other.get("spread", none))
    return Dynamics(mean, cov, start, *arrays, log_det, kind, step, offset)


def example(
    size: int, lengths: list[int], seed: int, offsets: bool = True
) -> tuple[OrderedRows, Dynamics, Array]:
    """Return ragged sequences in mixed rows, with rows without evidence."""
    rng, n = np.random.default_rng(seed), sum(lengths)

    def covariances(count: int) -> Array:
        root = rng.normal(size=(count, size, size))
        return root @ turned(root) + 0.3 * np.eye(size)

    order, end = rng.permutation(n), np.cumsum(lengths)
    live = end - rng.integers(0, 3, len(end)) * (np.array(lengths) > 3)  # the last rows are barren
    rows = OrderedRows(order, end - lengths, end, live)
    found = dynamics(
        0.7 * rng.normal(size=(2, size, size)),
        covariances(2),
        rng.normal(size=(2, size)),
        covariances(2),
        rng.integers(0, 2, len(lengths)),
        rng.integers(0, 2, n),
        step=rng.uniform(0.5, 2, n),
        spread=covariances(2) if offsets else np.zeros((0, size, size)),
        **({"offset": rng.normal(size=(n, size))} if offsets else {}),
    )
    root = rng.normal(size=(n, size, size)) * (rng.random((n, 1, 1)) < 0.7)
    root[:, :, 0] = 0  # one direction is never seen
    for last, stop in zip(live, end, strict=True):
        root[order[last:stop]] = 0
    evidence = np.concatenate(
        [(root @ rng.normal(size=(n, size, 1)))[:, :, 0], np.zeros((n, size**2))], axis=1
    )
    evidence[:, size:] = -0.5 * (root @ turned(root)).reshape(n, -1)
    return rows, found, evidence


def dense(
    rows: OrderedRows, found: Dynamics, evidence: Array, s: int
) -> tuple[Array, Array, Array, Array]:
    """Return the rows, the means, the covariance and the precision of one sequence."""
    mine = rows.order[rows.begin[s] : rows.end[s]]
    size = found.mean.shape[1]
    precision, linear = np.zeros((len(mine) * size,) * 2), np.zeros(len(mine) * size)
    tau = np.linalg.inv(found.cov[found.start[s]])
    precision[:size, :size], linear[:size] = tau, tau @ found.mean[found.start[s]]
    for t, row in enumerate(mine):
        now = slice(t * size, (t + 1) * size)
        precision[now, now] -= 2 * evidence[row, size:].reshape(size, size)
        linear[now] += evidence[row, :size]
        if t:
            both = slice((t - 1) * size, (t + 1) * size)
            slopes = np.hstack([-found.matrix[found.kind[row]].T, np.eye(size)])
            tau = np.linalg.inv(found.noise[found.kind[row]] * found.step[row])
            precision[both, both] += slopes.T @ tau @ slopes
            if len(found.spread) and rows.begin[s] + t < rows.live[s]:
                before = slice((t - 1) * size, t * size)
                spread = found.spread[found.kind[row]] / found.step[row]
                precision[before, before] += spread
            if len(found.offset):
                linear[both] += slopes.T @ tau @ found.offset[row]
    cov = np.linalg.inv(precision)
    return mine, (cov @ linear).reshape(len(mine), size), cov, precision


@BOTH
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_moments_match_a_dense_solve(how: ModuleType, size: int) -> None:
    rows, given, evidence = example(size, [1, 4, 7, 2, 5], seed=size, offsets=size != 2)
    out = Output.empty(len(evidence), size)
    assert how.smooth(rows, given, evidence, out).all()
    moments, family = out.moments, MvNormal(size)
    for s in range(5):
        mine, mean, cov, precision = dense(rows, given, evidence, s)
        blocks = cov.reshape(len(mine), size, len(mine), size).swapaxes(1, 2)
        own = np.arange(len(mine))
        square = blocks[own, own] + mean[:, :, None] * mean[:, None, :]
        np.testing.assert_allclose(moments[mine, :size], mean, atol=1e-11)
        np.testing.assert_allclose(moments[mine, size:], square.reshape(len(mine), -1), atol=1e-11)
        np.testing.assert_allclose(family.moments(out.natural[mine]), moments[mine], atol=1e-11)
        log_det = np.linalg.slogdet(precision)[1]
        assert out.log_det[mine].sum() == pytest.approx(log_det, abs=1e-11)
        np.testing.assert_allclose(out.cross[mine[1:]], blocks[own[1:], own[:-1]], atol=1e-11)
        assert not out.cross[mine[0]].any()


@BOTH
def test_draws_are_joint(how: ModuleType) -> None:
    rows, given, evidence = example(2, [3, 1, 4], seed=0)
    draws = np.random.default_rng(1).standard_normal((DRAWS, 8, 2))
    assert how.draw(rows, given, evidence, draws).all()
    for s in range(3):
        mine, mean, cov, _ = dense(rows, given, evidence, s)
        some = draws[:, mine].reshape(DRAWS, -1)
        error = np.sqrt(np.diag(cov) / DRAWS)
        assert np.all(np.abs(some.mean(axis=0) - mean.ravel()) < 5 * error)
        scale = np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
        assert np.all(np.abs(np.cov(some.T) - cov) < 5 * np.sqrt(2 / DRAWS) * scale)


@BOTH
def test_predictions_are_conditional_on_the_past(how: ModuleType) -> None:
    rows, given, evidence = example(3, [1, 5], seed=3)
    mean, cov, sound = how.predict(rows, given, evidence)
    assert sound.all()
    mine = rows.order[1:]
    for t, row in enumerate(mine):
        past = evidence.copy()
        past[mine[t:]] = 0
        end = np.array([1, 2 + t])
        short = OrderedRows(rows.order[: 2 + t], rows.begin, end, np.minimum(rows.live, end))
        _, m, S, _ = dense(short, given, past, 1)
        np.testing.assert_allclose(mean[row], m[-1], atol=1e-12)
        np.testing.assert_allclose(cov[row], S[-3:, -3:], atol=1e-12)


def test_threads_have_the_same_bits() -> None:
    rows, given, evidence = example(3, [40] * 300, seed=5)
    found = []
    for threads in (1, 2):
        out = Output.empty(len(evidence), 3)
        with use_threads(threads, tell=False):
            found.append((*out, smoother.smooth(rows, given, evidence, out)))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@BOTH
def test_no_digits_are_lost_where_nothing_is_seen(how: ModuleType) -> None:
    """Random walk from a vague start, seen once at the end, in closed form."""
    n, vague, tiny = 30, 1e12, 1e-12
    one = np.ones((1, 1, 1))
    none = np.zeros(n, dtype=np.int64)
    given = dynamics(one, tiny * one, np.zeros((1, 1)), vague * one, none[:1], none)
    evidence = np.zeros((n, 2))
    evidence[-1] = 3.0 / 0.5, -0.5 / 0.5
    out = Output.empty(n, 1)
    rows = OrderedRows(np.arange(n), np.zeros(1, dtype=np.int64), np.array([n]), np.array([n]))
    assert how.smooth(rows, given, evidence, out).all()
    moments = out.moments
    np.testing.assert_allclose(moments[:, 0], 3.0, rtol=1e-12)
    steps = np.arange(n)[::-1] * tiny
    var = 1 / (1 / (vague + np.arange(n) * tiny) + 1 / (0.5 + steps))
    np.testing.assert_allclose(moments[:, 1] - moments[:, 0] ** 2, var, rtol=1e-10)


@BOTH
def test_overflow_is_not_sound(how: ModuleType) -> None:
    n = 2000
    none = np.zeros(n, dtype=np.int64)
    one = np.ones((1, 1, 1))
    given = dynamics(2 * one, one, np.zeros((1, 1)), one, none[:1], none)
    rows = OrderedRows(np.arange(n), np.zeros(1, dtype=np.int64), np.array([n]), np.array([n]))
    assert not how.smooth(rows, given, np.zeros((n, 2)), Output.empty(n, 1)).any()
