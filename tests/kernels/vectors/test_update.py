"""The update of one vector from the sums of its rows."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.kernels.multilinear.terms import Receiver
from svmp.kernels.vectors.update import system_for, update_from_sums


@pytest.mark.parametrize("k", [1, 2, 5, 20])
def test_moments_are_those_of_the_natural_parameters(k):
    """E[x] and E[x x^T] of a Normal with precision matrix tau: mu, mu mu^T + tau^-1."""
    rng = np.random.default_rng(k)
    root, mu = rng.normal(size=(k, 2 * k)), rng.normal(size=k)
    tau = root @ root.T
    prior = np.concatenate([tau @ mu, -0.5 * tau.ravel()])[None]
    one, first = np.ones(1), np.zeros(1, dtype=np.int64)
    to = Receiver(0, 0, k, first, one, one, prior, at_once=True, joint=True)
    natural, moments = np.zeros_like(prior), np.zeros_like(prior)
    nothing, system = np.zeros(k * (k + 3) // 2), system_for(k)
    assert update_from_sums(to, 0, k, nothing, system, natural, moments)
    np.testing.assert_allclose(natural, prior)
    np.testing.assert_allclose(moments[0, :k], mu, rtol=1e-8)
    second = np.outer(mu, mu) + np.linalg.inv(tau)
    np.testing.assert_allclose(moments[0, k:].reshape(k, k), second, rtol=1e-8, atol=1e-10)
