"""Compiled updates against plain code: the same natural parameters, the same bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import svmp
from svmp.inference.updaters.setup import find_loops
from svmp.kernels.multilinear.update import LONG
from svmp.kernels.multilinear.updater import Multilinear
from svmp.network.network import Network
from tests.inference.tools import gallery
from tests.kernels.twins import METHODS, both, declare_rows


@st.composite
def factorizations(draw: Callable[..., Any]) -> svmp.Model:
    """Matrix factorizations of every kind that the loops support."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    users, items = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    k = draw(st.sampled_from([1, 2, 5, 6, 9, 19]))
    rows = draw(st.sampled_from([1, 2, 7, 40]))
    shape = draw(st.sampled_from(["even", "one long row", "many empty keys"]))
    user, item = rng.integers(users, size=rows), rng.integers(items, size=rows)
    if shape == "one long row":
        user[:] = users - 1
    elif shape == "many empty keys":
        users, items = users + 20, items + 5
    missing: Any = False
    if draw(st.booleans()) and rows > 1:
        missing = rng.random(rows) < 0.3
        missing[0] = False
    has_dot, has_user, has_item, has_mean = (draw(st.booleans()) for _ in range(4))
    with svmp.Model(coords={"user": users, "item": items, "factor": k, "row": rows}) as model:
        mu: Any = draw(st.sampled_from([0.0, 3.5]))
        if has_mean:
            mu = mu + svmp.Normal("mean", mu=0, tau=0.5)
        if has_user:
            a = svmp.Normal("a", mu=0, tau=2, dims="user")[user]
            mu = mu + (a * rng.normal(1, 0.5, rows) if draw(st.booleans()) else a)
        if has_item:
            mu = (
                mu
                + draw(st.sampled_from([1.0, 0.5]))
                * svmp.Normal("b", mu=0, tau=2, dims="item")[item]
            )
        if has_dot or not (has_mean or has_user or has_item):
            prior = draw(st.sampled_from(["one", "learned", "by factor"]))
            tau_u: Any = 1.0
            if prior == "learned":
                tau_u = svmp.Gamma("tau_u", alpha=2, beta=1)
            elif prior == "by factor":
                tau_u = svmp.Gamma("tau_u", alpha=2, beta=1, dims="factor")
            u = svmp.Normal("u", mu=0, tau=tau_u, dims=("user", "factor"))
            v = svmp.Normal("v", mu=0.1, tau=1, dims=("item", "factor"))
            mu = mu + svmp.dot(u[user], v[item])
        declare_rows(draw, rng, mu, item, missing)
    return model


@pytest.mark.parametrize("label", METHODS)
def test_loops_and_plain_code_agree(label):
    @settings(max_examples=15, phases=[Phase.generate])
    @given(factorizations(), st.integers(0, 2**16))
    def check(model: svmp.Model, seed: int) -> None:
        both(model, seed, *METHODS[label])

    check()


@pytest.mark.parametrize("label", METHODS)
@pytest.mark.parametrize("name", ["04 paper", "04 biases", "09", "10"])
def test_loops_and_plain_code_agree_on_the_gallery(label, name):
    both(gallery()[name], 3, *METHODS[label], iterations=2)


@pytest.mark.parametrize("method", [svmp.FullVB(), svmp.Children(9, "a", True), svmp.Batch(60)])
def test_a_constant_in_the_mean_is_added_once(method):
    """y ~ Normal(3.5 + b, 1): the posterior of b in closed form."""
    y = 10 + np.random.default_rng(0).normal(size=60)
    with svmp.Model() as model:
        b = svmp.Normal("b", mu=0, tau=1)
        svmp.Normal("y", mu=3.5 + b, tau=1, observed=y)
    steps = svmp.Constant(1.0) if not isinstance(method, svmp.Children) else None
    fit = svmp.fit(model, method, steps=steps, max_sweeps=200)
    exact = (y - 3.5).sum() / (1 + len(y))
    assert fit.mean("b") == pytest.approx(exact, rel=0.05 if steps is None else 1e-9)


@pytest.mark.parametrize("method", [svmp.FullVB(), svmp.Growing(first=1.0)])
def test_keys_with_very_many_rows(method):
    """y ~ Normal(b x, 1) with more rows than one thread reads: b in closed form."""
    x, noise = np.random.default_rng(0).normal(size=(2, LONG + 5_000))
    y = 2 * x + noise
    with svmp.Model() as model:
        b = svmp.Normal("b", mu=0, tau=1)
        svmp.Normal("y", mu=b * x, tau=1, observed=y)
    fit = svmp.fit(model, method, steps=svmp.Constant(1.0), max_sweeps=2)
    assert fit.mean("b") == pytest.approx(x @ y / (1 + x @ x), rel=1e-12)


def plans(model: svmp.Model) -> set[str]:
    network = Network(model)
    every = {**network.hidden, **network.observed}
    return {name for name, v in every.items() if Multilinear.of(v.conditional, None) is not None}


@pytest.mark.parametrize(("name", "table"), [("04 paper", "r"), ("04 biases", "r"), ("10", "y")])
def test_factorizations_are_compiled(name, table):
    assert isinstance(find_loops(Network(gallery()[name]))[table], Multilinear)


def test_the_loops_are_called_unless_kernels_is_false(monkeypatch):
    called = []
    update = Multilinear.update

    def note(self, q, name, *rest):
        called.append(name)
        return update(self, q, name, *rest)

    monkeypatch.setattr(Multilinear, "update", note)
    svmp.fit(gallery()["04 biases"], svmp.FullVB(), max_sweeps=1)
    assert {"mean", "a", "b", "u", "v"} <= set(called)
    called.clear()
    svmp.fit(gallery()["04 biases"], svmp.FullVB(), max_sweeps=1, kernels=False)
    assert not called


@pytest.mark.parametrize(
    ("name", "table"),
    [("05", "x"), ("06 counts", "x"), ("07", "w"),
     ("11", "goals"), ("03 scalars", "y"), ("01 Gamma-Poisson", "x")],
)  # fmt: skip
def test_unsupported_densities_use_plain_code(name, table):
    assert table not in plans(gallery()[name])


def test_variables_in_two_terms_use_plain_code():
    with svmp.Model(coords={"player": 4}) as model:
        s = svmp.Normal("s", mu=0, tau=1, dims="player")
        svmp.Normal("x", mu=s[[0, 1]] + s[[2, 3]], tau=1, observed=[1.0, 2.0])
    assert plans(model) <= {"s"}


def test_integer_data_with_a_covariate_far_from_zero():
    """Seconds since 1970, which single precision rounds to minutes; least squares is the truth."""
    rng = np.random.default_rng(0)
    seconds = rng.uniform(-4000, 4000, 20_000)
    y = np.rint(5 + seconds / 400 + rng.normal(size=20_000)).astype(int)
    with svmp.Model() as model:
        a = svmp.Normal("a", mu=0, tau=1e-18)
        b = svmp.Normal("b", mu=0, tau=1e-4)
        tau = svmp.Gamma("tau", alpha=0.01, beta=0.01)
        svmp.Normal("y", mu=a + b * (1e9 + seconds), tau=tau, observed=y)
    fit = svmp.fit(model)
    slope, intercept = np.polyfit(seconds, y, 1)
    assert fit.mean("b") == pytest.approx(slope, rel=1e-6)
    noise = np.var(y - intercept - slope * seconds)
    assert 1 / fit.mean("tau") == pytest.approx(noise, rel=5e-4)
