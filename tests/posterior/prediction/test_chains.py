"""Forecasts of chains, beside filters written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp

pytestmark = pytest.mark.by_size

P = np.array([[0.9, 0.1], [0.3, 0.7]])
START, MEANS = np.array([0.6, 0.4]), np.array([-1.0, 2.0])


def states(rows: Any, y: Any = None, missing: Any = False) -> svmp.Model:
    with svmp.Model(coords={"row": list(rows), "state": 2, "to": 2}) as model:
        init, move = svmp.data(START, dims="state"), svmp.data(P, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", init=init, P=move, dims="row")
        mu = svmp.data(MEANS, dims="state")
        component = svmp.Normal.dist(mu=mu, tau=1)
        svmp.Mixture("y", z, component, dims="row", observed=y, missing=missing)
    return model


def filtered(y: Any) -> Any:
    """Return the probabilities of the state of the last row, given all rows."""
    alpha = START
    for t, value in enumerate(y):
        alpha = (alpha if t == 0 else alpha @ P) * np.exp(-0.5 * (value - MEANS) ** 2)
        alpha = alpha / alpha.sum()
    return alpha


def check_states(found: svmp.Prediction, last: Any, ahead: int = 3) -> None:
    for h in range(1, ahead + 1):
        p = last @ np.linalg.matrix_power(P, h)
        mean = p @ MEANS
        assert found.mean[h - 1 - ahead] == pytest.approx(mean, abs=1e-9)
        assert found.var[h - 1 - ahead] == pytest.approx(1 + p @ MEANS**2 - mean**2, abs=1e-9)


def test_states_are_filtered_and_carried_on() -> None:
    y = np.array([-1.2, 1.5, 2.2, 0.3])
    fit = svmp.fit(states(range(4), y), svmp.FullVB())
    later = states(range(2, 7))  # the last two rows of the fit, and three more
    found = fit.predict(later, "y")
    check_states(found, filtered(y))
    draws = found.draw(1500, seed=0)
    np.testing.assert_allclose(draws.mean(axis=0)[2:], found.mean[2:], atol=0.25)
    np.testing.assert_allclose(found.mean[:2], fit.mean("z")[2:] @ MEANS)
    fresh = fit.predict(states(range(10, 13)), "y")  # a sequence that was never seen
    np.testing.assert_allclose(fresh.mean[0], START @ MEANS)
    np.testing.assert_allclose(fresh.mean[2], START @ P @ P @ MEANS)


def test_rows_at_the_end_that_are_missing_are_forecast() -> None:
    y = np.array([-1.2, 1.5, 2.2, np.nan, np.nan, np.nan])
    model = states(range(6), y, missing=True)
    check_states(svmp.fit(model, svmp.FullVB()).predict(model, "y"), filtered(y[:3]))


def vectors(rows: Any, y: Any = None, hidden: bool = False) -> svmp.Model:
    with svmp.Model(coords={"row": list(rows), "d": 1}) as model:
        tau: Any = svmp.Gamma("tau", alpha=30, beta=10) if hidden else 3.0
        init = svmp.MvNormal.dist(mu=[0.5], tau=[[2.0]])
        x = svmp.LinearGaussianChain("x", A=[[0.8]], tau=tau, init=init, dims=("row", "d"))
        svmp.Normal("y", mu=x[:, 0], tau=4.0, dims="row", observed=y)
    return model


def kalman(y: Any) -> tuple[float, float]:
    mean, var = 0.5, 0.5
    for t, value in enumerate(y):
        if t:
            mean, var = 0.8 * mean, 0.64 * var + 1 / 3
        gain = var / (var + 0.25)
        mean, var = mean + gain * (value - mean), (1 - gain) * var
    return mean, var


def test_vectors_follow_the_kalman_filter() -> None:
    y = np.array([1.0, 1.4, 0.2, -0.5])
    fit = svmp.fit(vectors(range(4), y), svmp.FullVB())
    found = fit.predict(vectors(range(3, 6)), "y")
    mean, var = kalman(y)
    for h in (1, 2):
        mean, var = 0.8 * mean, 0.64 * var + 1 / 3
        assert found.mean[h] == pytest.approx(mean)
        assert found.var[h] == pytest.approx(var + 0.25)
    draws = found.draw(1500, seed=1)
    np.testing.assert_allclose(draws.std(axis=0), found.std, rtol=0.1)


def test_hidden_parameters_of_a_chain_are_drawn() -> None:
    y = np.array([1.0, 1.4, 0.2, -0.5])
    fit = svmp.fit(vectors(range(4), y, hidden=True), svmp.FullVB())
    found = fit.predict(vectors(range(3, 6), hidden=True), "y", draws=300)
    x, q = fit["x"], fit["tau"]
    var = 0.64 * x.var[3, 0] + q.beta / (q.alpha - 1) + 0.25
    assert found.mean[1] == pytest.approx(0.8 * x.mean[3, 0])
    assert found.var[1] == pytest.approx(var, rel=1e-3)


def test_prior_draws_of_chains_have_their_moments() -> None:
    draws = svmp.prior_predictive(vectors(range(3), np.zeros(3)), 1500, seed=0)["x"][..., 0]
    assert draws[:, 2].mean() == pytest.approx(0.32, abs=0.09)
    assert draws[:, 2].var() == pytest.approx(0.64 * (0.32 + 1 / 3) + 1 / 3, rel=0.15)
    z = svmp.prior_predictive(states(range(3), np.zeros(3)), 1500, seed=0)["z"]
    assert z[:, 2].mean() == pytest.approx((START @ P @ P)[1], abs=0.05)
