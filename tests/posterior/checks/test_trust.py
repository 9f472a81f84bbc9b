"""The paragraph of `Fit.diagnose` says what is known about these posteriors."""

from __future__ import annotations

import numpy as np
import pytest

import svmp

pytestmark = pytest.mark.by_size
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 2)), RNG.normal(size=30) + 1


def test_an_exact_q_is_trusted() -> None:
    with svmp.Model() as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1)
        svmp.Poisson("count", mu=rate, observed=[3, 4, 8])
    said = svmp.fit(model).diagnose(model)
    assert "q is the posterior of its 1 hidden number" in said
    assert "Trust its means. Trust its variances" in said
    assert "is the log evidence" in said


def test_nearly_independent_variables_are_trusted() -> None:
    with svmp.Model(coords={"k": 2}) as model:
        tau = svmp.Gamma("tau", alpha=5, beta=5)
        w = svmp.Normal("w", mu=0, tau=1, dims="k")
        svmp.Normal("y", mu=svmp.dot(np.linalg.qr(X)[0], w), tau=tau, observed=Y)
    fit = svmp.fit(model)
    said = fit.diagnose(model)
    assert "The fit converged" in said
    assert "Trust its means: importance weights move them by at most" in said
    assert "Trust its variances" in said
    assert "nats below the log evidence" in said


def test_variances_of_a_hyper_mean_are_not_trusted() -> None:
    with svmp.Model(coords={"group": 6}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.01)
        theta = svmp.Normal("theta", mu=mu, tau=4, dims="group")
        svmp.Normal("y", mu=theta, tau=1, dims="group", observed=np.arange(6.0))
    fit = svmp.fit(model)
    said = fit.diagnose(model)
    assert "too far from the posterior for importance weights" in said
    assert "Do not trust its variances: that of 'mu' is too small" in said
    ratio = fit.covariance("mu", model=model).std("mu") / fit["mu"].std
    assert f"{ratio:.1f} times as much" in said
    assert 'or fit with joint="auto".' in said


def test_a_joint_block_is_advised_only_where_there_is_one() -> None:
    with svmp.Model() as model:
        a = svmp.Gamma("a", alpha=2, beta=1)
        b = svmp.Gamma("b", alpha=2, beta=1)
        svmp.Poisson("y", mu=a * b, observed=[3, 5, 4])
    said = svmp.fit(model).diagnose(model, draws=200)
    assert "Do not trust its variances" in said
    assert "joint=" not in said


def test_a_fit_that_did_not_converge_is_not_trusted() -> None:
    with svmp.Model(coords={"k": 2, "row": 30}) as model:
        u = svmp.Normal("u", mu=1, tau=1, dims="k")
        v = svmp.Normal("v", mu=1, tau=1)
        svmp.Normal("y", mu=svmp.dot(X, u) * v, tau=1, dims="row", observed=Y)
    said = svmp.fit(model, svmp.FullVB(), max_sweeps=1).diagnose(model, draws=200)
    assert "did not converge (its status is 'budget')" in said
    assert "Do not trust its means yet" in said
