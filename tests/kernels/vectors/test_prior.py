"""The bound term of hidden MvNormals against the plain one."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.kernels.vectors.prior import HiddenVectors
from svmp.network.network import Network
from tests.network.tools import anywhere


@pytest.mark.parametrize("learned", [False, True])
def test_terms_of_hidden_vectors_are_the_plain_ones(
    learned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svmp.kernels.vectors.prior.MANY", 1)
    rng = np.random.default_rng(0)
    user, item = rng.integers(5, size=30), rng.integers(7, size=30)
    with svmp.Model(coords={"user": 6, "item": 7, "k": 3}) as model:  # one user has no rows
        tau = svmp.Gamma("tau", alpha=2, beta=1, dims="k")
        prior = svmp.diag(tau) if learned else np.diag([1.0, 2.0, 3.0])
        u = svmp.MvNormal("u", mu=np.ones(3), tau=prior, dims=("user", "k"))
        v = svmp.MvNormal("v", mu=np.zeros(3), tau=np.eye(3), dims=("item", "k"))
        svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=1, observed=rng.normal(size=30))
    network = Network(model)
    q = anywhere(network, 1)
    for name in ("u", "v"):
        terms = HiddenVectors.of(network.variable(name).conditional, network.present[name])
        assert terms is not None
        assert terms.bound_term(q) == pytest.approx(network.bound_term(q, name), rel=1e-12)
    assert HiddenVectors.of(network.variable("tau").conditional, network.present["tau"]) is None
