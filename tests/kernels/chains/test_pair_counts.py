"""Expected transitions: compiled sums against the plain ones and against all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.kernels.chains.pair_counts import pair_counts
from svmp.kernels.machine.threads import use_threads
from svmp.network.chains import forward_backward
from svmp.network.chains.forward_backward import Transitions

RNG = np.random.default_rng(2)
ROWS, STATES = 9000, 3


@pytest.mark.parametrize("impossible", [False, True])
def test_counts_and_entropy_are_those_of_all_pairs(impossible: bool) -> None:
    marginal = RNG.dirichlet(np.ones(STATES), ROWS)
    potential = 5 * RNG.normal(size=(ROWS, STATES))
    matrix = RNG.dirichlet(np.ones(STATES), (2, 4, STATES))
    if impossible:
        matrix[0, 1, 0] = [0, 1, 0]
    rows = np.arange(1, ROWS)
    version, group = RNG.integers(0, 2, ROWS - 1), RNG.integers(0, 4, ROWS - 1)
    pairs = Transitions(rows, rows - 1, version, group)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matrix)
        links = matrix[version, group] * np.exp(potential[rows])[:, None, :]
        links /= links.sum(axis=2, keepdims=True)
        both = marginal[rows - 1][:, :, None] * links
        truth = np.array([both[group == g].sum(axis=0) for g in range(4)])
        entropy = -np.where(both > 0, both * np.log(links), 0).sum()
    for count in (forward_backward.pair_counts, pair_counts):
        counts, found = count(marginal, potential, logs, pairs)
        np.testing.assert_allclose(counts, truth, rtol=1e-11)
        assert found == pytest.approx(entropy, rel=1e-11)
    with use_threads(1, tell=False):
        alone = pair_counts(marginal, potential, logs, pairs)
    with use_threads(2, tell=False):
        np.testing.assert_array_equal(alone[0], pair_counts(marginal, potential, logs, pairs)[0])
