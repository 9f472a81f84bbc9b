"""Mistakes of somebody who comes from another library: one sentence that has the remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import svmp
from svmp.network.other_names import OF_FIT, OF_KIND, OF_MODEL, OTHER_NAMES

Y = np.array([1.0, 2.0, 0.5])


def mu() -> Any:
    return svmp.Normal("mu", mu=0, tau=1)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: svmp.Normal("y", mu=0, size=3), "has a size.*name the axes with dims="),
        (lambda: svmp.Normal("y", loc=0), "has a loc.*the mean is mu"),
        (lambda: svmp.Normal("y", 0, 1, initval=3), "'y' has an initval.*init="),
        (lambda: svmp.Gamma("y", mu=1, sigma=2), r"'y' has a mu.*alpha is mu\*\*2"),
        (lambda: svmp.Beta("y", mu=0.5), "'y' has a mu.*alpha is mu times"),
        (lambda: svmp.Dirichlet("y", p=[1, 1]), "'y' has a p.*concentrations are a"),
        (lambda: svmp.Wishart("y", n=3), "'y' has a n.*degrees of freedom are nu"),
        (lambda: svmp.Exponential("y", scale=3), "'y' has a scale.*1 / scale"),
        (lambda: svmp.Bernoulli("y", logit_p=mu()), "'y' has a logit_p.*given as logit="),
        (lambda: svmp.Bernoulli("y", p=mu(), observed=[1]), "p of 'y'.*logit= of a Bernoulli"),
        (lambda: svmp.Mixture("y", w=3), "'y' has a w, but Mixture takes z, component.*p=w"),
        (lambda: svmp.Mixture("y", mu(), svmp.Normal.dist(), observed=Y), "as z = svmp.Categor"),
        (lambda: svmp.Poisson("y", mu=1, observed=[1.5]), "'y' holds 1.5.*whole numbers from 0"),
        (lambda: svmp.Bernoulli("y", p=0.5, observed=[2]), "'y' holds 2.*0 and 1"),
        (lambda: svmp.Categorical("y", p=[0.5, 0.5], observed=[2]), "its categories are 0 to 1"),
        (lambda: svmp.Normal("y", observed=["1.5", "2"]), "'y' are not numbers.*astype"),
        (lambda: svmp.Normal("y", mu() * np.array([1.0, np.nan])), "leave out such rows"),
        (lambda: svmp.Normal("y", observed=[[1.0]], dims="row"), "'y' has dims.*give each axis"),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_remedy(
    declare: Callable[[], Any], message: str
) -> None:
    with svmp.Model(), pytest.raises(svmp.ModelError, match=message) as caught:
        declare()
    assert "\n" not in str(caught.value)


def test_keys_of_another_type_are_refused_with_a_remedy() -> None:
    days = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[s]")
    with svmp.Model(coords={"group": 3, "day": days}):
        u, v = (svmp.Normal(n, mu=0, tau=1, dims=d) for n, d in (("u", "group"), ("v", "day")))
        with pytest.raises(svmp.ModelError, match=r"'u' along 'group' must be whole.*astype"):
            u[np.array([0.0, 2.0])]
        with pytest.raises(
            svmp.ModelError, match=r"'v' along 'day' holds '2024-01-02'.*datetime64"
        ):
            v[["2024-01-02"]]


def test_a_log_link_is_refused_with_the_conjugate_form() -> None:
    with svmp.Model():
        eta = svmp.Normal("eta", mu=0, tau=1)
        for declare in (
            lambda: svmp.Poisson("y", log=eta, observed=[1]),
            lambda: svmp.Poisson("y", mu=np.exp(eta), observed=[1]),
            lambda: svmp.Poisson("y", mu=eta.exp(), observed=[1]),
            lambda: svmp.Poisson("y", mu=svmp.exp(eta), observed=[1]),
        ):
            with pytest.raises((svmp.ModelError, AttributeError), match="product of Gammas"):
                declare()


def test_an_attribute_of_another_library_is_refused_with_a_remedy() -> None:
    with svmp.Model() as model:
        svmp.Normal("y", mu=mu(), tau=1, observed=Y)
    fit = svmp.fit(model)
    for owner, hints in ((fit, OF_FIT), (model, OF_MODEL)):
        for name in hints:
            with pytest.raises(AttributeError, match=f"has no attribute '{name}'; use|; "):
                getattr(owner, name)
        with pytest.raises(AttributeError, match=r"'something_else'$"):
            _ = owner.something_else
        assert not hasattr(owner, "__array__")
    with pytest.raises(AttributeError, match="no attribute 'bounds'; did you mean 'bound'"):
        _ = fit.bounds
    with pytest.raises(AttributeError, match=r"no attribute 'hdi'; use \.interval\(prob\)"):
        _ = fit["mu"].hdi


def test_what_a_model_lacks_is_refused_with_what_it_has() -> None:
    with svmp.Model() as model:
        svmp.Normal("y", mu=mu(), tau=1, observed=Y)
    with pytest.raises(KeyError, match=r"no variable 'z'; there are \['mu', 'y'\]"):
        model["z"]
    with pytest.raises(svmp.ModelError, match=r"not be a DataFrame; a data frame is data="):
        svmp.Model(pd.DataFrame({"y": Y}))


def test_every_hint_names_what_there_is() -> None:
    every = [*OTHER_NAMES.values(), *OF_KIND.values(), *OF_FIT.values(), *OF_MODEL.values()]
    with svmp.Model() as model:
        svmp.Normal("y", mu=mu(), tau=1, observed=Y)
    there = {"svmp": svmp, "fit": svmp.fit(model), "model": model}
    for owner, name in re.findall(r"\b(svmp|fit|model)\.(\w+)", " ".join(every)):
        assert hasattr(there[owner], name), (owner, name)


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_name_of_another_library_is_refused_with_a_remedy(name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; "):
        getattr(svmp, name)
    assert not hasattr(svmp, "something_else")


@pytest.mark.parametrize(("name", "nu"), [("HalfCauchy", 1), ("HalfStudentT", 5)])
def test_the_declared_prior_of_a_standard_deviation_is_the_named_one(name: str, nu: int) -> None:
    code = "\n".join(re.findall(r"\w+ = svmp\.Gamma\('\w+', .*?\)(?= and|$)", OTHER_NAMES[name]))
    names: dict[str, Any] = {"svmp": svmp, "s": 2.0, "nu": nu}
    with svmp.Model() as model:
        exec(code, names)
    sd = svmp.prior_predictive(model, 20_000, seed=3)["tau"] ** -0.5
    p = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    expected = 2.0 * stats.t(nu).ppf((1 + p) / 2)  # a half-Cauchy has one degree of freedom
    below = (sd[:, None] < expected).mean(axis=0)
    np.testing.assert_allclose(below, p, atol=4 * np.sqrt(0.25 / len(sd)))
