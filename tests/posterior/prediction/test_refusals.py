"""Predictions that cannot be made are refused in one sentence that says what differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp

pytestmark = pytest.mark.by_size


def declare(
    count: int = 3,
    values: Any = None,
    kind: Any = None,
    extra: bool = False,
    groups: Any = ("a", "b"),
    flat: bool = False,
) -> svmp.Model:
    with svmp.Model(coords={"group": groups, "row": count, "col": 2}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        spread = svmp.Gamma("spread", alpha=2, beta=1)
        tau = 1.0 if flat else spread
        if kind is None:
            u = svmp.Normal("u", mu=mu, tau=tau, dims="group")
        elif kind == "dims":
            u = svmp.Normal("u", mu=mu, tau=tau, dims=("group", "col"))[:, 0]
        elif kind == "gamma":
            svmp.Gamma("u", alpha=2, beta=1, dims="group")
            u = mu
        if extra:
            u = u + svmp.Normal("v", mu=0, tau=1)
        keyed = u[np.zeros(count, dtype=int)] if kind is None and not extra else mu
        svmp.Normal("y", mu=keyed, tau=spread, dims="row", observed=values)
    return model


@pytest.fixture(scope="module")
def fit() -> svmp.Fit:
    return svmp.fit(declare(3, [1.0, 2.0, 1.5]), svmp.FullVB())


def without_u() -> svmp.Model:
    with svmp.Model(coords={"row": 1}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        spread = svmp.Gamma("spread", alpha=2, beta=1)
        svmp.Normal("y", mu=mu, tau=spread, dims="row")
    return model


def logits() -> svmp.Model:
    with svmp.Model(coords={"group": ("a", "b"), "row": 1}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        spread = svmp.Gamma("spread", alpha=2, beta=1)
        u = svmp.Normal("u", mu=mu, tau=spread, dims="group")
        svmp.Bernoulli("y", logit=u[[0]], dims="row", observed=[1])
    return model


def plus_mu() -> svmp.Model:
    with svmp.Model(coords={"group": ("a", "b"), "row": 1}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        spread = svmp.Gamma("spread", alpha=2, beta=1)
        u = svmp.Normal("u", mu=mu, tau=spread, dims="group")
        svmp.Normal("y", mu=u[[0]] + mu, tau=spread, dims="row")
    return model


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.predict(declare(), "x"), r"no variable 'x'; it has \['mu', 'spread'"),
        (lambda f: f.predict(declare(), 3), "no variable 3"),
        (lambda f: f.predict(declare(), "u", noise=False), "'u' is hidden, and has elements with"),
        (
            lambda f: f.predict(logits(), "y"),
            "had mu and tau in the fit and has logit in the model",
        ),
        (lambda f: f.update(logits()), "had mu and tau in the fit and has logit in the model"),
        (lambda f: f.predict(plus_mu(), "y"), r"had mu = u in the fit and has mu = mu \+ u in"),
        (lambda f: f.predict(without_u(), "y"), "the fit has q of 'u', which the model"),
        (lambda f: f.predict(declare(kind="gamma"), "y"), "'u' was a Normal in the fit and is a G"),
        (lambda f: f.predict(declare(kind="dims"), "y"), r"'u' had dims \('group',\) in the fit"),
        (lambda f: f.predict(declare(extra=True), "y"), "hides 'v', of which the fit has no"),
        (lambda f: f.predict(declare(flat=True), "y"), "'u' depended on .*'spread'.* in the fit"),
        (lambda f: f.predict(declare(groups=3), "y"), "'group' has no labels in coords, but had"),
        (lambda f: f.predict(declare(), "y", new=["planet"]), "new names 'planet', which is no"),
        (lambda f: f.predict(declare(), "y", known="row"), "known must be a list of dims"),
        (lambda f: f.predict(declare(), "y", draws=0), "draws must be at least 1"),
        (lambda f: f.predict(declare(), "y", noise="no"), "noise must be True or False"),
        (lambda f: f.predict("model", "y"), "predict needs a svmp.Model"),
        (lambda f: f.predict(declare(), "y").quantile(2), "between 0 and 1"),
        (lambda f: f.predict(declare(), "y").draw(-1), "size must be a whole number"),
        (lambda f: f.predict(declare(), "y").logpdf("a"), r"logpdf of 'y' needs numbers of shape"),
        (lambda f: f.predict(declare(), "y").cdf([1.0, 2.0]), r"cdf of 'y' needs numbers of shape"),
        (lambda f: f.predict(declare(), "y", noise=False).logpdf(1), "density of a mean 'y'"),
        (lambda f: f.draw("u"), "draw needs a list of variables"),
        (lambda f: f.draw(["u", "y"]), "no q of 'y'.*fit.predict"),
        (lambda f: svmp.prior_predictive("model"), "prior_predictive needs a svmp.Model"),
    ],
)
def test_one_sentence_says_what_is_wrong(fit: svmp.Fit, call: Any, message: str) -> None:
    with pytest.raises(svmp.ModelError, match=message) as caught:
        call(fit)
    assert "\n" not in str(caught.value)


def test_either_of_two_dims_may_number_the_rows() -> None:
    def table(rows: int, cols: int, values: Any = None) -> svmp.Model:
        with svmp.Model(coords={"row": rows, "col": cols}) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims="row")
            v = svmp.Normal("v", mu=0, tau=1, dims="col")
            svmp.Normal("y", mu=u + v, tau=1, dims=("row", "col"), observed=values)
        return model

    fit = svmp.fit(table(2, 3, np.ones((2, 3))), svmp.FullVB())
    with pytest.raises(svmp.ModelError, match="either of 'row' and 'col' may number"):
        fit.predict(table(2, 3), "y")
    found = fit.predict(table(4, 3), "y")  # only the number of rows has changed
    np.testing.assert_allclose(found.mean, np.tile(fit["v"].mean, (4, 1)))
    np.testing.assert_allclose(fit.predict(table(2, 3), "y", new=["row"]).mean, found.mean[:2])


def test_the_standard_deviation_is_std(fit: svmp.Fit) -> None:
    np.testing.assert_array_equal(fit.std("u"), fit["u"].std)
    with pytest.raises(AttributeError, match=r"no attribute 'sd'; use \.std"):
        _ = fit["u"].sd
