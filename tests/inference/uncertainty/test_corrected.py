"""Fits with the covariances of linear response, beside exact posteriors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp

pytestmark = pytest.mark.by_size

X = np.random.default_rng(0).normal(size=(12, 2)) + np.array([1.0, 0.5])
Y = X @ [1.0, -1.0] + np.random.default_rng(1).normal(size=12)


def declare(x: Any, y: Any = None) -> svmp.Model:
    with svmp.Model(coords={"row": len(x), "d": 2}) as model:
        a = svmp.Normal("a", mu=0, tau=0.5)
        w = svmp.Normal("w", mu=0, tau=1, dims="d")
        svmp.Normal("y", mu=a + svmp.dot(np.asarray(x), w), tau=2, dims="row", observed=y)
    return model


def test_normals_have_the_exact_posterior_of_a_linear_model() -> None:
    model = declare(X, Y)
    fit = svmp.fit(model, svmp.FullVB(), tol=1e-13).corrected(model)
    design = np.column_stack([np.ones(12), X])
    exact = np.linalg.inv(np.diag([0.5, 1, 1]) + 2 * design.T @ design)
    np.testing.assert_allclose(fit.covariance(["a", "w"]).matrix, exact, rtol=1e-5)
    np.testing.assert_allclose(fit["w"].var, exact.diagonal()[1:], rtol=1e-5)
    new = np.array([[2.0, -1.0]])
    found = fit.predict(declare(new), "y")
    row = np.array([1.0, 2.0, -1.0])
    assert found.var[0] == pytest.approx(row @ exact @ row + 0.5, rel=1e-5)
    draws = fit.draw(["a", "w"], 20_000, seed=0)
    both = np.column_stack([draws["a"], draws["w"]])
    np.testing.assert_allclose(np.cov(both.T), exact, atol=0.03 * exact.max())


def test_only_normals_are_corrected(tmp_path) -> None:
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        svmp.Normal("y", mu=mu, tau=tau, observed=Y)
    fit = svmp.fit(model, svmp.FullVB(), tol=1e-12)
    found = fit.corrected(model)
    assert found["mu"].var > fit["mu"].var
    assert np.array_equal(found["tau"].natural, fit["tau"].natural)
    found.save(tmp_path / "fit.svmp")
    assert svmp.load(tmp_path / "fit.svmp")["mu"].var == pytest.approx(found["mu"].var)
    with pytest.raises(svmp.ModelError, match="only Normals and MvNormals are corrected"):
        fit.corrected(model, ["tau"])
    with pytest.raises(svmp.ModelError, match="linear response is for a q that is a product"):
        found.corrected(model)
