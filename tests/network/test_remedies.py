"""Error messages that suggest a fix: the declaration works once it is applied."""

from __future__ import annotations

import ast
import contextlib
from typing import Any

import numpy as np
import pandas as pd
import pytest

import svmp

from .test_bad_input import assert_sentence, sound
from .tools import fitted

X = np.array([1.0, 2.0, 3.0])


def mixture(dims: Any = None, shape: tuple[int, ...] = (6,), vector: bool = False) -> svmp.Model:
    rng = np.random.default_rng(0)
    with svmp.Model(coords={"row": 6, "k": 2, "d": 3}) as model:
        z = svmp.Categorical("z", p=svmp.Dirichlet("w", a=1, dims="k"), dims="row")
        if vector:
            mu: Any = svmp.MvNormal("mu", mu=0, tau=np.eye(3), dims=("k", "d"))
            component = svmp.MvNormal.dist(mu=mu, tau=np.eye(3))
        else:
            mu = svmp.Normal("mu", mu=0, tau=1, dims=("k", "d")[: len(shape)])
            component = svmp.Normal.dist(mu=mu, tau=1)
        svmp.Mixture("x", z, component, dims=dims, observed=rng.normal(size=shape))
    return model


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("shape", [(6,), (6, 3)], ids=str)
def test_the_error_for_a_mixture_without_dims_names_them(
    shape: tuple[int, ...], vector: bool
) -> None:
    if vector and len(shape) == 1:
        pytest.skip("a vector has two axes here")
    dims: Any = None
    for _ in range(len(shape)):
        with contextlib.suppress(svmp.ModelError):
            mixture(dims, shape, vector)
            break
        with pytest.raises(svmp.ModelError, match=r"declare 'x' with dims=") as caught:
            mixture(dims, shape, vector)
        dims = ast.literal_eval(str(caught.value).split("dims=")[1])
    assert svmp.fit(mixture(dims, shape, vector), svmp.FullVB(), kernels=False, max_sweeps=2).bound


@pytest.mark.parametrize("by_entry", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_the_error_for_a_plain_key_in_diag_names_its_dims(by_entry: bool, named: bool) -> None:
    x, key = np.random.default_rng(0).normal(size=(5, 2)), np.array([0, 2, 1, 1, 0])

    def model(keys: Any) -> svmp.Model:
        with svmp.Model(coords={"d": 2, "group": 3}) as made:
            g = svmp.Gamma("g", 2, 3, dims=("group", "d") if by_entry else "group")
            dims = ("row", "d") if named or by_entry else None
            svmp.MvNormal("x", 0, svmp.diag(g[keys]), dims=dims, observed=x)
        return made

    with pytest.raises(svmp.ModelError, match=r"svmp\.data") as caught:
        model(key)
    dims = ast.literal_eval(str(caught.value).split("dims=")[1].rstrip(")"))
    fit = fitted(model(svmp.data(key, dims=dims)), kernels=False)
    squares = np.array([(x[key == group] ** 2).sum(axis=0) for group in range(3)])
    counts = np.bincount(key)
    if by_entry:
        np.testing.assert_allclose(fit["g"].beta, 3 + squares / 2)
        np.testing.assert_allclose(fit["g"].alpha, 2 + np.repeat(counts[:, None], 2, axis=1) / 2)
    else:
        np.testing.assert_allclose(fit["g"].beta, 3 + squares.sum(axis=1) / 2)
        np.testing.assert_allclose(fit["g"].alpha, 2 + counts)


@pytest.mark.parametrize(
    "component",
    [
        lambda d: svmp.Normal.dist(0, 1),
        lambda d: svmp.Normal.dist(d["u"], d["g"]),
        lambda d: svmp.Bernoulli.dist(p=0.5),
        lambda d: svmp.Gamma.dist(1, d["g"]),
    ],
)
def test_identical_components_are_refused(component: Any) -> None:
    model = sound()
    with model, pytest.raises(svmp.ModelError, match=r"2 \w+ components of 'r' are the same.*'k'"):
        svmp.Mixture("r", model["z"], component(model), dims="user", observed=[1.0, 1.0, 1.0])
    with model:  # one parameter that differs by component is enough, of any kind
        tau = svmp.data([1.0, 2.0], dims="k")
        svmp.Mixture("r", model["z"], svmp.Normal.dist(0, tau), dims="user", observed=X)


def test_a_single_component_is_accepted() -> None:
    with svmp.Model(coords={"k": 1, "row": 3}) as model:
        z = svmp.Categorical("z", p=svmp.Dirichlet("w", a=1, dims="k"), dims="row")
        m = svmp.Normal("m", mu=0, tau=1)
        svmp.Mixture("x", z, svmp.Normal.dist(m, 1), dims="row", observed=X)
    assert fitted(model, kernels=False).mean("m") == pytest.approx(6 / 4)


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "a"],
        [1, 2, 1.0],
        np.array(["x", "x"]),
        pd.Index([1, 1]),
        [[1], [2], [1]],
        ["x", "y", "x"],
    ],
    ids=str,
)
def test_duplicate_labels_are_refused(labels: Any) -> None:
    with pytest.raises(svmp.ModelError, match="'city' has the label") as caught:
        svmp.Model(coords={"city": labels})
    assert_sentence(str(caught.value))


