"""SIMD operations against NumPy."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from svmp.kernels.machine.simd import (
    accumulate8,
    broadcast8,
    deinterleave8,
    fma8,
    load8,
    mul8,
    prefetch,
    store8,
    sum8,
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
    firsts, seconds = deinterleave8(pairs, at, count, out)
    store8(out, np.uintp(0), firsts)
    store8(out, np.uintp(8), seconds)


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
def test_pairs_are_deinterleaved_and_padded_with_zeros(dtype, count):
    pairs, out = np.random.default_rng(0).normal(size=(12, 2)), np.full(16, np.nan, dtype)
    pairs[3 + count :] = np.nan
    part(pairs, np.uintp(3), np.uintp(count), out)
    inside = min(count, 8)
    wanted = np.zeros((2, 8), dtype)
    wanted[:, :inside] = pairs[3 : 3 + inside].T
    assert np.array_equal(out.reshape(2, 8), wanted)
