"""Fits with the covariances of linear response, beside exact posteriors."""

from __future__ import annotations

from pathlib import Path
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


def test_a_precision_has_the_variance_of_linear_response(tmp_path: Path) -> None:
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        svmp.Normal("y", mu=mu, tau=tau, observed=Y)
    fit = svmp.fit(model, svmp.FullVB(), tol=1e-12)
    found = fit.corrected(model)
    # Given tau, mu integrates out in closed form.
    at, n = np.linspace(1e-3, 6, 4000), len(Y)
    total = n * at + 1
    log_p = (1 + n / 2) * np.log(at) - at * (1 + Y @ Y / 2) + (at * Y.sum()) ** 2 / total / 2
    weight = np.exp(log_p - 0.5 * np.log(total))
    weight /= weight.sum()
    sd = np.sqrt(weight @ at**2 - (weight @ at) ** 2)
    assert found["tau"].std == pytest.approx(sd, rel=0.02)
    assert fit["tau"].std < 0.98 * sd
    assert found["tau"].mean == pytest.approx(fit["tau"].mean)
    assert found["mu"].var > fit["mu"].var
    found.save(tmp_path / "fit.svmp")
    assert svmp.load(tmp_path / "fit.svmp")["mu"].var == pytest.approx(found["mu"].var)
    only = fit.corrected(model, ["mu"])
    assert np.array_equal(only["tau"].natural, fit["tau"].natural)
    with pytest.raises(svmp.ModelError, match="under this model"):
        found.corrected(model)


def test_only_normals_and_gammas_are_corrected() -> None:
    with svmp.Model(coords={"k": 2}) as model:
        p = svmp.Dirichlet("p", a=1, dims="k")
        svmp.Categorical("z", p=p, observed=[0, 1, 1])
    fit = svmp.fit(model)
    with pytest.raises(svmp.ModelError, match="only Normals, MvNormals and Gammas are corrected"):
        fit.corrected(model)


def test_elements_that_no_data_depend_on_keep_their_variance() -> None:
    with svmp.Model(coords={"group": 3}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        u = svmp.Normal("u", mu=mu, tau=2, dims="group")
        svmp.Normal("y", mu=u[np.array([0, 0, 1])], tau=1, observed=[1.0, 2.0, 0.0])
    fit = svmp.fit(model, svmp.FullVB(), tol=1e-13)
    found = fit.corrected(model)
    precision = np.diag([1 + 2 + 2, 2 + 2, 2 + 1.0])
    precision[0, 1:] = precision[1:, 0] = -2
    exact = np.linalg.inv(precision)
    np.testing.assert_allclose(found["mu"].var, exact[0, 0], rtol=1e-6)
    np.testing.assert_allclose(found["u"].var[:2], np.diag(exact)[1:], rtol=1e-6)
    assert found["u"].var[2] == pytest.approx(fit["u"].var[2])


def test_gammas_that_are_multiplied_by_each_other_keep_their_q() -> None:
    with svmp.Model() as model:
        g = svmp.Gamma("g", alpha=2, beta=svmp.Gamma("top", alpha=2, beta=2))
        h = svmp.Gamma("h", alpha=3, beta=2)
        svmp.Poisson("y", mu=g * h, observed=[3, 5, 2])
    fit = svmp.fit(model, svmp.FullVB(), tol=1e-12)
    found = fit.corrected()
    assert found["top"].var > fit["top"].var
    for name in ("g", "h"):
        assert np.array_equal(found[name].natural, fit[name].natural)
    assert fit.corrected(model, ["g"])["g"].var > fit["g"].var
