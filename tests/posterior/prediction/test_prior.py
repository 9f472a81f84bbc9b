"""Prior predictive draws have the moments of the prior; joint draws of q share their axis."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from tests.inference.models import every_family

pytestmark = pytest.mark.by_size


def test_prior_draws_have_the_moments_of_the_prior() -> None:
    with svmp.Model(coords={"group": 2, "row": 3}) as model:
        mu = svmp.Normal("mu", mu=1, tau=4)
        tau = svmp.Gamma("tau", alpha=5, beta=2)
        u = svmp.Normal("u", mu=mu, tau=tau, dims="group")
        svmp.Normal("y", mu=u[[0, 0, 1]], tau=2, dims="row", observed=[9.0, 9.0, 9.0])
    draws = svmp.prior_predictive(model, 2000, seed=1)
    y = draws["y"]
    assert y.shape == (2000, 3)
    assert y.mean() == pytest.approx(1, abs=0.08)
    within, between = 0.25 + 2 / 4, 0.25
    np.testing.assert_allclose(
        np.cov(y.T),
        [
            [within + 0.5, within, between],
            [within, within + 0.5, between],
            [between, between, within + 0.5],
        ],
        atol=0.15,
    )
    np.testing.assert_array_equal(y, svmp.prior_predictive(model, 2000, seed=1)["y"])


def test_every_family_is_drawn_from_its_prior_in_its_support() -> None:
    model = every_family()
    draws = svmp.prior_predictive(model, 20, seed=0)
    for name, variable in model.variables.items():
        assert draws[name].shape == (20, *variable.shape)
        for draw in draws[name]:
            values = draw.reshape(variable.size, *variable.shape[len(variable.plate.shape) :])
            assert variable.family.in_support(values).all()


def test_vague_priors_are_refused_and_large_rates_are_drawn() -> None:
    with svmp.Model() as model:
        svmp.Poisson("y", mu=1e25, observed=[3])
    assert svmp.prior_predictive(model, 3, seed=0)["y"].min() > 9e24
    with svmp.Model() as model:
        tau = svmp.Gamma("tau", alpha=1e-4, beta=1e-4)
        x = svmp.Normal("x", mu=0, tau=tau)
        svmp.Normal("y", mu=x * 1e90, tau=tau * 1e-90, observed=[3])
    with pytest.raises(svmp.ModelError, match="too large for 64-bit floats"):
        svmp.prior_predictive(model, 200, seed=0)


def test_joint_draws_are_those_of_each_posterior() -> None:
    fit = svmp.fit(every_family(), svmp.FullVB())
    draws = fit.draw(["normal", "gamma", "wishart"], 7, seed=3)
    for name, values in draws.items():
        np.testing.assert_array_equal(values, fit[name].draw(7, seed=3))
    assert draws["wishart"].shape == (7, 2, 2, 2)
