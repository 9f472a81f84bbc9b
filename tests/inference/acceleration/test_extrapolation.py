"""Extrapolation under convex bounds: the same optimum in fewer sweeps, a bound that never falls."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.inference.acceleration import Extrapolation
from svmp.inference.methods import Method
from svmp.inference.program.program import Program
from svmp.network.network import Network


def logits(groups: int = 0) -> svmp.Model:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 3))
    group = rng.integers(0, max(groups, 1), 60)
    y = (x @ [3.0, -2.0, 0.0] + 0.5 * rng.normal(size=60) > 0).astype(float)
    with svmp.Model(coords={"row": 60, "coef": 3, "group": max(groups, 1)}) as model:
        w = svmp.MvNormal("w", mu=0, tau=0.1 * np.eye(3), dims="coef")
        logit = svmp.dot(svmp.data(x, dims=("row", "coef")), w)
        if groups:
            tau = svmp.Gamma("tau", alpha=2, beta=1)
            u = svmp.Normal("u", mu=0, tau=tau, dims="group")
            logit = logit + u[group]
        svmp.Bernoulli("y", logit=logit, dims="row", observed=y)
    return model


@pytest.mark.parametrize("groups", [0, 4])
def test_same_optimum_in_fewer_sweeps(groups: int) -> None:
    options = {"tol": 1e-10, "kernels": False}
    slow = svmp.fit(logits(groups), svmp.Growing(1.0, relax=False), **options)
    fast = svmp.fit(logits(groups), svmp.Growing(1.0), **options)
    assert fast.bound == pytest.approx(slow.bound, rel=1e-7)
    assert fast.mean("w") == pytest.approx(slow.mean("w"), abs=1e-3)
    assert fast.iterations < 0.6 * slow.iterations
    bound = np.array(fast.trace["bound"])
    assert (np.diff(bound) >= -1e-9 * np.abs(bound[1:])).all()


def test_resumed_run_has_the_same_bits(tmp_path) -> None:
    options = {"tol": 0.0, "kernels": False}
    whole = svmp.fit(logits(), svmp.Growing(1.0), max_sweeps=9, **options)
    path = tmp_path / "run"
    svmp.fit(logits(), svmp.Growing(1.0), max_sweeps=5, checkpoint=path, every=1, **options)
    resumed = svmp.fit(logits(), resume=path, max_sweeps=9)
    assert resumed.bound == whole.bound


def extrapolated(network: Network, method: Method) -> tuple[str, ...]:
    """Return the variables that the program of a network extrapolates."""
    accelerators = Program.of(network, method).accelerators
    return sum((a.names for a in accelerators if isinstance(a, Extrapolation)), ())


def test_conjugate_networks_are_not_extrapolated() -> None:
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("y", mu=mu, tau=1, observed=[1.0, 2.0])
    assert extrapolated(Network(model), svmp.Growing(1.0)) == ()
    assert extrapolated(Network(logits()), svmp.Growing(1.0)) == ("w",)
    assert extrapolated(Network(logits()), svmp.FullVB()) == ()
