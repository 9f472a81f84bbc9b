"""Linear response by matrices and by a sparse factorisation, beside conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import svmp
from svmp.posterior.uncertainty import linear_response, sparse_response

from .test_linear_response import (
    GROUP,
    SIDE,
    X,
    Y,
    crossed,
    factors,
    logistic,
    mixture,
    tight,
    vectors,
)


@pytest.mark.parametrize("declare", [crossed, factors, logistic, mixture, vectors])
def test_matrices_factors_and_conjugate_gradients_agree(
    declare: Callable[[], svmp.Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = declare()
    fit = tight(model)
    names = [name for name in fit.posteriors if name != "z"]
    found = fit.covariance(names, model=model).matrix
    for module in (linear_response, sparse_response):
        monkeypatch.setattr(module, "LARGEST", 0)
        other = fit.covariance(names, model=model).matrix
        np.testing.assert_allclose(found, other, rtol=1e-5, atol=1e-6 * np.abs(other).max())


def test_rotations_of_factors_have_no_linear_response() -> None:
    """The bound is the same for all rotations of vectors with a round prior: a ridge."""
    with svmp.Model(coords={"group": 4, "side": 3, "k": 2}) as model:
        u = svmp.MvNormal("u", mu=np.zeros(2), tau=np.eye(2), dims=("group", "k"))
        v = svmp.MvNormal("v", mu=np.zeros(2), tau=np.eye(2), dims=("side", "k"))
        svmp.Normal("y", mu=svmp.dot(u[GROUP], v[SIDE]), tau=4.0, observed=2 * Y)
    for fit in (tight(model), svmp.fit(model, kernels=False)):
        for refused in (
            lambda: fit.covariance("u", model=model),  # noqa: B023
            lambda: fit.corrected(model),  # noqa: B023
            lambda: fit.predict(model, "y", corrected=True),  # noqa: B023
        ):
            with pytest.raises(svmp.ModelError, match="on a ridge"):
                refused()
        assert fit.predict(model, "y").covariances == "q"


@pytest.mark.parametrize("precision", [1.0, 1e4, 1e6])
def test_effects_that_rows_know_only_together_have_their_exact_sds(precision: float) -> None:
    """Their sum is known 10,000 times better than they are, which is no ridge."""
    with svmp.Model(coords={"group": 4}) as model:
        a = svmp.Normal("a", mu=0, tau=1)
        b = svmp.Normal("b", mu=0, tau=0.1)
        u = svmp.Normal("u", mu=0, tau=2, dims="group")
        svmp.Normal("y", mu=a + b + u[GROUP], tau=precision, observed=1000 * Y)
    fit = svmp.fit(model, tol=1e-12)
    design = np.concatenate([np.ones((30, 2)), np.eye(4)[GROUP]], axis=1)
    prior = np.diag([1, 0.1, 2, 2, 2, 2])
    exact = np.linalg.inv(prior + precision * design.T @ design)
    for found in (fit.covariance(["a", "b", "u"], model=model), fit.corrected(model)):
        sds = [found.std(name).ravel() for name in ("a", "b", "u")]
        np.testing.assert_allclose(np.concatenate(sds), np.sqrt(exact.diagonal()), rtol=1e-4)


@pytest.mark.parametrize(("level", "noise"), [(1.0, 0.02), (1.0, 2e-4), (100.0, 0.02)])
def test_an_intercept_and_groups_beside_a_learned_noise(level: float, noise: float) -> None:
    """Given the noise, whose uncertainty does not count here, the posterior is Normal."""
    rng = np.random.default_rng(0)
    group, effect = rng.integers(0, 5, 2000), rng.normal(size=5)
    y = level + effect[group] + noise * rng.normal(size=2000)
    with svmp.Model(coords={"group": 5}) as model:
        a = svmp.Normal("a", mu=level, tau=1)
        u = svmp.Normal("u", mu=0, tau=1, dims="group")
        tau = svmp.Gamma("tau", alpha=1, beta=noise**2)
        svmp.Normal("y", mu=a + u[group], tau=tau, observed=y)
    fit = svmp.fit(model)
    design = np.column_stack([np.ones(2000), np.eye(5)[group]])
    exact = np.linalg.inv(np.eye(6) + design.T @ design / noise**2)
    found = fit.covariance(["a", "u"], model=model).matrix.diagonal()
    np.testing.assert_allclose(np.sqrt(found), np.sqrt(exact.diagonal()), rtol=1e-3)


def test_it_does_not_matter_where_the_zero_of_a_logit_is() -> None:
    """a is at -1.4 or at 1,000, and the logit is the same."""

    def declare(shift: float) -> svmp.Model:
        with svmp.Model() as model:
            a = svmp.Normal("a", mu=shift - 1.4, tau=0.7)
            b = svmp.Normal("b", mu=0, tau=0.5)
            logit = (a - shift) * X[:, 0] + b * X[:, 1]
            svmp.Bernoulli("y", logit=logit, observed=(Y > 1).astype(float))
        return model

    one, other = (tight(declare(shift)).corrected() for shift in (0.0, 1000.0))
    for name in ("a", "b"):
        assert other[name].std == pytest.approx(one[name].std, rel=1e-4)
