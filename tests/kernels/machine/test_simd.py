"""SIMD operations against NumPy."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from svmp.kernels.machine.simd import (
    accumulate8,
    broadcast8,
    convert8,
    fma8,
    load8,
    mean_and_variance8,
    mul8,
    prefetch,
    store8,
    sum8,
    sums8,
    transpose8,
)

njit: Any = numba.njit


@njit
def combine(a, b, c, sums, at):
    """Write a b + c, add 2 a to sums, return the sum of b: of eight numbers each."""
    prefetch(a, at)
    store8(c, at, fma8(load8(a, at), load8(b, at), load8(c, at)))
    accumulate8(sums, at, mul8(broadcast8(a.dtype.type(2)), load8(a, at)))
    return sum8(load8(b, at))


@njit
def transpose(lines, at, stride, out, to, apart):
    transpose8(lines, at, stride, out, to, apart)


@njit
def part(pairs, at, count, out):
    means, variances = mean_and_variance8(pairs, at, count, out)
    store8(out, np.uintp(0), means)
    store8(out, np.uintp(8), variances)


@njit
def add_lines(lines, out):
    at = np.arange(8).astype(np.uintp) * np.uintp(8)
    a, b, c, d = load8(lines, at[0]), load8(lines, at[1]), load8(lines, at[2]), load8(lines, at[3])
    e, f, g, h = load8(lines, at[4]), load8(lines, at[5]), load8(lines, at[6]), load8(lines, at[7])
    store8(out, np.uintp(0), convert8(sums8(a, b, c, d, e, f, g, h), out))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eight_numbers_and_no_others_change(dtype):
    rng = np.random.default_rng(0)
    a, b, before = rng.normal(size=(3, 21)).astype(dtype)
    c, sums, part = before.copy(), np.ones(21), slice(5, 13)
    found = combine(a, b, c, sums, np.uintp(5))
    tiny = 10 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(c[part], (a * b + before)[part], rtol=tiny, atol=tiny)
    np.testing.assert_allclose(sums[part], 1 + 2.0 * a[part], rtol=tiny)
    assert found == pytest.approx(b[part].sum(), rel=10 * tiny)
    others = np.delete(np.arange(21), np.arange(5, 13))
    assert np.array_equal(c[others], before[others])
    assert (sums[others] == 1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_are_transposed(dtype):
    lines, out = np.arange(200, dtype=dtype), np.zeros(300, dtype)
    transpose(lines, np.uintp(3), np.uintp(11), out, np.uintp(7), np.uintp(20))
    read = 3 + 11 * np.arange(8)[:, None] + np.arange(8)
    written = 7 + 20 * np.arange(8)[:, None] + np.arange(8)
    assert np.array_equal(out[written], lines[read].T)
    assert np.count_nonzero(out) == 64


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 5, 8, 20])
def test_means_and_variances_are_parted_and_padded_with_zeros(dtype, count):
    pairs, out = np.random.default_rng(0).normal(size=(12, 2)), np.full(16, np.nan, dtype)
    pairs[:, 1] += 3 + pairs[:, 0] ** 2
    pairs[3 + count :] = np.nan
    part(pairs, np.uintp(3), np.uintp(count), out)
    inside = min(count, 8)
    found, (means, squares) = out.reshape(2, 8), pairs[3 : 3 + inside].T
    assert np.array_equal(found[0, :inside], means.astype(dtype))
    np.testing.assert_allclose(
        found[1, :inside], squares - means**2, rtol=10 * float(np.finfo(dtype).eps)
    )
    assert not found[:, inside:].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eight_vectors_are_added_up(dtype):
    lines, out = np.arange(64, dtype=dtype).reshape(8, 8) ** 2, np.zeros(8)
    add_lines(lines, out)
    assert np.array_equal(out, lines.sum(axis=1, dtype=np.float64))
