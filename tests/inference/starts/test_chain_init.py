"""Starting probabilities of chains of states that P makes impossible are refused."""

from __future__ import annotations

import numpy as np
import pytest

import svmp

P = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])


def declare(sequence: list[int] | None = None) -> svmp.Model:
    with svmp.Model(coords={"state": 3, "row": 4}) as model:
        first = svmp.data(np.array([0.5, 0.5, 0.0]), dims="state")
        z = svmp.DiscreteMarkovChain("z", first, P, sequence=sequence, dims="row")
        mu = svmp.Normal("mu", 0, 0.01, dims="state")
        density = svmp.Normal.dist(mu=mu, tau=1)
        svmp.Mixture("y", z, density, dims="row", observed=[0.0, 1.0, 5.0, 5.0])
    return model


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ([0, 2, 2, 2], "from state 0 to state 2 at row 1"),
        ([0, 1, 1, 0], "from state 1 to state 0 at row 3"),
        ([2, 2, 2, 2], "begins in state 2 at row 0"),
    ],
)
def test_impossible_paths_are_refused(path: list[int], message: str) -> None:
    with pytest.raises(svmp.ModelError, match=message):
        svmp.fit(declare(), init={"z": np.eye(3)[path]})


def test_possible_paths_and_uncertain_states_are_taken() -> None:
    for start in (np.eye(3)[[0, 0, 1, 2]], np.tile([0.5, 0.5, 0.0], (4, 1))):
        assert np.isfinite(svmp.fit(declare(), init={"z": start}).bound)
    fit = svmp.fit(declare([0, 0, 1, 1]), init={"z": np.eye(3)[[1, 2, 0, 0]]})
    assert np.isfinite(fit.bound)
