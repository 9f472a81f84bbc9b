"""Posteriors of chains of vectors against dense solves: pairs, joint draws, filtered states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import svmp

TRACK = np.array([1, 0, 1, 1, 0, 1])
Y = np.array([0.5, 2.0, np.nan, 1.5, -1.0, np.nan])
DRAWS = 20_000


def model(y: np.ndarray = Y) -> svmp.Model:
    with svmp.Model(coords={"row": 6, "latent": 2}) as found:
        x = svmp.LinearGaussianChain(
            "x",
            init=svmp.Normal.dist(mu=[1.0, -1.0], tau=0.5),
            A=[[1.0, 0.5], [-0.2, 0.8]],
            tau=[2.0, 1.0],
            sequence=TRACK,
            dims=("row", "latent"),
        )
        svmp.Normal("y", x[:, 0], 3.0, dims="row", observed=y, missing=True)
    return found


def dense(rows: np.ndarray, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the states of a sequence given its first observations."""
    A = np.array([[1.0, 0.5], [-0.2, 0.8]])
    n = len(rows)
    precision, linear = np.zeros((2 * n, 2 * n)), np.zeros(2 * n)
    precision[:2, :2], linear[:2] = 0.5 * np.eye(2), [0.5, -0.5]
    for t, row in enumerate(rows):
        if t:
            slopes, both = np.hstack([-A, np.eye(2)]), slice(2 * t - 2, 2 * t + 2)
            precision[both, both] += slopes.T @ np.diag([2.0, 1.0]) @ slopes
        if t < last and np.isfinite(Y[row]):
            precision[2 * t, 2 * t] += 3.0
            linear[2 * t] += 3.0 * Y[row]
    cov = np.linalg.inv(precision)
    return (cov @ linear).reshape(n, 2), cov


def test_pairs_and_draws_are_those_of_the_joint_also_of_a_saved_fit(tmp_path: Path) -> None:
    fit = svmp.fit(model(), svmp.FullVB())
    fit.save(tmp_path / "fit.svmp")
    again = svmp.load(tmp_path / "fit.svmp")
    draws = again["x"].draw(DRAWS, seed=1)
    np.testing.assert_array_equal(draws, fit["x"].draw(DRAWS, seed=1))
    for track in (0, 1):
        rows = np.flatnonzero(track == TRACK)
        mean, cov = dense(rows, len(rows))
        blocks = cov.reshape(len(rows), 2, len(rows), 2).swapaxes(1, 2)
        later = np.arange(1, len(rows))
        np.testing.assert_allclose(again["x"].pairs(rows[1:]), blocks[later, later - 1], atol=1e-11)
        some = draws[:, rows].reshape(DRAWS, -1)
        scale = np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
        assert np.all(np.abs(np.cov(some.T) - cov) < 5 * np.sqrt(2 / DRAWS) * scale)
        assert np.all(np.abs(some.mean(0) - mean.ravel()) < 5 * np.sqrt(np.diag(cov) / DRAWS))


def test_filtered_and_predicted_states_are_given_the_rows_so_far() -> None:
    found = svmp.fit(model(), svmp.FullVB()).filtered(model(), "x")
    for track in (0, 1):
        rows = np.flatnonzero(track == TRACK)
        for t, row in enumerate(rows):
            mean, cov = dense(rows, t + 1)
            np.testing.assert_allclose(found.mean[row], mean[t], atol=1e-11)
            own = slice(2 * t, 2 * t + 2)
            np.testing.assert_allclose(found.cov[row], cov[own, own], atol=1e-11)
            mean, cov = dense(rows, t)
            np.testing.assert_allclose(found.predicted_mean[row], mean[t], atol=1e-11)
            np.testing.assert_allclose(found.predicted_cov[row], cov[own, own], atol=1e-11)


def test_missing_values_are_predicted_with_their_uncertainty() -> None:
    given = model()
    prediction = svmp.fit(given, svmp.FullVB()).predict(given, "y")
    for track in (0, 1):
        rows = np.flatnonzero(track == TRACK)
        mean, cov = dense(rows, len(rows))
        np.testing.assert_allclose(prediction.mean[rows], mean[:, 0], atol=1e-10)
        np.testing.assert_allclose(prediction.var[rows], np.diag(cov)[::2] + 1 / 3, atol=1e-10)


@pytest.mark.parametrize("split", [3, 6])
def test_resumed_run_has_the_same_bits(tmp_path: Path, split: int) -> None:
    def unknown() -> svmp.Model:
        with svmp.Model(coords={"row": 6, "latent": 2, "from": 2}) as found:
            A = svmp.MvNormal("A", mu=0, tau=np.eye(2), dims=("latent", "from"))
            start = svmp.Normal.dist(0, 1)
            x = svmp.LinearGaussianChain("x", start, A, 1.0, sequence=TRACK, dims=("row", "latent"))
            svmp.Normal("y", x[:, 0], 3.0, dims="row", observed=Y, missing=True)
        return found

    path = tmp_path / "run"
    whole = svmp.fit(unknown(), svmp.FullVB(), max_sweeps=8, tol=0)
    svmp.fit(unknown(), svmp.FullVB(), max_sweeps=split, tol=0, checkpoint=path, every=1)
    again = svmp.fit(unknown(), resume=path, max_sweeps=8)
    assert again.bound == whole.bound
    np.testing.assert_array_equal(again["x"].natural, whole["x"].natural)
