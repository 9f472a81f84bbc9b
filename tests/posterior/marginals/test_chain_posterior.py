"""What a fit says about whole sequences, against the enumeration of all paths; saving it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import psi

import svmp
from tests.network.chains.test_chains import NIGHT, STATES, Y, densities, model
from tests.network.enumeration import Enumerated, enumerate_paths


@pytest.fixture(scope="module")
def fit() -> svmp.Fit:
    return svmp.fit(model(init=None, move=None), svmp.FullVB(), tol=1e-15)


def truth(fit: svmp.Fit, rows: np.ndarray, last: int | None = None) -> Enumerated:
    initial = psi(fit["start"].a) - psi(fit["start"].a.sum())
    transition = psi(fit["move"].a) - psi(fit["move"].a.sum(axis=1, keepdims=True))
    return enumerate_paths(initial, [transition] * len(rows), densities(Y[rows])[:last])


@pytest.mark.parametrize("night", np.unique(NIGHT))
def test_pairs_paths_and_filtered_states_match_enumeration(fit: svmp.Fit, night: str) -> None:
    rows = np.flatnonzero(night == NIGHT)
    all_paths = truth(fit, rows)
    np.testing.assert_allclose(fit["z"].pairs(rows[1:]), all_paths.pairs, atol=1e-8)
    np.testing.assert_array_equal(fit.path("z")[rows], all_paths.path)
    filtered = [truth(fit, rows, t + 1).marginals[-1] for t in range(len(rows))]
    np.testing.assert_allclose(fit["z"].filtered()[rows], filtered, atol=1e-8)


def test_draws_are_whole_sequences(fit: svmp.Fit) -> None:
    rows = np.flatnonzero(NIGHT == "c")
    draws = fit["z"].draw(20_000, seed=0)[:, rows].astype(int)
    pairs = truth(fit, rows).pairs
    for t in range(1, len(rows)):
        found = np.zeros((STATES, STATES))
        np.add.at(found, (draws[:, t - 1], draws[:, t]), 1 / len(draws))
        assert np.abs(found - pairs[t - 1]).max() < 0.015


def test_saved_fit_has_the_same_draws_and_paths(fit: svmp.Fit, tmp_path: Path) -> None:
    fit.save(tmp_path / "hmm.svmp")
    again = svmp.load(tmp_path / "hmm.svmp")
    np.testing.assert_array_equal(again["z"].draw(3, seed=1), fit["z"].draw(3, seed=1))
    np.testing.assert_array_equal(again.path("z"), fit.path("z"))


METHODS: dict[str, Any] = {
    "full": svmp.FullVB(),
    "batch": svmp.Batch(2, over="sequence"),
    "memoized": svmp.Memoized(over="sequence", parts=2),
    "children": svmp.Children(2),
}


@pytest.mark.parametrize("method", METHODS)
def test_run_is_resumed_to_the_same_bits(method: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"method": METHODS[method], "tol": 0}
    whole = svmp.fit(model(init=None, move=None), **given, max_sweeps=6)
    svmp.fit(
        model(init=None, move=None), **given, max_sweeps=3, checkpoint=tmp_path / "run", every=1
    )
    resumed = svmp.fit(model(init=None, move=None), resume=tmp_path / "run", max_sweeps=6)
    assert resumed.bound == whole.bound
    np.testing.assert_array_equal(resumed["z"].draw(2, seed=0), whole["z"].draw(2, seed=0))


@pytest.mark.parametrize("key", ["version", "transition", "order", "sequence"])
def test_damaged_chains_are_refused(fit: svmp.Fit, key: str, tmp_path: Path) -> None:
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file

    fit.save(tmp_path / "hmm.svmp")
    arrays = load_file(tmp_path / "hmm.svmp")
    with safe_open(tmp_path / "hmm.svmp", "numpy") as file:
        about = file.metadata()
    arrays[f"chain-{key}/z"] = (
        arrays[f"chain-{key}/z"] * 0 + 7
        if key != "transition"
        else (arrays[f"chain-{key}/z"] * np.inf)
    )
    save_file(arrays, tmp_path / "hmm.svmp", metadata=about)
    with pytest.raises(svmp.FileError, match="damaged"):
        svmp.load(tmp_path / "hmm.svmp")


def test_path_needs_a_chain(fit: svmp.Fit) -> None:
    with pytest.raises(svmp.ModelError, match="not a chain"):
        fit.path("move")
    with pytest.raises(svmp.ModelError, match="first of its sequence"):
        fit["z"].pairs([0])
