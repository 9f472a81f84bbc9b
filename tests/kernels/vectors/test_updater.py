"""Compiled updates of vectors against plain code: the same natural parameters and bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import svmp
from svmp.inference.updaters.setup import find_loops
from svmp.kernels.machine.threads import CORES, use_threads
from svmp.kernels.vectors import update as vectors
from svmp.kernels.vectors.updater import Vectors
from svmp.network.network import Network
from tests.inference.tools import advance, gallery
from tests.kernels.twins import METHODS, both, declare_rows
from tests.network.tools import anywhere
from tests.programs import compile_means


@st.composite
def factorizations(draw: Callable[..., Any]) -> svmp.Model:
    """Matrix factorizations with vectors, of every kind that the loops support."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    users, items = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    k = draw(st.integers(1, 6))
    rows = draw(st.sampled_from([1, 2, 7, 40, 90]))
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
    one = np.eye(k)
    with svmp.Model(coords={"user": users, "item": items, "factor": k, "row": rows}) as model:
        tau_u: Any = one
        if draw(st.booleans()):
            tau_u = svmp.Wishart("tau_u", nu=k + 2, V=one, dims=("factor", "factor"))
        u = svmp.MvNormal("u", mu=0, tau=tau_u, dims=("user", "factor"))
        v = svmp.MvNormal("v", mu=0.1, tau=one, dims=("item", "factor"))
        mu: Any = svmp.dot(u[user], v[item])
        if draw(st.booleans()):
            mu = mu * rng.normal(1, 0.5, rows)
        if draw(st.booleans()):
            mu = mu + 3.5 + svmp.Normal("mean", mu=0, tau=0.5)
        if draw(st.booleans()):
            mu = mu + svmp.Normal("a", mu=0, tau=2, dims="user")[user]
        if draw(st.booleans()):
            mu = mu + 0.5 * svmp.Normal("b", mu=0, tau=2, dims="item")[item]
        if draw(st.booleans()):
            w = svmp.MvNormal("w", mu=0, tau=one, dims=("user", "factor"))
            z = svmp.MvNormal("z", mu=0.3, tau=2 * one, dims=("item", "factor"))
            y = svmp.MvNormal("y", mu=1, tau=2 * one, dims=("row", "factor"))
            mu = mu + svmp.dot(w[user] * z[item], y[rng.permutation(rows)])
        declare_rows(draw, rng, mu, item, missing)
    return model


def is_served(model: svmp.Model) -> bool:
    return any(isinstance(p, Vectors) for p in find_loops(Network(model)).values())


@pytest.mark.parametrize("label", METHODS)
def test_loops_and_plain_code_agree(label):
    @settings(max_examples=15, phases=[Phase.generate])
    @given(factorizations(), st.integers(0, 2**16))
    def check(model: svmp.Model, seed: int) -> None:
        assert is_served(model)
        both(model, seed, *METHODS[label])

    check()


@pytest.mark.parametrize("label", METHODS)
def test_loops_and_plain_code_agree_on_the_gallery(label):
    assert is_served(gallery()["04 vectors"])
    both(gallery()["04 vectors"], 3, *METHODS[label], iterations=2)


def ratings(dtype: Any, rows: int = 2 * vectors.LONG + 5) -> svmp.Model:
    """Ratings with biases, more of one user than one thread reads."""
    rng = np.random.default_rng(1)
    user, item = np.minimum(rng.geometric(0.6, rows) - 1, 8), rng.integers(30, size=rows)
    stars = rng.integers(1, 6, rows).astype(dtype)
    with svmp.Model(coords={"user": 9, "item": 30, "factor": 3}) as model:
        u = svmp.MvNormal("u", mu=0, tau=np.eye(3), dims=("user", "factor"))
        v = svmp.MvNormal("v", mu=0, tau=np.eye(3), dims=("item", "factor"))
        mean = svmp.Normal("mean", mu=3, tau=1)
        b = svmp.Normal("b", mu=0, tau=1, dims="item")
        svmp.Normal("r", mu=mean + b[item] + svmp.dot(u[user], v[item]), tau=2, observed=stars)
    return model


def test_keys_with_very_many_rows():
    both(ratings(np.float64), 2, svmp.FullVB(), svmp.Constant(1.0))


def test_single_precision_data_are_read_in_single_precision():
    """The results differ by its rounding errors only."""
    single, double = (
        svmp.fit(ratings(dtype), svmp.FullVB(), max_sweeps=3, tol=0)
        for dtype in (np.float32, np.float64)
    )
    for name in ("u", "v", "b", "mean"):
        np.testing.assert_allclose(single.mean(name), double.mean(name), rtol=1e-3, atol=1e-4)
    assert single.bound == pytest.approx(double.bound, rel=1e-5)


@pytest.mark.parametrize("method", [svmp.FullVB(), svmp.Children(7), svmp.Batch(900)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bits_are_the_same_for_any_number_of_threads(method, dtype):
    network = Network(ratings(dtype))
    found = []
    for count in (1, CORES):
        q = compile_means(network, anywhere(network, 4))
        with use_threads(count, tell=False):
            advance(network, q, method, 2, svmp.Nodewise())
        found.append(q)
    for name, natural in found[0].natural.items():
        np.testing.assert_array_equal(natural, found[1].natural[name])
        np.testing.assert_array_equal(found[0].moments[name], found[1].moments[name])


def test_the_loops_are_called_unless_kernels_is_false(monkeypatch):
    called = []
    update = Vectors.update

    def note(self, q, name, *rest):
        called.append(name)
        return update(self, q, name, *rest)

    monkeypatch.setattr(Vectors, "update", note)
    svmp.fit(ratings(np.float64), svmp.FullVB(), max_sweeps=1)
    assert {"mean", "b", "u", "v"} <= set(called)
    called.clear()
    svmp.fit(ratings(np.float64), svmp.FullVB(), max_sweeps=1, kernels=False)
    assert not called


@pytest.mark.parametrize("option", ["a", "b"])
@pytest.mark.filterwarnings("ignore::svmp.DivergenceWarning")
def test_improper_vectors_are_detected(option):
    """A step of 5 leaves the domain at once, in compiled and in plain code."""
    method, steps = svmp.Children(1, option=option), svmp.Constant(5.0, force=True)
    for kernels in (True, False):
        fit = svmp.fit(ratings(np.float64), method, steps=steps, max_sweeps=5, kernels=kernels)
        assert fit.status == "diverged"
        assert np.isfinite(fit.mean("u")).all()


def test_entries_of_vectors_use_plain_code():
    with svmp.Model(coords={"user": 4, "factor": 2}) as model:
        u = svmp.MvNormal("u", mu=0, tau=np.eye(2), dims=("user", "factor"))
        svmp.Normal("x", mu=u[[0, 1, 3], 1], tau=1, observed=[1.0, 2.0, 0.0])
    assert not is_served(model)


def test_dot_products_of_a_vector_and_numbers_use_plain_code():
    with svmp.Model(coords={"user": 4, "factor": 2}) as model:
        u = svmp.MvNormal("u", mu=0, tau=np.eye(2), dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims="factor")
        svmp.Normal("x", mu=svmp.dot(u[[0, 1, 3]], v), tau=1, observed=[1.0, 2.0, 0.0])
    assert not is_served(model)
