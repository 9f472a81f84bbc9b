"""Draws are uniform over subsets, distinct, and the same for the same key.

Seeds are fixed, so a p-value below 1e-4 is a fault, not chance.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from svmp.kernels.machine.streams import LINEAR_SEARCH, below, mix, sample_each

RARE = 1e-4


@numba.njit
def numbers_below(start: np.uint64, bound: int, count: int) -> np.ndarray:
    state, out = start, np.empty(count, dtype=np.int64)
    for i in range(count):
        state += np.uint64(0x9E3779B97F4A7C15)
        out[i] = below(mix(state), bound)
    return out


def one(children: int, take: int, element: int = 0, key: tuple = (0, 1, 0)) -> np.ndarray:
    return sample_each(*key, *(np.array([n]) for n in (element, children, take)))


def many(children: int, take: int, count: int, seed: int = 0, iteration: int = 1) -> np.ndarray:
    """One draw of each of many elements, one per row."""
    everyone = np.arange(count)
    full = np.full(count, children), np.full(count, take)
    return sample_each(seed, iteration, 2, everyone, *full).reshape(count, take)


def is_uniform(counts: np.ndarray) -> bool:
    return stats.chisquare(counts).pvalue > RARE


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 2**40))
def test_a_draw_has_distinct_numbers_below_the_count(children, take, element):
    take = min(take, children)
    drawn = one(children, take, element)
    assert len(set(drawn.tolist())) == take
    assert ((drawn >= 0) & (drawn < children)).all()


def test_a_draw_of_everything_is_everything():
    assert one(7, 7).tolist() == list(range(7))


SUBSETS = [(5, 1), (5, 2), (6, 3), (6, 5), (2, 1), (30, 28), (27, 26), (26, 25)]


@pytest.mark.parametrize(("children", "take"), SUBSETS)
def test_every_subset_is_equally_likely(children, take):
    """The last three are drawn by selection sampling."""
    subsets = {s: i for i, s in enumerate(combinations(range(children), take))}
    drawn = np.sort(many(children, take, 100 * comb(children, take)), axis=1)
    found = np.bincount([subsets[tuple(row)] for row in drawn.tolist()], minlength=len(subsets))
    assert is_uniform(found)


def test_both_branches_are_covered():
    assert {take > LINEAR_SEARCH for _, take in SUBSETS} == {True, False}


@pytest.mark.parametrize(
    ("children", "take"),
    [(40, LINEAR_SEARCH), (40, LINEAR_SEARCH + 1), (60, 3), (60, 50), (200, 26)],
)
def test_children_and_pairs_of_children_are_equally_likely(children, take):
    count = 4000
    drawn = np.zeros((count, children))
    np.put_along_axis(drawn, many(children, take, count), 1, axis=1)
    p = take / children
    z = (drawn.mean(axis=0) - p) / np.sqrt(p * (1 - p) / count)
    assert np.abs(z).max() < 5
    both = take * (take - 1) / children / (children - 1)
    pairs = (drawn.T @ drawn / count)[np.triu_indices(children, 1)]
    assert np.abs((pairs - both) / np.sqrt(both * (1 - both) / count)).max() < 5


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 10, 64, 1000])
def test_numbers_below_a_bound_are_uniform(bound):
    drawn = numbers_below(np.uint64(12345), bound, 100 * bound + 1000)
    assert drawn.min() >= 0
    assert drawn.max() < bound
    if bound > 1:
        assert is_uniform(np.bincount(drawn, minlength=bound))


def test_numbers_below_a_large_bound_are_uniform():
    """Multiplication by a bound near 2^31 loses no part of the range."""
    bound = 2**31 - 2
    drawn = numbers_below(np.uint64(5), bound, 50_000)
    assert drawn.min() >= 0
    assert drawn.max() < bound
    assert is_uniform(np.bincount(drawn * 50 // bound, minlength=50))


def test_successive_numbers_are_independent():
    drawn = numbers_below(np.uint64(99), 8, 64_000)
    assert is_uniform(np.bincount(drawn[:-1:2] * 8 + drawn[1::2], minlength=64))


@given(st.permutations(range(6)))
def test_draws_of_an_element_do_not_depend_on_other_elements(order):
    children, take = np.array([9, 50, 3, 60, 1, 30]), np.array([4, 30, 3, 2, 0, 29])
    whole = np.split(sample_each(3, 5, 1, np.arange(6), children, take), np.cumsum(take)[:-1])
    order = np.array(order)
    parts = sample_each(3, 5, 1, order, children[order], take[order])
    parts = np.split(parts, np.cumsum(take[order])[:-1])
    for position, element in enumerate(order):
        assert parts[position].tolist() == whole[element].tolist()


@pytest.mark.parametrize("what", ["seed", "iteration", "variable", "element"])
@pytest.mark.parametrize("take", [3, 30])
def test_draws_under_neighbouring_keys_are_independent(what, take):
    """Their overlap is hypergeometric, as for independent draws."""
    children, count = 40, 2000

    def drawn(number: int, other: int) -> np.ndarray:
        place = {"seed": 11, "iteration": 4, "variable": 2, "element": 7}
        place[what] += number
        key = (place["seed"], place["iteration"], place["variable"])
        return one(children, take, place["element"] + 1000 * other, key)

    overlap = np.array(
        [len(np.intersect1d(drawn(0, other), drawn(1, other))) for other in range(count)]
    )
    expected = stats.hypergeom(children, take, take)
    assert np.abs(overlap.mean() - expected.mean()) < 5 * expected.std() / np.sqrt(count)


def test_the_same_key_gives_the_same_draws():
    again = [many(12, 3, 20, seed=4, iteration=9).tolist() for _ in range(2)]
    assert again[0] == again[1]
    assert again[0] != many(12, 3, 20, seed=4, iteration=10).tolist()
    assert again[0] != many(12, 3, 20, seed=5, iteration=9).tolist()


def test_no_two_keys_give_the_same_draw():
    """(iteration 1, element 2) is not (iteration 2, element 1); 30 of 60 never repeat by chance."""
    everyone = np.arange(12)
    full = np.full(12, 60), np.full(12, 30)
    drawn = [
        sample_each(seed, iteration, variable, everyone, *full).reshape(12, 30)
        for seed in range(4)
        for iteration in range(12)
        for variable in range(6)
    ]
    assert len(np.unique(np.concatenate(drawn), axis=0)) == 4 * 12 * 6 * 12
