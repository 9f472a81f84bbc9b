"""Fits with the covariances of linear response, beside exact posteriors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import polygamma, psi

import svmp

from .test_linear_response import EFFECT, SD

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
    log_sd = np.sqrt(weight @ np.log(at) ** 2 - (weight @ np.log(at)) ** 2)
    assert found["tau"].std == pytest.approx(sd, rel=0.02)
    assert fit.std("tau", corrected=False) < 0.98 * sd
    assert np.sqrt(polygamma(1, found["tau"].alpha)) == pytest.approx(log_sd, rel=0.01)
    log_means = [
        psi(f["tau"].alpha) - np.log(f["tau"].beta) for f in (found.posteriors, fit.posteriors)
    ]
    assert log_means[0] == pytest.approx(log_means[1])
    assert found["mu"].var > fit.posteriors["mu"].var
    found.save(tmp_path / "fit.svmp")
    assert svmp.load(tmp_path / "fit.svmp")["mu"].var == pytest.approx(found["mu"].var)
    only = fit.corrected(model, ["mu"])
    assert np.array_equal(only["tau"].natural, fit.posteriors["tau"].natural)
    with pytest.raises(svmp.ModelError, match="under this model"):
        found.corrected(model)


def test_only_normals_and_gammas_are_corrected() -> None:
    with svmp.Model(coords={"k": 2}) as model:
        p = svmp.Dirichlet("p", a=1, dims="k")
        svmp.Categorical("z", p=p, observed=[0, 1, 1])
    fit = svmp.fit(model)
    with pytest.raises(svmp.ModelError, match="only Normals, MvNormals and Gammas are corrected"):
        fit.corrected(model)


def test_elements_that_no_data_depend_on_see_their_uncertain_parents() -> None:
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
    assert found["u"].var[2] == pytest.approx(1 / 2 + exact[0, 0], rel=1e-6)
    both = found.covariance(["mu", "u"], method="q").matrix
    np.testing.assert_allclose(both[[0, 1, 2], 3], exact[0], rtol=1e-6)
    np.testing.assert_allclose(fit.predict(model, "u").std, fit["u"].std, rtol=1e-6)


def test_gammas_that_are_multiplied_by_each_other_keep_their_q() -> None:
    with svmp.Model() as model:
        g = svmp.Gamma("g", alpha=2, beta=svmp.Gamma("top", alpha=2, beta=2))
        h = svmp.Gamma("h", alpha=3, beta=2)
        svmp.Poisson("y", mu=g * h, observed=[3, 5, 2])
    fit = svmp.fit(model, svmp.FullVB(), tol=1e-12)
    found = fit.corrected()
    assert found["top"].var > fit.posteriors["top"].var
    for name in ("g", "h"):
        assert np.array_equal(found[name].natural, fit.posteriors[name].natural)
    assert fit.corrected(model, ["g"])["g"].var > fit.posteriors["g"].var


@pytest.mark.parametrize(("alpha", "beta"), [(2, 40), (3, 60), (1, 100)])
def test_a_precision_of_eight_schools_is_near_quadrature(alpha: float, beta: float) -> None:
    """Matched in mean and variance its shape is near 1 or below, and E[1 / tau] far too large."""
    with svmp.Model(coords={"school": 8}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1 / 25)
        tau = svmp.Gamma("tau", alpha=alpha, beta=beta)
        theta = svmp.Normal("theta", mu=mu, tau=tau, dims="school")
        svmp.Normal("y", mu=theta, tau=1 / SD**2, dims="school", observed=EFFECT)
    found = svmp.fit(model, tol=1e-10).corrected()["tau"]
    at = np.exp(np.linspace(-20, 6, 6001))
    precision = 1 / (SD**2 + 1 / at[:, None])
    total = precision.sum(axis=1) + 1 / 25
    mean = precision @ EFFECT / total
    log_weight = 0.5 * (np.log(precision).sum(axis=1) - np.log(total) + total * mean**2)
    log_weight += -0.5 * precision @ EFFECT**2 + alpha * np.log(at) - beta * at
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    log_sd = np.sqrt(weight @ np.log(at) ** 2 - (weight @ np.log(at)) ** 2)
    assert np.sqrt(polygamma(1, found.alpha)) == pytest.approx(log_sd, rel=0.1)
    assert found.beta / (found.alpha - 1) == pytest.approx(weight @ (1 / at), rel=0.2)
