"""Sums over rows as products of matrices, against sums row by row."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from svmp.network.means import row_sums

SHAPES = [(0, 3), (1, 1), (255, 4), (256, 30), (257, 30), (700, 2), (9000, 1)]
OWNERS = [1, 3, 400]
"""Numbers of owners: one, few with many rows each, and many, some of them without rows."""


def drawn(rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(rows + width)
    return rng.normal(size=(rows, width)), rng.gamma(2, size=rows)


def owners(rows: int, count: int) -> np.ndarray:
    return np.sort(np.random.default_rng(count).integers(0, count, rows))


@pytest.mark.parametrize(("rows", "width"), SHAPES)
def test_sums_over_all_rows(rows: int, width: int) -> None:
    x, weight = drawn(rows, width)
    vector, matrix = np.arange(1.0, width + 1), np.cov(np.eye(width + 2)[:, :width].T)
    matrix = matrix.reshape(width, width)
    np.testing.assert_allclose(row_sums.times_vector(x, vector), (x * vector).sum(axis=1))
    expected = (weight[:, None] * x).sum(axis=0)
    np.testing.assert_allclose(row_sums.weighted_sum(x, weight), expected, rtol=1e-10)
    for w in (weight, None):
        scaled = x if w is None else w[:, None] * x
        expected = np.einsum("rk,rl->kl", scaled, x)
        np.testing.assert_allclose(row_sums.weighted_gram(x, w), expected, rtol=1e-9, atol=1e-9)
    expected = np.einsum("rk,kl,rl->r", x, matrix, x)
    np.testing.assert_allclose(row_sums.quadratic_forms(x, matrix), expected, atol=1e-12)


@pytest.mark.parametrize(("rows", "width"), SHAPES)
@pytest.mark.parametrize("count", OWNERS)
def test_sums_by_owner(rows: int, width: int, count: int) -> None:
    (x, weight), owner = drawn(rows, width), owners(rows, count)
    sums, grams = np.zeros((count, width)), np.zeros((count, width, width))
    np.add.at(sums, owner, weight[:, None] * x)
    np.add.at(grams, owner, weight[:, None, None] * x[:, :, None] * x[:, None, :])
    found = row_sums.sums_by_owner(x, weight, owner, count)
    np.testing.assert_allclose(found, sums, rtol=1e-9, atol=1e-11)
    found = row_sums.grams_by_owner(x, weight, owner, count)
    np.testing.assert_allclose(found, grams, rtol=1e-9, atol=1e-9)
    found = row_sums.grams_by_owner(x, np.ones(rows), owner, count)
    expected = row_sums.grams_by_owner(x, None, owner, count)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("rows", "width"), SHAPES)
@pytest.mark.parametrize("count", OWNERS)
def test_quadratic_forms_by_owner(rows: int, width: int, count: int) -> None:
    x, _ = drawn(rows, width)
    rng = np.random.default_rng(7)
    matrices, owner = rng.normal(size=(count, width, width)), rng.integers(0, count, rows)
    matrices += matrices.swapaxes(1, 2)
    expected = np.einsum("rk,rkl,rl->r", x, matrices[owner], x)
    found = row_sums.quadratic_forms_by_owner(x, matrices, owner)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


PROGRAM = """
import sys
import numpy as np
from svmp.network.means.row_sums import (
    quadratic_forms, times_matrix, times_vector, weighted_gram, weighted_sum,
)
rng = np.random.default_rng(0)
for rows, width in [(1001, 33), (10_000, 60), (5003, 200), (100_000, 1), (3000, 512)]:
    x, w, v = rng.normal(size=(rows, width)), rng.normal(size=rows), rng.normal(size=width)
    s = rng.normal(size=(width, width))
    for found in (times_vector(x, v), weighted_sum(x, w), weighted_gram(x, w), weighted_gram(x),
                  quadratic_forms(x, s)):
        sys.stdout.buffer.write(found.tobytes())
for shape in [(500, 200, 64), (10, 8, 10_000), (100, 1000, 25), (20_000, 25, 4), (7, 700, 300)]:
    rows, inner, columns = shape
    x, y = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns))
    for left, right in ((x, y), (np.asfortranarray(x), np.asfortranarray(y))):
        sys.stdout.buffer.write(times_matrix(left, right).tobytes())
"""


@pytest.mark.parametrize("rows", [0, 1, 33, 400])
@pytest.mark.parametrize("inner", [0, 1, 256, 600])
@pytest.mark.parametrize("columns", [0, 1, 70, 2000])
def test_products_of_matrices_by_tiles(rows: int, inner: int, columns: int) -> None:
    rng = np.random.default_rng(rows + inner + columns)
    x, y = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns))
    expected = np.einsum("rk,kc->rc", x, y)
    np.testing.assert_allclose(row_sums.times_matrix(x, y), expected, rtol=1e-9, atol=1e-10)


def test_any_number_of_blas_threads_gives_the_same_bits() -> None:
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    found = []
    for threads in ("1", "2", "3"):
        environment = {**os.environ, **dict.fromkeys(names, threads)}
        run = [sys.executable, "-c", PROGRAM]
        folder = Path(__file__).parents[2]
        done = subprocess.run(run, env=environment, cwd=folder, capture_output=True, check=True)
        found.append(done.stdout)
    assert found[0]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("owner", [[0, 1, 2], [0, 0, 2]])
def test_sums_of_single_precision_are_of_double_precision(owner: list[int]) -> None:
    values = np.array([[1.5], [2.5], [4.0]], dtype=np.float32)
    found = row_sums.sum_by_owner(values, np.array(owner), 3)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [values[np.equal(owner, k)].sum(axis=0) for k in range(3)])
