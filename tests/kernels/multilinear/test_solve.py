"""Sums over rows against NumPy, and their solution against the update from all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svmp.families.family import Array
from svmp.families.normal import Normal
from svmp.kernels.machine.threads import CORES, share, use_threads
from svmp.kernels.multilinear.losses import Losses
from svmp.kernels.multilinear.slopes import padded_width
from svmp.kernels.multilinear.solve import add_to_keys, line_size, solve_keys, sums_of_keys
from svmp.kernels.multilinear.terms import Mean, Receiver, pack
from svmp.kernels.multilinear.update import LONG, update_long, update_whole
from tests.examples import natural_of
from tests.kernels.rows import ITEMS, WEIGHERS, Example, example, halves, mean_of

COUNTS = [5, 0, 200, 1, 64, 65, 3]
WIDTHS = [1, 3, 8, 20]
NO_LOSSES = Losses(np.ones(1), np.empty(0))


def parts(k: int, dtype: Any = np.float64) -> tuple[Mean, Array, Array]:
    """Return the mean of the example, and E[v] and E[v^2]."""
    padded = k if k == 1 else padded_width(k)
    moments = Normal().moments(natural_of(Normal(), np.random.default_rng(k), ITEMS * k))
    packed = np.zeros(2 * padded * ITEMS, dtype)
    share(pack, moments, k, padded, packed)
    return mean_of(packed, padded, 2 * padded), *moments.T.reshape(2, ITEMS, k)


def receiver(k: int, keys: int, at_once: bool = True) -> Receiver:
    prior = Normal().natural(np.full(k, 0.1), np.linspace(1, 2, k))
    one = np.ones(1)
    return Receiver(0, 0, k, np.arange(keys), one, one, prior, at_once, True)


def by_numpy(rows: Example, first: Array, second: Array) -> Array:
    """Return the lower triangle of gram, linear and square of each key, side by side."""
    a, left, lower = first[rows.item], rows.w * (rows.y - 0.3), np.tril_indices(first.shape[1])
    outer = (a[:, :, None] * a[:, None])[:, lower[0], lower[1]]
    each = [rows.w[:, None] * outer, left[:, None] * a, rows.w[:, None] * second[rows.item]]
    found = np.zeros((len(rows.rows.begin), line_size(first.shape[1])))
    np.add.at(found, rows.key, np.concatenate(each, axis=1))
    return found


@pytest.mark.parametrize("weigher", WEIGHERS)
@pytest.mark.parametrize("k", WIDTHS)
def test_sums_are_those_of_numpy(k: int, weigher: str) -> None:
    (mean, *moments), rows = parts(k), example(COUNTS, weigher)
    found = sums_of_keys(receiver(k, len(COUNTS)), rows.rows, mean)
    expected = by_numpy(rows, *moments)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", WIDTHS)
def test_sums_added_in_place_have_the_bits_of_arrays_that_are_added(k: int, dtype: Any) -> None:
    counts = [*COUNTS, LONG + 100]
    mean, places = parts(k, dtype)[0], np.random.default_rng(k).permutation(10)[: len(counts)]
    total, expected = np.zeros((2, 10, line_size(k)))
    for weigher in WEIGHERS:
        rows, to = example(counts, weigher, dtype).rows, receiver(k, len(counts))
        add_to_keys(to, rows, mean, places, total)
        expected[places] += sums_of_keys(to, rows, mean)
    np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("weigher", WEIGHERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_halves_add_up_to_those_of_all_rows(weigher: str, dtype: Any) -> None:
    mean, rows = parts(3, dtype)[0], example([*COUNTS, LONG + 100], weigher, dtype).rows
    to = receiver(3, len(COUNTS) + 1)
    whole = sums_of_keys(to, rows, mean)
    added = sum(sums_of_keys(to, half, mean) for half in halves(rows))
    tiny = 100 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(added, whole, rtol=tiny, atol=tiny * np.abs(whole).max())


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("k", WIDTHS)
def test_the_solution_of_sums_is_the_update(k: int, at_once: bool, joint: bool) -> None:
    counts = [*COUNTS, LONG + 100]
    mean, rows = parts(k)[0], example(counts, "by row").rows
    to, keys = receiver(k, len(counts), at_once)._replace(joint=joint), len(counts)
    before = natural_of(Normal(), np.random.default_rng(0), keys * k)
    updated, solved = (
        (before.copy(), Normal().moments(before)) for _ in ("all rows", "added sums")
    )
    sound = np.ones(keys, dtype=bool)
    share(update_whole, to, rows, mean, *updated, sound, NO_LOSSES)
    sound[-1] = update_long(to, keys - 1, rows, mean, *updated, NO_LOSSES)
    sums = np.sum([sums_of_keys(to, half, mean) for half in halves(rows)], axis=0)
    np.testing.assert_array_equal(solve_keys(to, sums, *solved), sound)
    assert sound.all()
    for one, other in zip(updated, solved, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)
    assert np.allclose(solved[1], Normal().moments(before), rtol=1e-12) != at_once


def test_keys_without_rows_get_their_prior() -> None:
    mean, rows = parts(3)[0], example([4, 0], "by row").rows
    to = receiver(3, 2)
    natural = natural_of(Normal(), np.random.default_rng(0), 6)
    solve_keys(to, sums_of_keys(to, rows, mean), natural, Normal().moments(natural))
    np.testing.assert_allclose(natural[3:], to.prior)


def test_improper_keys_are_reported() -> None:
    to = receiver(3, 2)
    sums, natural = np.zeros((2, line_size(3))), natural_of(Normal(), np.random.default_rng(0), 6)
    sums[1, -3:] = -100
    assert solve_keys(to, sums, natural, Normal().moments(natural)).tolist() == [True, False]


@pytest.mark.skipif(CORES < 2, reason="this machine has one core")
def test_sums_and_solutions_have_the_same_bits_on_any_number_of_threads() -> None:
    counts = [40] * 100 + [LONG + 100]
    mean, rows = parts(8, np.float32)[0], example(counts, "by row", np.float32).rows
    to = receiver(8, len(counts))
    found = []
    for threads in (1, 2):
        natural = natural_of(Normal(), np.random.default_rng(0), 8 * len(counts))
        moments = Normal().moments(natural)
        with use_threads(threads, tell=False):
            sums = sums_of_keys(to, rows, mean)
            solve_keys(to, sums, natural, moments)
        found.append((sums, natural, moments))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
