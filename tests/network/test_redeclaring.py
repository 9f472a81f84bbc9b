"""`Model.with_data` gives the network that would be declared on the new data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import svmp

pytestmark = pytest.mark.by_size

RNG = np.random.default_rng(0)


def declare(x: Any, key: Any, design: Any, y: Any, missing: Any = False) -> svmp.Model:
    """A network with numbers, keys, a design, trials and a mixture along the rows."""
    with svmp.Model(coords={"group": ["a", "b", "c"], "f": 2, "row": len(x), "k": 2}) as model:
        b = svmp.Normal("b", mu=0, tau=1)
        u = svmp.Normal("u", mu=0, tau=1, dims="group")
        w = svmp.Normal("w", mu=0, tau=1, dims="f")
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        x = svmp.data(x, dims="row", name="x")
        key = svmp.data(key, dims="row", name="key")
        design = svmp.data(design, dims=("row", "f"), name="design")
        mean = b * x + u[key] + svmp.dot(design, w)
        svmp.Normal("y", mu=mean, tau=tau, dims="row", observed=y, missing=missing)
        z = svmp.Categorical("z", p=svmp.data([0.4, 0.6], dims="k"), dims="row")
        m = svmp.Gamma("m", alpha=2, beta=1, dims="k")
        svmp.Mixture("c", z, svmp.Poisson.dist(mu=m * 2), dims="row", observed=np.arange(len(y)))
    return model


def rows(count: int, kind: str = "dense") -> dict[str, Any]:
    design = RNG.normal(size=(count, 2))
    return {
        "x": RNG.normal(size=count),
        "key": np.array(["a", "b", "c"])[RNG.integers(3, size=count)],
        "design": sparse.csr_array(design) if kind == "sparse" else design,
        "y": RNG.normal(size=count),
    }


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_fit_is_that_of_a_new_declaration(kind: str) -> None:
    before, now = rows(7, kind), rows(4, kind)
    model = declare(**before)
    other = model.with_data(**now, c=np.arange(4))
    assert other["y"].shape == (4,)
    assert model["y"].shape == (7,)
    found, truth = svmp.fit(other, svmp.FullVB()), svmp.fit(declare(**now), svmp.FullVB())
    assert found.bound == truth.bound
    for name in truth.posteriors:
        np.testing.assert_array_equal(found[name].natural, truth[name].natural)


def test_values_of_the_same_size_replace_one_by_one() -> None:
    before, now = rows(5), rows(5)
    model = declare(**before)
    y = np.array([1.0, np.nan, 3.0, np.nan, 5.0])
    found = svmp.fit(model.with_data(y=y, x=now["x"]), svmp.FullVB())
    truth = svmp.fit(declare(**{**before, "y": y, "x": now["x"]}, missing=True), svmp.FullVB())
    assert found.bound == truth.bound
    assert model.with_data(y=None)["y"].hidden
    again = svmp.fit(model.with_data(y=y).with_data(x=before["x"]), svmp.FullVB())
    assert again.bound == svmp.fit(declare(**{**before, "y": y}, missing=True), svmp.FullVB()).bound


def test_unnamed_axes_take_the_size_of_the_rows() -> None:
    def line(x: Any, y: Any) -> svmp.Model:
        with svmp.Model() as model:
            b = svmp.Normal("b", mu=0, tau=1)
            svmp.Normal("y", mu=b * svmp.data(x, name="x"), tau=1, observed=y)
        return model

    fit = svmp.fit(line([1.0, 2.0], [2.0, 5.0]), svmp.FullVB())
    model = line([1.0, 2.0], [2.0, 5.0]).with_data(x=[1.0, 2.0, 3.0], y=None)
    np.testing.assert_allclose(fit.predict(model, "y").mean, fit["b"].mean * [1, 2, 3])
    model = model.with_data(x=[4.0], y=[8.0])
    assert svmp.fit(model, svmp.FullVB())["b"].mean == pytest.approx(32 / 17)


def test_new_labels_move_keys() -> None:
    with svmp.Model(coords={"user": ["ann", "bob", "cyd"]}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="user")
        svmp.Normal("y", mu=u["bob"] + u[["cyd", "bob"]], tau=1, dims="row", observed=[1.0, 2.0])
    other = model.with_data(coords={"user": ["bob", "dan", "cyd"]})
    q = svmp.fit(other, svmp.FullVB())["u"]
    before = svmp.fit(model, svmp.FullVB())["u"]
    np.testing.assert_allclose(q.mean[[0, 2]], before.mean[[1, 2]])
    assert other.labels["user"] == ["bob", "dan", "cyd"]
    with pytest.raises(svmp.ModelError, match="is 'bob', which is not among the new labels"):
        model.with_data(coords={"user": ["ann", "dan", "cyd"]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": [1.0]}, r"nothing is named 'q'; there are \['x', 'key', 'design', 'y', 'c'\]"),
        ({"x": [1.0, 2.0]}, r"'y'? ?.*'row' has another size.*it reads 'x', 'key', 'design'"),
        ({"x": [1.0], "key": ["a", "b"]}, "'key' has length 2 along 'row', and 'x' has 1"),
        ({"x": [[1.0]]}, "'x' has 2 axes instead of 1"),
        ({"x": ["a", "b", "c"]}, "the values of 'x'.*'a'"),
        ({"x": [1.0, np.nan, 2.0]}, "the values of 'x': it holds NaN"),
        ({"key": ["a", "b", "zoe"]}, "'zoe'"),
        ({"y": [[1.0]]}, r"'y' has dims \('row',\) but its new values have shape"),
        ({"y": [1.0, 2.0, "a"]}, "'y'"),
        ({"coords": {"planet": 3}}, "coords names 'planet', which is no dim"),
        ({"coords": {"group": 2}, "x": [1.0, 1.0, 1.0]}, "key of 'u' along 'group' is 2"),
        ({"coords": {"row": 9}, "x": [1.0]}, "'x' has length 1 along 'row', and coords gives 9"),
    ],
)
def test_bad_data_are_refused(change: dict[str, Any], message: str) -> None:
    fixed = {"x": np.ones(3), "key": ["a", "b", "c"], "design": np.ones((3, 2)), "y": np.ones(3)}
    model = declare(**fixed)
    with pytest.raises(svmp.ModelError, match=message):
        model.with_data(**change)


def test_observed_rows_that_do_not_fit_are_named() -> None:
    now = rows(4)
    del now["y"]
    with pytest.raises(svmp.ModelError, match="give y= new values, or y=None"):
        declare(**rows(7)).with_data(**now)


def test_labels_along_the_rows_must_be_given_anew() -> None:
    with svmp.Model(coords={"day": ["mon", "tue"]}) as model:
        b = svmp.Normal("b", mu=0, tau=1)
        x = svmp.data([1.0, 2.0], dims="day", name="x")
        svmp.Normal("y", mu=b * x, tau=1, dims="day", observed=[1.0, 2.0])
    with pytest.raises(svmp.ModelError, match=r"'day' has 2 labels.*coords=\{'day'"):
        model.with_data(x=[1.0], y=[1.0])
    other = model.with_data(x=[1.0], y=[1.0], coords={"day": ["wed"]})
    assert other.labels["day"] == ["wed"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: svmp.data([1.0]), "data needs dims, a name, or both"),
        (lambda: svmp.data(2.0, dims=(), name="x"), "'x' is a single number"),
        (lambda: svmp.data([1.0], name=3), "the name of data must be text"),
        (lambda: svmp.data(sparse.eye(2), name="x"), "a sparse design needs two dims"),
    ],
)
def test_bad_containers_are_refused(call: Any, message: str) -> None:
    with pytest.raises(svmp.ModelError, match=message):
        call()


def test_chains_are_declared_again() -> None:
    values = np.array([0.5, 1.0, 2.5, 2.0, 1.0, 3.0])

    def states(y: Any) -> svmp.Model:
        with svmp.Model(coords={"row": 6, "state": 2, "next": 2}) as model:
            first = svmp.Dirichlet("first", a=np.ones(2), dims="state")
            step = svmp.Dirichlet("step", a=np.ones(2), dims=("state", "next"))
            sequence = [0, 0, 0, 1, 1, 1]
            z = svmp.DiscreteMarkovChain("z", first, step, sequence=sequence, dims="row")
            mu = svmp.Normal("mu", mu=[0, 2], tau=1, dims="state")
            svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=1), dims="row", observed=y)
        return model

    def walk(y: Any) -> svmp.Model:
        with svmp.Model(coords={"row": len(y)}) as model:
            tau = svmp.Gamma("tau", alpha=1, beta=1)
            x = svmp.GaussianRandomWalk("x", tau=tau, dims="row")
            svmp.Normal("y", mu=x, tau=1, dims="row", observed=y)
        return model

    for declare in (states, walk):
        again = declare(values).with_data(y=values + 1)
        assert svmp.fit(again).bound == svmp.fit(declare(values + 1)).bound
    shorter = walk(values).with_data(y=values[:4])
    assert svmp.fit(shorter).bound == svmp.fit(walk(values[:4])).bound
    with pytest.raises(svmp.ModelError, match="a chain with arrays of rows must be declared again"):
        states(values).with_data(y=values[:4])
