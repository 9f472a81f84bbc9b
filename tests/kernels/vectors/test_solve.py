"""Messages of rows against NumPy, and their solution against the update from all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svmp.families.family import Array
from svmp.families.mvnormal import MvNormal
from svmp.kernels.machine.threads import CORES, share, use_threads
from svmp.kernels.multilinear.losses import Losses
from svmp.kernels.multilinear.slopes import padded_width
from svmp.kernels.multilinear.terms import Mean, Receiver
from svmp.kernels.vectors.solve import add_to_keys, line_size, solve_keys, sums_of_keys
from svmp.kernels.vectors.terms import pack
from svmp.kernels.vectors.update import LONG, update, update_long
from tests.examples import natural_of
from tests.kernels.rows import ITEMS, WEIGHERS, example, halves, mean_of

COUNTS = [5, 0, 200, 1, 64, 65, 3, LONG + 100]
NO_LOSSES = Losses(np.ones(1), np.empty(0))
WIDTHS = [2, 8, 9]


def parts(k: int, dtype: Any = np.float64) -> tuple[Mean, Array]:
    """Return the mean of the example, and E[v] and E[v v^T] of each item."""
    padded, pairs = padded_width(k), padded_width(k * (k - 1) // 2)
    family = MvNormal(k)
    moments = family.moments(natural_of(family, np.random.default_rng(k), ITEMS))
    packed = np.zeros((2 * padded + pairs) * ITEMS, dtype)
    share(pack, moments, k, padded, False, packed)
    return mean_of(packed, padded, 2 * padded + pairs), moments


def receiver(k: int, at_once: bool = True, keys: int = len(COUNTS)) -> Receiver:
    prior = MvNormal(k).natural(np.full((1, k), 0.1), 2 * np.eye(k)[None])
    one = np.ones(1)
    return Receiver(0, 0, k, np.arange(keys), one, one, prior, at_once, True)


@pytest.mark.parametrize("weigher", WEIGHERS)
@pytest.mark.parametrize("k", WIDTHS)
def test_sums_are_those_of_numpy(k: int, weigher: str) -> None:
    (mean, moments), rows = parts(k), example(COUNTS, weigher)
    seconds, diagonal = moments[:, k:].reshape(-1, k, k), np.arange(k)
    square = [seconds[:, diagonal, diagonal], seconds[:, *np.triu_indices(k, 1)]]
    weight = rows.w[:, None] * np.concatenate(square, axis=1)[rows.item]
    linear = (rows.w * (rows.y - 0.3))[:, None] * moments[rows.item, :k]
    expected = np.zeros((len(COUNTS), line_size(k)))
    np.add.at(expected, rows.key, np.concatenate([linear, weight], axis=1))
    found = sums_of_keys(receiver(k), rows.rows, mean)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", WIDTHS)
def test_sums_added_in_place_have_the_bits_of_arrays_that_are_added(k: int, dtype: Any) -> None:
    mean, places = parts(k, dtype)[0], np.random.default_rng(k).permutation(10)[: len(COUNTS)]
    total, expected = np.zeros((2, 10, line_size(k)))
    for weigher in WEIGHERS:
        rows, to = example(COUNTS, weigher, dtype).rows, receiver(k)
        add_to_keys(to, rows, mean, places, total)
        expected[places] += sums_of_keys(to, rows, mean)
    np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_halves_add_up_to_those_of_all_rows(dtype: Any) -> None:
    mean, rows, to = parts(8, dtype)[0], example(COUNTS, "by item", dtype).rows, receiver(8)
    whole = sums_of_keys(to, rows, mean)
    added = sum(sums_of_keys(to, half, mean) for half in halves(rows))
    tiny = 100 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(added, whole, rtol=tiny, atol=tiny * np.abs(whole).max())


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("k", WIDTHS)
def test_the_solution_of_sums_is_the_update(k: int, at_once: bool) -> None:
    mean, rows, to = parts(k)[0], example(COUNTS, "by row").rows, receiver(k, at_once)
    before = natural_of(MvNormal(k), np.random.default_rng(0), len(COUNTS))
    updated, solved = (
        (before.copy(), MvNormal(k).moments(before)) for _ in ("all rows", "added sums")
    )
    sound = np.ones(len(COUNTS), dtype=bool)
    share(update, to, rows, mean, *updated, sound, NO_LOSSES)
    sound[-1] = update_long(to, len(COUNTS) - 1, rows, mean, *updated, NO_LOSSES)
    sums = np.sum([sums_of_keys(to, half, mean) for half in halves(rows)], axis=0)
    np.testing.assert_array_equal(solve_keys(to, sums, *solved), sound)
    assert sound.all()
    for one, other in zip(updated, solved, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)
    assert np.array_equal(solved[1], MvNormal(k).moments(before)) != at_once


def test_improper_keys_are_reported() -> None:
    to, natural = receiver(2, keys=2), natural_of(MvNormal(2), np.random.default_rng(0), 2)
    sums = np.zeros((2, line_size(2)))
    sums[1, 2:4] = -200
    found = solve_keys(to, sums, natural, MvNormal(2).moments(natural))
    assert found.tolist() == [True, False]


@pytest.mark.skipif(CORES < 2, reason="this machine has one core")
def test_sums_and_solutions_have_the_same_bits_on_any_number_of_threads() -> None:
    mean, rows, to = parts(8)[0], example(COUNTS, "by row").rows, receiver(8)
    found = []
    for threads in (1, 2):
        natural = natural_of(MvNormal(8), np.random.default_rng(0), len(COUNTS))
        moments = MvNormal(8).moments(natural)
        with use_threads(threads, tell=False):
            sums = sums_of_keys(to, rows, mean)
            solve_keys(to, sums, natural, moments)
        found.append((sums, natural, moments))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
