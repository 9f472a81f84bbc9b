"""Joint blocks in random networks: the bound never falls, and is that of draws from q."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import svmp
from svmp.posterior.uncertainty.fitted import network_and_q
from svmp.posterior.uncertainty.joint_density import JointDensity
from tests.network.networks import of_kind

GAUSSIAN = ["vectors", "vector means", "factorization", "comparisons", "random means", "mixtures"]


@pytest.mark.parametrize("kind", [*GAUSSIAN, "matrices", "inner mixtures", "logits"])
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_bound_never_falls(kind: str, data: st.DataObject) -> None:
    model = data.draw(of_kind(kind))
    fit = svmp.fit(model, svmp.FullVB(), joint="auto", kernels=False, max_sweeps=8)
    size = np.abs(fit.trace["bound"]).max(initial=1.0)
    assert (np.diff(fit.trace["bound"]) > -1e-9 * size).all()
    if fit.joint:  # q is at least as rich, but may be at another maximum
        assert fit.bound >= svmp.fit(model, svmp.FullVB(), max_sweeps=1, kernels=False).bound - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["vectors", "vector means", "comparisons", "random means"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_bound_is_the_mean_over_draws(kind: str, data: st.DataObject) -> None:
    """E[log p(x, theta) - log q(theta)], with draws from the joint q."""
    model = data.draw(of_kind(kind))
    fit = svmp.fit(model, svmp.FullVB(), joint="auto", kernels=False, max_sweeps=5)
    density = JointDensity(*network_and_q(fit, model))
    draws = density.draw(300, 1)
    found = np.array([density.log_joint(density.at(draws, i)) for i in range(300)])
    found -= density.log_q(draws)
    error = found.std() / np.sqrt(300)
    allowed = 6 * error + 1e-8 * abs(fit.bound)
    assert found.mean() >= fit.bound - allowed
    if not density.summed:  # else the bound of what is summed out is lower
        assert found.mean() <= fit.bound + allowed
