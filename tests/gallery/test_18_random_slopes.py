"""Random slopes: with fixed precisions a dense solve, and the fixed point of the Wishart."""

from __future__ import annotations

import numpy as np
import pytest

import svmp


def test_fixed_precisions_give_the_exact_means(script):
    y, person, day, _ = script.data(people=6)
    between, tau = np.linalg.inv(script.COVARIANCE), 1 / script.NOISE**2
    network = script.model(y, person, day, 6, fixed=(between, tau))
    fit = svmp.fit(network, svmp.FullVB(), tol=1e-15, max_sweeps=5000)
    design = np.zeros((len(y), 2 + 12))
    rows = np.arange(len(y))
    design[rows, 2 + 2 * person], design[rows, 3 + 2 * person] = 1, day
    precision = tau * design.T @ design
    precision[:2, :2] += 0.0001 * np.eye(2) + 6 * between
    for i in range(2, 14, 2):
        precision[i : i + 2, i : i + 2] += between
        precision[:2, i : i + 2] -= between
        precision[i : i + 2, :2] -= between
    exact = np.linalg.solve(precision, tau * design.T @ y)
    np.testing.assert_allclose(fit.mean("centre", corrected=False), exact[:2], rtol=1e-5)
    np.testing.assert_allclose(
        fit.mean("line", corrected=False), exact[2:].reshape(6, 2), rtol=1e-5
    )
    np.testing.assert_allclose(fit.posteriors["line"].tau[0], precision[2:4, 2:4], rtol=1e-9)


def test_wishart_is_at_its_fixed_point_and_the_truth_is_near(script):
    y, person, day, line = script.data()
    fit = svmp.fit(script.model(y, person, day, len(line)), svmp.FullVB(), tol=1e-13)
    gap = fit.mean("line", corrected=False) - fit.mean("centre", corrected=False)
    scatter = gap.T @ gap + np.linalg.inv(fit.posteriors["line"].tau).sum(0)
    scatter += len(line) * np.linalg.inv(fit.posteriors["centre"].tau)
    q = fit["L"]
    assert q.nu == pytest.approx(3 + len(line))
    expected = np.linalg.inv(script.SCALE) + scatter
    np.testing.assert_allclose(np.linalg.inv(q.V), expected, rtol=1e-4)
    assert 1 / np.sqrt(fit.mean("tau", corrected=False)) == pytest.approx(script.NOISE, rel=0.15)
    least_squares = np.array(
        [np.polyfit(day[person == i], y[person == i], 1)[::-1] for i in range(len(line))]
    )
    error, raw = (
        np.mean((guess - line) ** 2, 0)
        for guess in (fit.mean("line", corrected=False), least_squares)
    )
    assert np.all(error < raw)
