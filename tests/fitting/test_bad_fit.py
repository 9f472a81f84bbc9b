"""Invalid arguments of fit are refused before the run, in one sentence."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import svmp
from tests.inference.models import mixture, rates, ratings

NAN = float("nan")


def refused(model: Any, *says: str, method: Any = None, **options: Any) -> None:
    with pytest.raises(svmp.ModelError) as caught:
        svmp.fit(model, svmp.FullVB() if method is None else method, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert not re.search(r"\.\s+[A-Z]", text)
    for part in says:
        assert part in text


def test_model_without_hidden_variables() -> None:
    with svmp.Model() as model:
        svmp.Normal("x", mu=0, tau=1, observed=[1.0])
    refused(model, "nothing hidden")


def test_model_without_observed_variables() -> None:
    with svmp.Model() as model:
        svmp.Normal("x", mu=0, tau=1)
    refused(model, "nothing observed")


def test_empty_model() -> None:
    with svmp.Model() as model:
        pass
    refused(model, "nothing")


@pytest.mark.parametrize("model", [None, "model", svmp.Model], ids=repr)
def test_model_must_be_a_model(model: Any) -> None:
    refused(model, "model")


@pytest.mark.parametrize("method", ["full", svmp.FullVB, svmp.Model(), svmp.Nodewise()], ids=repr)
def test_method_must_be_a_method(method: Any) -> None:
    refused(rates(), "method", method=method)


def test_watch_must_be_callable() -> None:
    refused(rates(), "watch must be a function", watch=True)


@pytest.mark.parametrize("steps", [0.5, "small", svmp.RobbinsMonro, svmp.FullVB()], ids=repr)
def test_steps_must_be_a_policy(steps: Any) -> None:
    refused(rates(), "steps", steps=steps)


@pytest.mark.parametrize("every", [0, -1, 1.5, "2"], ids=repr)
def test_bound_every(every: Any) -> None:
    refused(rates(), "bound_every", "positive", bound_every=every)


def test_bound_every_can_be_a_function() -> None:
    due = {1, 2, 4, 7}
    fit = svmp.fit(
        rates(), svmp.Children(1), max_sweeps=None, max_accesses=40, tol=0,
        bound_every=due.__contains__,
    )  # fmt: skip
    assert {t for t in fit.trace["iteration"] if t < fit.iterations} == {0, *due}


@pytest.mark.parametrize("name", ["max_sweeps", "max_accesses", "max_seconds"])
@pytest.mark.parametrize("limit", [0, -1, NAN, "3"], ids=repr)
def test_budgets(name: str, limit: Any) -> None:
    refused(rates(), name, "positive", **{name: limit})


@pytest.mark.parametrize("tol", [-1e-6, NAN, "small"], ids=repr)
def test_tolerance(tol: Any) -> None:
    refused(rates(), "tol", tol=tol)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None], ids=repr)
def test_seed(seed: Any) -> None:
    refused(rates(), "seed", seed=seed)


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (["g"], "'b'"),
        (["b", "g", "g"], "'g'"),
        (["b", "huh"], "'huh'"),
        (["b", "g", "x"], "'x'"),
        ([], "'b'"),
        (["b", 3], "3"),
        (5, "order"),
        ("bg", "order"),
    ],
    ids=repr,
)
def test_order(order: Any, says: str) -> None:
    refused(rates(), "order", says, method=svmp.FullVB(order=order))


# --- init -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("init", "says"),
    [
        ({"huh": 1}, "'huh'"),
        ({"x": 1}, "'x'"),
        ({"b": 1.0}, "'b'"),
        ({"b": {"mu": 1.0}}, "'b'"),
        ({"b": {"alpha": [1.0, 2.0]}}, "'b'"),
        ({"g": {"alpha": [1.0, 2.0]}}, "(3,)"),
        ({"g": {"alpha": [[1.0], [1.0, 2.0]]}}, "'g'"),
        ({"g": {"alpha": -1.0}}, "'g'"),
        ({"g": {"alpha": 0.0}}, "'g'"),
        ({"g": {"alpha": [1.0, 2.0, -3.0]}}, "'g'"),
        ({"g": {"beta": NAN}}, "'g'"),
        ({"g": {"beta": float("inf")}}, "'g'"),
        ({"g": {"beta": "two"}}, "'g'"),
        ({"g": {"beta": {"a": 1}}}, "'g'"),
        ({"g": {"beta": None}}, "'g'"),
        ({"g": None}, "'g'"),
        ([1, 2], "init"),
        (3, "init"),
        ("b", "init"),
    ],
    ids=repr,
)
def test_init(init: Any, says: str) -> None:
    refused(rates(), "init", says, init=init)


@pytest.mark.parametrize(
    ("init", "says"),
    [
        ({"u": np.ones((8, 3))}, "(8, 2)"),
        ({"u": np.ones((2, 8))}, "(8, 2)"),
        ({"u": np.ones((1, 8, 2))}, "(8, 2)"),
        ({"u": "abc"}, "number"),
        ({"u": [1j, 2j]}, "number"),
        ({"u": "3"}, "number"),
        ({"u": NAN}, "'u'"),
        ({"u": 1e200}, "'u'"),
        ({"u": {"tau": 0}}, "'u'"),
        ({"u": {"tau": -1}}, "'u'"),
        ({"u": {"sigma": 1}}, "sigma"),
    ],
    ids=repr,
)
def test_init_of_normals(init: Any, says: str) -> None:
    refused(ratings(), "init", "'u'", says, init=init)


@pytest.mark.parametrize(
    "p",
    [
        np.tile([1.5, -0.5], (30, 1)),
        np.zeros((30, 2)),
        np.full((30, 2), 0.7),
        np.full((30, 2), NAN),
        np.full((29, 2), 0.5),
        np.full((30, 3), 1 / 3),
    ],
    ids=["negative", "zeros", "sum", "NaN", "rows", "categories"],
)
def test_init_of_a_categorical(p: np.ndarray) -> None:
    refused(mixture(), "init", "'z'", init={"z": p})


def test_init_of_a_matrix() -> None:
    with svmp.Model(coords={"d": 2}) as model:
        W = svmp.Wishart("W", nu=3, V=np.eye(2), dims=("d", "d"))
        m = svmp.MvNormal("m", mu=0, tau=np.eye(2), dims="d")
        svmp.MvNormal("x", mu=m, tau=W, dims=("row", "d"), observed=np.ones((3, 2)))
    lopsided = [[1.0, 0.9], [0.0, 1.0]]
    for init in ({"V": -np.eye(2)}, {"V": lopsided}, {"nu": 0.5}, {"V": np.eye(3)}):
        refused(model, "init", "'W'", init={"W": init})
    for init in ({"tau": -np.eye(2)}, {"tau": lopsided}, {"tau": 2.0}, {"mu": [1, 2, 3]}):
        refused(model, "init", "'m'", init={"m": init})


def test_init_of_trials() -> None:
    """n is part of the model and cannot be given in init."""
    with svmp.Model() as model:
        p = svmp.Beta("p", alpha=1, beta=1)
        svmp.Binomial("b", n=5, p=p)
        svmp.Bernoulli("x", p=p, observed=[1, 0])
    refused(model, "init", "'b'", init={"b": {"n": 3}})
    for wrong in (0.0, 1.0, 1.5, -1.0):
        refused(model, "init", "'b'", init={"b": {"p": wrong}})


def test_init_by_the_posterior_of_another_kind_of_variable() -> None:
    other = svmp.fit(rates(), svmp.FullVB())
    refused(ratings(), "init", "'u'", init={"u": other["g"]})
    refused(rates(), "init", "'b'", init={"b": other["g"]})
    refused(ratings(), "init", "'b'", init=other)


def test_init_by_a_posterior_with_its_axes_swapped() -> None:
    def table(*dims: str) -> svmp.Model:
        with svmp.Model(coords={"a": 2, "b": 3}) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims=dims)
            svmp.Normal(
                "x", mu=u, tau=1, dims=dims, observed=np.ones((2, 3) if dims[0] == "a" else (3, 2))
            )
        return model

    refused(table("a", "b"), "init", "'u'", init=svmp.fit(table("b", "a"), svmp.FullVB()))


# --- arithmetic that ends -------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e160, 1e200, 1e300])
def test_parameters_whose_squares_overflow(scale: float) -> None:
    """An error of svmp names the variable, without NumPy warnings."""

    def declare_and_fit() -> None:
        with svmp.Model() as model:
            u = svmp.Normal("u", mu=0, tau=1)
            svmp.Normal("x", mu=u * scale, tau=1, observed=[1.0, 2.0])
        svmp.fit(model, svmp.FullVB())

    with pytest.raises(svmp.SvmpError, match=r"'[ux]'"):
        declare_and_fit()


@pytest.mark.parametrize("scale", [1e160, 1e300])
def test_data_whose_squares_overflow(scale: float) -> None:
    def declare_and_fit() -> None:
        with svmp.Model() as model:
            u = svmp.Normal("u", mu=0, tau=1)
            g = svmp.Gamma("g", alpha=1, beta=1)
            svmp.Normal("x", mu=u, tau=g, observed=[scale, -scale])
        svmp.fit(model, svmp.FullVB())

    with pytest.raises(svmp.SvmpError, match=r"'[ugx]'"):
        declare_and_fit()


def test_rates_whose_product_overflows() -> None:
    with svmp.Model() as model:
        g = svmp.Gamma("g", alpha=1e200, beta=1)
        h = svmp.Gamma("h", alpha=1e200, beta=1)
        svmp.Poisson("x", mu=g * h, observed=[1, 2])
    with pytest.raises(svmp.SvmpError, match=r"'[ghx]'"):
        svmp.fit(model, svmp.FullVB())


def test_steps_above_one_are_detected() -> None:
    """Steps above 1 overshoot; the variable that leaves its domain is named."""
    with pytest.raises(svmp.ImproperError, match=r"'u' at .* Normal"):
        svmp.fit(ratings(), svmp.FullVB(), steps=lambda context: 50.0, max_sweeps=20, tol=0)
