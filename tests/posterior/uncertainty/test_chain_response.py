"""Linear response of networks with chains: exact posteriors, and fits of tilted models."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import svmp
from svmp.fitting.fit import fit as fit_model
from svmp.network.network import Network

from .test_linear_response import tight

RNG = np.random.default_rng(5)
Z = RNG.normal(size=14) + 1.0
Y = np.cumsum(RNG.normal(size=14)) + 0.5 * RNG.normal(size=14) + Z
STATE = np.repeat([0, 1, 0], [5, 5, 4])
SIGNAL = np.array([-2.0, 2.0])[STATE] + 0.7 * RNG.normal(size=14)


def walk(tau: float | None = None) -> svmp.Model:
    with svmp.Model(coords={"day": 14, "d": 1}) as model:
        step = svmp.Gamma("tau", alpha=3, beta=3) if tau is None else tau
        first = svmp.MvNormal.dist(mu=[0.0], tau=[[1.0]])
        x = svmp.LinearGaussianChain("x", A=[[1.0]], tau=step, init=first, dims=("day", "d"))
        b = svmp.Normal("b", mu=0, tau=1)
        svmp.Normal("y", mu=x[:, 0] + b * Z, tau=4.0, dims="day", observed=Y)
    return model


def states() -> svmp.Model:
    with svmp.Model(coords={"day": 14, "state": 2, "to": 2}) as model:
        p = svmp.Dirichlet("P", a=np.eye(2) * 3 + 1, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", P=p, init=[0.5, 0.5], dims="day")
        mu = svmp.Normal("mu", mu=[-1, 1], tau=0.2, dims="state")
        tau = svmp.Gamma("tau", alpha=3, beta=2)
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="day", observed=SIGNAL)
    return model


def test_it_is_exact_where_the_posterior_is_normal() -> None:
    model = walk(tau=2.0)
    found = tight(model).covariance("b", model=model)
    precision = 4.0 * np.eye(14)
    precision[0, 0] += 1.0
    for day in range(13):
        tie = np.eye(14)[day + 1] - np.eye(14)[day]
        precision += 2.0 * np.outer(tie, tie)
    exact = 1 / (1 + 4 * Z @ Z - 16 * Z @ np.linalg.solve(precision, Z))
    assert found.var("b") == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize(
    ("declare", "tilted", "read"), [(walk, "tau", "b"), (states, "tau", "mu"), (states, "P", "tau")]
)
def test_it_is_the_response_of_a_fit_to_a_tilt(
    declare: Callable[[], svmp.Model], tilted: str, read: str
) -> None:
    """Tilt the log joint, and fit again: the means move by their covariance with the tilt."""
    model = declare()
    start = tight(model)
    found = start.covariance([tilted, read], model=model, method="linear_response")
    step, moved = 1e-3, []
    for t in (step, -step):
        learned = np.zeros(start[tilted].natural.shape)
        learned[0, 0] = t
        network = Network(model, {tilted: learned})
        again = fit_model(
            network, svmp.FullVB(), init=start, tol=1e-15, max_sweeps=5000, kernels=False
        )
        moved.append([again.mean(read).ravel()[0], again.mean(tilted).ravel()[0]])
    response = (np.array(moved[0]) - moved[1]) / (2 * step)
    if tilted == "P":  # the tilt is by log P, so that only the signs are compared
        assert np.sign(found.between(read, tilted)[0, 0]) == np.sign(response[0])
        return
    expected = [found.between(read, tilted)[0, 0], found.var(tilted).ravel()[0]]
    np.testing.assert_allclose(expected, response, rtol=2e-3, atol=1e-4)


def test_chains_themselves_and_psis_are_refused() -> None:
    model = walk()
    fit = tight(model)
    with pytest.raises(svmp.ModelError, match="'x' is a chain, whose q is joint along each"):
        fit.covariance("x", model=model)
    with pytest.raises(svmp.ModelError, match="'x' is a chain, for which PSIS is not available"):
        fit.khat(model)
    assert fit.corrected(model)["b"].std > fit["b"].std
