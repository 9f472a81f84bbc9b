"""Smooth curves and maps: each q at its fixed point, by dense solves."""

from __future__ import annotations

import numpy as np
import pytest

import svmp


def test_a_walk_is_at_its_fixed_point(script):
    _, y, *_ = script.data(count=20)
    matrix = script.walk(20)
    fit = svmp.fit(script.model(y, matrix), svmp.FullVB(), tol=1e-13)
    scale, tau = fit.mean("scale"), fit.mean("tau")
    precision = scale * matrix + tau * np.eye(20)
    mean, covariance = np.linalg.solve(precision, tau * y), np.linalg.inv(precision)
    np.testing.assert_allclose(fit.mean("f"), mean, atol=1e-5)
    np.testing.assert_allclose(fit.var("f"), np.diag(covariance), rtol=1e-4)
    square = mean @ matrix @ mean + np.trace(covariance @ matrix)
    assert fit["scale"].alpha == pytest.approx(2 + 10)
    assert fit["scale"].beta == pytest.approx(0.5 + square / 2, rel=1e-4)


def test_a_map_has_the_posterior_of_the_singular_matrix(script):
    """Given the scale and the noise, level and deviations are those of the Laplacian itself."""
    *_, regions, _ = script.data()
    laplacian = script.neighbours(script.SIDE)
    network, basis = script.map_model(regions, laplacian)
    fit = svmp.fit(network, svmp.FullVB(), tol=1e-13)
    scale, tau = fit.mean("scale"), fit.mean("tau")
    found = fit.mean("level") + basis @ fit.mean("z")
    exact = np.linalg.solve(scale * laplacian + tau * np.eye(len(regions)), tau * regions)
    np.testing.assert_allclose(found, exact, atol=2e-3)  # the level has a weak prior of its own
    assert fit["scale"].alpha == pytest.approx(2 + (len(regions) - 1) / 2)