@pytest.mark.parametrize("labels", [["a", "b"], [1, "1"], pd.Index([3, 4]), [[1], [2]], range(3)])
def test_distinct_labels_are_accepted(labels: Any) -> None:
    assert svmp.Model(coords={"city": labels}).sizes["city"] == len(labels)


def test_messages_have_no_internal_names() -> None:
    """No tuples of labels, no truncated lists of objects, no names unknown to NumPy."""
    with svmp.Model(coords={"row": 3, "k": 2}):
        a = svmp.Normal("a", mu=0, tau=1)
        v = svmp.Normal("v", mu=0, tau=1, dims="k")
        z = svmp.Categorical("z", p=svmp.Dirichlet("w", a=1, dims="k"), dims="row")
        one = svmp.Normal.dist(mu=v, tau=1)
        listed: Any = [one, one]
        cases: list[tuple[Any, str]] = [
            (lambda: np.linalg.norm(v), r"np\.linalg\.norm"),
            (lambda: v**2, "raised to a power, nor be an exponent"),
            (lambda: svmp.dot(a, a), r"write x \* y$"),
            (lambda: v.sum("row"), "the axes of one are: k$"),
            (lambda: v + None, "None is neither"),
            (lambda: v[z], r"write svmp\.Mixture\(name, z, component\)"),
            (
                lambda: svmp.Normal("x", mu=[0, 1], tau=1),
                "^mu of 'x' has length 2, but 'x' has no dims; add dims=.* or observed=",
            ),
            (
                lambda: svmp.Normal("x", mu=v * np.ones((3, 2)), tau=1, dims="k"),
                r"has an array of shape \(3, 2\).*only the dims \"k\".*svmp\.dot\(array, x\)",
            ),
            (lambda: svmp.Mixture("x", z, listed, dims="row"), "must be one density .* a list$"),
            (lambda: svmp.Mixture("x", (z, z), one, dims="row"), "z of 'x' is a tuple;"),
        ]
        for declare, says in cases:
            with pytest.raises(svmp.ModelError, match=says) as caught:
                declare()
            assert_sentence(str(caught.value))


def test_the_error_for_unnamed_constants_of_components_names_svmp_data() -> None:
    def model(mu: Any) -> svmp.Model:
        with svmp.Model(coords={"row": 6, "k": 2}) as made:
            z = svmp.Categorical("z", p=svmp.Dirichlet("w", a=1, dims="k"), dims="row")
            component = svmp.Normal.dist(mu=mu, tau=1)
            svmp.Mixture("x", z, component, dims="row", observed=[-3, -2, -3, 3, 2, 3])
        return made

    with pytest.raises(svmp.ModelError, match=r"name it with svmp\.data\(array, dims=\.\.\.\)$"):
        model([-3.0, 3.0])
    fit = svmp.fit(model(svmp.data([-3.0, 3.0], dims="k")), svmp.FullVB())
    np.testing.assert_allclose(fit["w"].a, [4, 4], atol=1e-3)
