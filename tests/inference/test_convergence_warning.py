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
