"""Vectors updated by more rows, against the same formulas in NumPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from svmp.kernels.machine.sorting import read_only
from svmp.kernels.machine.threads import CORES, share, use_threads
from svmp.kernels.vectors import more_rows
from svmp.kernels.vectors.means import TILE, SortedRows, padded

WIDTHS = [1, 3, 8, 11]
COUNTS = [5, 0, TILE + 30, 1, 17]
OTHERS = 7


class Side(NamedTuple):
    """Means and covariance matrices, and what the loops have of them."""

    mean: Any
    cov: Any
    lines: Any
    spreads: Any
    precision: Any
    pull: Any


def side(width: int, count: int, full: bool, seed: int) -> Side:
    rng = np.random.default_rng([seed, width, count])
    mean = rng.normal(size=(count, width)).astype(np.float32)
    root = rng.normal(size=(count, width, width + 3)) / 3
    cov = (root @ root.swapaxes(1, 2)).astype(np.float32)
    if not full:
        cov = cov * np.eye(width, dtype=np.float32)
    flat = cov.reshape(count, -1) if full else np.diagonal(cov, axis1=1, axis2=2)
    size = width * (width + 1) // 2 if full else width
    found = (
        np.zeros((count, padded(width)), np.float32),
        np.zeros((count, padded(size)), np.float32),
        np.empty((count, size)),
        np.empty((count, width)),
    )
    sound = np.ones(count, bool)
    keys = read_only(np.arange(count))
    share(more_rows.read_vectors, keys, read_only(mean), read_only(flat), *found, sound)
    assert sound.all()
    return Side(mean, cov, *found)


def entries(matrices: Any, full: bool) -> Any:
    """Return lower triangles, or diagonals."""
    width = matrices.shape[1]
    return matrices[:, *(np.tril_indices(width) if full else np.diag_indices(width))]


def drawn() -> tuple[Any, SortedRows]:
    rng = np.random.default_rng(3)
    key = np.repeat(np.arange(len(COUNTS)), COUNTS)
    other = rng.integers(0, OTHERS, len(key)).astype(np.int32)
    target, weight = rng.normal(size=len(key)), rng.uniform(0.5, 2, len(key))
    begin = np.concatenate([[0], np.cumsum(COUNTS)])
    return key, SortedRows(begin, other, target.astype(np.float32), weight.astype(np.float32))


@pytest.mark.parametrize(
    ("width", "full"),
    [(1, False), *((width, full) for width in WIDTHS[1:] for full in (True, False))],
)
def test_vectors_are_read_and_written(width: int, full: bool) -> None:
    q = side(width, 20, full, 0)
    precision = np.linalg.inv(q.cov.astype(np.float64))
    np.testing.assert_array_equal(q.lines[:, :width], q.mean)
    np.testing.assert_array_equal(q.spreads[:, : q.precision.shape[1]], entries(q.cov, full))
    np.testing.assert_allclose(q.precision, entries(precision, full), rtol=1e-8)
    np.testing.assert_allclose(q.pull, np.einsum("nij,nj->ni", precision, q.mean), rtol=1e-6)
    mean = np.zeros((30, width), np.float32)
    cov = np.zeros((30, width * width if full else width), np.float32)
    keys = np.random.default_rng(0).permutation(30)[:20]
    share(more_rows.write_vectors, read_only(keys), q.lines, q.spreads, mean, cov)
    np.testing.assert_array_equal(mean[keys], q.mean)
    wanted = q.cov.reshape(20, -1) if full else np.diagonal(q.cov, axis1=1, axis2=2)
    np.testing.assert_array_equal(cov[keys], wanted)
    assert not np.delete(cov, keys, axis=0).any()


@pytest.mark.parametrize("width", WIDTHS[1:])
def test_update_with_covariances_is_the_posterior(width: int) -> None:
    own, other, (key, rows) = (
        side(width, len(COUNTS), True, 1),
        side(width, OTHERS, True, 2),
        drawn(),
    )
    sound = np.ones(len(COUNTS), bool)
    q = own.lines.copy(), own.spreads.copy(), sound
    share(more_rows.update_vectors, rows, other.lines, other.spreads, own.precision, own.pull, *q)
    mean, weight = other.mean[rows.other].astype(np.float64), rows.weight
    second = mean[:, :, None] * mean[:, None] + other.cov[rows.other]
    precision = np.linalg.inv(own.cov.astype(np.float64))
    right = np.einsum("nij,nj->ni", precision, own.mean)
    np.add.at(precision, key, weight[:, None, None] * second)
    np.add.at(right, key, (weight * rows.target)[:, None] * mean)
    cov = np.linalg.inv(precision)
    np.testing.assert_allclose(q[0][:, :width], np.einsum("nij,nj->ni", cov, right), atol=2e-5)
    size = own.precision.shape[1]
    np.testing.assert_allclose(q[1][:, :size], entries(cov, True), rtol=1e-4, atol=1e-6)
    assert sound.all()
    assert not q[0][:, width:].any()
    assert not q[1][:, size:].any()


@pytest.mark.parametrize("width", WIDTHS)
def test_update_by_entries_is_a_coordinate_update(width: int) -> None:
    own, other, (key, rows) = (
        side(width, len(COUNTS), False, 1),
        side(width, OTHERS, False, 2),
        drawn(),
    )
    sound = np.ones(len(COUNTS), bool)
    q = own.lines.copy(), own.spreads.copy(), sound
    share(more_rows.update_entries, rows, other.lines, other.spreads, own.precision, own.pull, *q)
    for m in range(len(COUNTS)):
        v, w, r = other.mean[rows.other][key == m], rows.weight[key == m], rows.target[key == m]
        var = np.diagonal(other.cov, axis1=1, axis2=2)[rows.other][key == m]
        u, prior = own.mean[m].astype(np.float64), 1 / np.diag(own.cov[m]).astype(np.float64)
        precision = prior + (w[:, None] * (v.astype(np.float64) ** 2 + var)).sum(0)
        for k in range(width):
            rest = r - v @ u + v[:, k] * u[k]
            u[k] = (prior[k] * own.mean[m, k] + (w * v[:, k]) @ rest) / precision[k]
        np.testing.assert_allclose(q[0][m, :width], u, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(q[1][m, :width], 1 / precision, rtol=1e-5)
    assert sound.all()


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("width", WIDTHS[1:])
def test_scores_are_mean_and_variance_of_inner_products(width: int, full: bool) -> None:
    one, other = side(width, 6, full, 1), side(width, OTHERS, full, 2)
    rng = np.random.default_rng(0)
    user, item = (rng.integers(0, n, 50).astype(np.int32) for n in (6, OTHERS))
    out = np.empty((50, 2))
    q = one.lines, one.spreads, other.lines, other.spreads, width, full
    share(more_rows.score_rows, user, item, *q, out)
    m, n = one.mean[user].astype(float), other.mean[item].astype(float)
    c, d = one.cov[user].astype(float), other.cov[item].astype(float)
    second = m[:, :, None] * m[:, None] + c
    variance = (second * d).sum((1, 2)) + np.einsum("ri,rij,rj->r", n, c, n)
    np.testing.assert_allclose(out[:, 0], (m * n).sum(1), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(out[:, 1], variance, rtol=1e-5)


@pytest.mark.parametrize("loop", [more_rows.update_vectors, more_rows.update_entries])
def test_bits_do_not_depend_on_threads(loop: Any) -> None:
    full = loop is more_rows.update_vectors
    own, other, (_, rows) = side(5, len(COUNTS), full, 1), side(5, OTHERS, full, 2), drawn()
    found = []
    for threads in (1, CORES):
        q = own.lines.copy(), own.spreads.copy()
        with use_threads(threads, tell=False):
            sound = np.ones(len(COUNTS), bool)
            share(loop, rows, other.lines, other.spreads, own.precision, own.pull, *q, sound)
        found.append(q)
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def test_improper_vectors_are_detected() -> None:
    mean, cov = np.zeros((2, 2), np.float32), np.array([[1, 2, 2, 1], [1, 0, 0, 1]], np.float32)
    out = np.zeros((2, 8), np.float32), np.zeros((2, 8), np.float32), np.empty((2, 3))
    sound = np.ones(2, bool)
    keys = read_only(np.arange(2))
    q = read_only(mean), read_only(cov)
    share(more_rows.read_vectors, keys, *q, *out, np.empty((2, 2)), sound)
    assert sound.tolist() == [False, True]
