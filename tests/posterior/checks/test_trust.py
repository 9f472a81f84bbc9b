"""The paragraph of `Fit.diagnose` says what is known about these posteriors."""

from __future__ import annotations

import re

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
    ratio = fit.covariance("mu", model=model).std("mu") / fit.std("mu", corrected=False)
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


def test_the_advice_of_a_large_network_runs_as_printed() -> None:
    """A variable of more than 1,000 numbers cannot be corrected: the others are named."""
    group = np.repeat(np.arange(1100), 2)
    with svmp.Model(coords={"group": 1100}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.01)
        tau = svmp.Gamma("tau", alpha=2, beta=2)
        theta = svmp.Normal("theta", mu=mu, tau=tau, dims="group")
        svmp.Normal("y", mu=theta[group], tau=1, observed=np.sin(np.arange(2200.0)))
    fit = svmp.fit(model)
    with pytest.raises(svmp.ModelError, match=r"fit.corrected\(model\) has it for all calls"):
        fit.summary(corrected=True)
    for said in (str(fit), fit.diagnose(model, draws=100)):
        (call,) = set(re.findall(r"fit\.corrected\(model[^)]*\)", said))
        better = eval(call, {"fit": fit, "model": model})
        assert better["mu"].std > 1.2 * fit["mu"].std
        assert "fit.diagnose" not in said


def grouped_logits() -> svmp.Model:
    """Groups of two rows that are alike: their true sd is large, and the bound shrinks it."""
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(60), 2)
    seen = rng.random(120) < 1 / (1 + np.exp(-3 * rng.normal(size=60)[group]))
    with svmp.Model(coords={"group": 60}) as model:
        a = svmp.Normal("a", mu=0, tau=0.1)
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        u = svmp.Normal("u", mu=0, tau=tau, dims="group")
        svmp.Bernoulli("seen", logit=a + u[group], observed=seen.astype(float))
    return model


def test_means_under_logits_are_not_praised_unseen() -> None:
    model = grouped_logits()
    said = svmp.fit(model).diagnose(model, draws=200)
    assert "mostly good" not in said
    assert "Its means could not be checked" in said
    assert "fitted by a bound" in said
    assert "joint=" not in said  # its sds are smaller still
    joint = svmp.fit(model, joint="auto").diagnose(model, draws=200)
    assert "Under the bound of logits they are too small" in joint
