"""The compiled and the scaled forward-backward against the plain one in logarithms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svmp.kernels.chains import states
from svmp.kernels.machine.threads import use_threads
from svmp.network.chains import forward_backward, scaled_recursions
from svmp.network.chains.forward_backward import Steps


def solved(initial, transition, unary, steps):
    into = tuple(np.empty_like(unary) for _ in range(3))
    return states.solve(initial, transition, unary, steps, into)


@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 4),
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5).filter(any),
    spread=st.sampled_from([0.1, 3.0, 900.0]),
    least=st.sampled_from([1.0, 1e-3, 0.0]),
    sure=st.booleans(),
)
def test_twins_agree(
    seed: int, count: int, lengths: list[int], spread: float, least: float, sure: bool
) -> None:
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    live = np.array([rng.integers(0, n + 1) for n in lengths])
    group = rng.integers(0, 2, starts[-1])
    steps = Steps(starts, live, group)
    place = np.concatenate([np.arange(n) < m for n, m in zip(lengths, live, strict=True)])
    unary = spread * rng.normal(size=(starts[-1], count)) * place[:, None]
    with np.errstate(divide="ignore"):
        transition = np.log(rng.dirichlet(np.full(count, least or 1.0), (2, count)))
        if least == 0 and count > 1:
            transition[:, np.arange(count), rng.permutation(count)] = -np.inf
    initial = np.log(rng.dirichlet(np.ones(count), len(lengths)))
    if sure:  # all other first states are impossible
        initial = np.where(
            np.arange(count) == rng.integers(0, count, (len(lengths), 1)), 0, -np.inf
        )
    plain = forward_backward.solve(initial, transition, unary, steps)
    solutions = [solved(initial, transition, unary, steps)]
    if scaled_recursions.is_likely(transition):
        solutions.append(scaled_recursions.solve(initial, transition, unary, steps))
    for found in solutions:
        np.testing.assert_allclose(found.marginal, plain.marginal, atol=1e-10)
        np.testing.assert_allclose(found.counts, plain.counts, atol=1e-10)
        assert found.entropy == pytest.approx(plain.entropy, abs=1e-9 * (1 + spread))
        np.testing.assert_allclose(
            np.maximum(found.potential, -700),
            np.maximum(plain.potential, -700),
            atol=1e-9 * spread + 1e-9,
        )


@pytest.mark.parametrize("length", [10, 20_000])
def test_bits_do_not_depend_on_threads(length: int) -> None:
    rng = np.random.default_rng(0)
    starts = np.arange(0, 20_001, length)
    steps = Steps(starts, np.diff(starts), np.zeros(20_000, dtype=np.int64))
    unary = rng.normal(size=(20_000, 3))
    initial = np.zeros((len(starts) - 1, 3))
    transition = np.log(rng.dirichlet(np.ones(3), (1, 3)))
    with use_threads(1, tell=False):
        one = solved(initial, transition, unary, steps)
    with use_threads(2, tell=False):
        two = solved(initial, transition, unary, steps)
    np.testing.assert_array_equal(one.marginal, two.marginal)
    np.testing.assert_array_equal(one.counts, two.counts)
    assert one.entropy == two.entropy
