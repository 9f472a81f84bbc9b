"""The warning of a fit that ends at the default limit of sweeps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import svmp
from svmp.inference import execute


@pytest.fixture(autouse=True)
def _few_sweeps(monkeypatch):
    """Set the default limit to 20 sweeps."""
    monkeypatch.setattr(execute, "MAX_SWEEPS", 20)
    monkeypatch.setitem(svmp.fit.__wrapped__.__kwdefaults__, "max_sweeps", 20)


def years() -> svmp.Model:
    x = np.arange(1950.0, 2021.0)
    y = 0.3 * x - 600 + np.random.default_rng(0).normal(0, 2, len(x))
    with svmp.Model() as model:
        a, b = svmp.Normal("a", mu=0, tau=1e-6), svmp.Normal("b", mu=0, tau=1e-6)
        svmp.Normal("y", mu=a + b * x, tau=svmp.Gamma("tau", alpha=1, beta=1), observed=y)
    return model


def ratings() -> svmp.Model:
    """Factors and biases, without covariates."""
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 20, 300), rng.integers(0, 15, 300)
    with svmp.Model(coords={"user": 20, "item": 15, "factor": 3}) as model:
        level = svmp.Normal("level", mu=0, tau=1)
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        mu = level + svmp.dot(u[user], v[item])
        svmp.Normal("r", mu=mu, tau=1, observed=3 + 2 * rng.normal(size=300))
    return model


def coin() -> svmp.Model:
    with svmp.Model() as model:
        p = svmp.Beta("p", alpha=1, beta=1)
        svmp.Bernoulli("x", p=p, observed=[1, 0, 1])
    return model


def test_default_limit_warns():
    with pytest.warns(svmp.ConvergenceWarning) as caught:
        fit = svmp.fit(years(), svmp.FullVB())
    assert fit.status == "budget"
    message = str(caught[0].message)
    for word in ("max_sweeps=20", "centre", "init=fit", "tol=", "leave out the method"):
        assert word in message
    assert caught[0].filename == __file__


def test_warning_recommends_the_default_method_only_for_others():
    with pytest.warns(svmp.ConvergenceWarning, match="centre") as caught:
        svmp.fit(years(), tol=0)
    assert "leave out" not in str(caught[0].message)


def columns() -> svmp.Model:
    """A regression whose covariates are the columns of a matrix."""
    rng = np.random.default_rng(0)
    x = rng.normal(3, 1, size=(30, 2))
    with svmp.Model(coords={"row": 30, "column": 2}) as model:
        b = svmp.Normal("b", mu=0, tau=1, dims="column")
        mu = svmp.dot(svmp.data(x, dims=("row", "column")), b)
        svmp.Normal("y", mu=mu, tau=1, dims="row", observed=x.sum(1) + rng.normal(size=30))
    return model


@pytest.mark.parametrize(("build", "said"), [(years, True), (columns, True), (ratings, False)])
def test_covariates_are_named_only_where_there_are_some(build, said):
    with pytest.warns(svmp.ConvergenceWarning) as caught:
        svmp.fit(build(), svmp.FullVB(), tol=0)
    assert ("covariates" in str(caught[0].message)) == said


@pytest.mark.parametrize(
    "limit", [{"max_sweeps": 5}, {"max_accesses": 300}, {"max_sweeps": None, "max_accesses": 10**4}]
)
def test_user_defined_limit_does_not_warn(limit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert svmp.fit(years(), svmp.FullVB(), **limit).status == "budget"


def test_converged_fit_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert svmp.fit(coin()).status == "converged"


def test_warning_is_a_user_warning():
    assert issubclass(svmp.ConvergenceWarning, UserWarning)
