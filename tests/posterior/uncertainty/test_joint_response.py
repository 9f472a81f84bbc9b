"""Variances of precisions beside joint blocks: fits of tilted models, and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import polygamma

import svmp
from svmp.fitting.fit import fit as fit_model
from svmp.network.network import Network

from .test_linear_response import EFFECT, GROUP, SD, SIDE, Y, schools

pytestmark = pytest.mark.by_size


def crossed() -> svmp.Model:
    """Crossed effects; group 4 has no rows."""
    with svmp.Model(coords={"group": 5, "side": 3}) as model:
        c = svmp.Normal("c", mu=0, tau=0.5)
        s = svmp.Gamma("s", alpha=3, beta=2)
        a = svmp.Normal("a", mu=c, tau=s, dims="group")
        b = svmp.Normal("b", mu=0, tau=2, dims="side")
        tau = svmp.Gamma("tau", alpha=3, beta=2, dims="side")
        svmp.Normal("y", mu=a[GROUP] + b[SIDE], tau=tau[SIDE], observed=Y)
    return model


@pytest.mark.parametrize("tilted", ["s", "tau"])
def test_it_is_the_response_of_a_fit_to_a_tilt(tilted: str) -> None:
    model, options = crossed(), {"joint": [("c", "a", "b")], "tol": 1e-14, "kernels": False}
    start = svmp.fit(model, **options)  # type: ignore[arg-type]
    found = start.corrected(model)
    assert found.joint == start.joint
    step, moved = 1e-3, []
    for t in (step, -step):
        learned = np.zeros(start[tilted].natural.shape)
        learned[0, 1] = t  # of the logarithm, whose mean is the second moment
        again = fit_model(Network(model, {tilted: learned}), **options)  # type: ignore[arg-type]
        moved.append(again.posteriors[tilted].moments.reshape(-1, 2)[0, 1])
    response = (moved[0] - moved[1]) / (2 * step)
    assert polygamma(1, found[tilted].alpha.ravel()[0]) == pytest.approx(response, rel=1e-3)
    assert polygamma(1, start.posteriors[tilted].alpha.ravel()[0]) < 0.97 * response


def test_summaries_of_eight_schools_are_near_quadrature() -> None:
    fit = svmp.fit(schools(), joint=[("mu", "theta")], tol=1e-12)
    tau = np.exp(np.linspace(-9, 1, 4001))
    precision = 1 / (SD**2 + 1 / tau[:, None])
    total = precision.sum(axis=1) + 1 / 25
    mean = precision @ EFFECT / total
    log_weight = 0.5 * (np.log(precision).sum(axis=1) - np.log(total) + total * mean**2)
    log_weight += -0.5 * precision @ EFFECT**2 + 2 * np.log(tau) - 40 * tau
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    sd = np.sqrt(weight @ tau**2 - (weight @ tau) ** 2)
    frame = fit.summary(kind="frame").set_index("variable")
    assert frame.sd["tau"] == pytest.approx(sd, rel=0.1)
    assert "sds by linear response" in str(fit)


def test_blocks_without_such_precisions_are_refused() -> None:
    with svmp.Model() as model:
        a, b = svmp.Normal("a", mu=0, tau=1), svmp.Normal("b", mu=0, tau=1)
        svmp.Normal("y", mu=a + b, tau=1, observed=[3.0])
    fit = svmp.fit(model, joint=[("a", "b")])
    with pytest.raises(svmp.ModelError, match=r"precisions of its blocks.*this fit has none"):
        fit.corrected(model)
    assert "linear response" not in str(fit)
