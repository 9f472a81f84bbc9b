"""Equivalent declarations of a network have the same bound and the same q."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import svmp

SEEDS = st.integers(0, 2**32 - 1)
SWEEPS = 4


def run(model: svmp.Model, init: dict[str, Any], **options: Any) -> svmp.Fit:
    return svmp.fit(model, svmp.FullVB(), init=init, max_sweeps=SWEEPS, tol=0, **options)


def assert_same(one: svmp.Fit, other: svmp.Fit, rtol: float = 1e-9, **order: Any) -> None:
    """Compare bounds sweep by sweep and every q; `order` permutes the elements of the other."""
    np.testing.assert_allclose(other.trace["bound"], one.trace["bound"], rtol=rtol, atol=1e-9)
    for name, q in one.posteriors.items():
        place = order.get(name, lambda array: array)
        np.testing.assert_allclose(
            place(other.mean(name, corrected=False)), q.mean, rtol=1e-6, atol=1e-8
        )
        np.testing.assert_allclose(
            place(other.var(name, corrected=False)), q.var, rtol=1e-6, atol=1e-8
        )


class Ratings:
    """Ratings with biases, and a start for each variable."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.users, self.items, self.k, self.n = (int(i) for i in rng.integers(2, [5, 5, 3, 12]))
        self.user = rng.integers(self.users, size=self.n)
        self.item = rng.integers(self.items, size=self.n)
        self.r = rng.normal(3, 1, self.n)
        self.u = rng.normal(0, 0.3, (self.users, self.k))
        self.v = rng.normal(0, 0.3, (self.items, self.k))
        self.b = rng.normal(0, 0.3, self.items)

    def model(self, missing: Any = False) -> svmp.Model:
        coords = {"user": self.users, "item": self.items, "factor": self.k}
        with svmp.Model(coords=coords) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
            v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
            b = svmp.Normal("b", mu=3, tau=1, dims="item")
            tau = svmp.Gamma("tau", alpha=2, beta=1)
            mean = svmp.dot(u[self.user], v[self.item]) + b[self.item]
            svmp.Normal("r", mu=mean, tau=tau, observed=self.r, missing=missing)
        return model

    def fit(self, missing: Any = False, **options: Any) -> svmp.Fit:
        tau = {"alpha": 2.0, "beta": 1.5}
        init = {"u": self.u, "v": self.v, "b": self.b, "tau": tau}
        return run(self.model(missing), init, **options)


@settings(max_examples=10)
@given(SEEDS)
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    data = Ratings(seed)
    one = data.fit()
    mixed = data.rng.permutation(data.n)
    data.user, data.item, data.r = data.user[mixed], data.item[mixed], data.r[mixed]
    assert_same(one, data.fit())


@settings(max_examples=10)
@given(SEEDS)
def test_the_order_of_elements_does_not_matter(seed: int) -> None:
    data = Ratings(seed)
    one = data.fit()
    new = data.rng.permutation(data.users)
    old = np.argsort(new)
    data.user, data.u = new[data.user], data.u[old]
    assert_same(one, data.fit(), u=lambda array: array[new])


@settings(max_examples=10)
@given(SEEDS)
def test_missing_rows_are_the_same_as_omitted_rows(seed: int) -> None:
    data = Ratings(seed)
    gone = data.rng.random(data.n) < 0.4
    gone[0] = False
    by_mask = data.fit(missing=gone)
    data.r[gone] = np.nan
    by_nan = data.fit(missing=True)
    data.r = np.ma.masked_invalid(data.r)
    masked_array = data.fit()
    data.user, data.item, data.r = (np.asarray(x)[~gone] for x in (data.user, data.item, data.r))
    dropped = data.fit()
    for other in (by_mask, by_nan, masked_array):
        assert_same(dropped, other)


@settings(max_examples=10)
@given(SEEDS)
def test_compiled_loops_agree_with_plain_ones(seed: int) -> None:
    data = Ratings(seed)
    gone = data.rng.random(data.n) < 0.4
    gone[0] = False
    assert_same(data.fit(), data.fit(kernels=False))
    assert_same(data.fit(missing=gone), data.fit(missing=gone, kernels=False))


def table(rng: np.random.Generator, layout: tuple[str, ...]) -> tuple[svmp.Model, dict[str, Any]]:
    """A full table with effects of rows and columns, its axes in either order."""
    x, mask = rng.normal(size=(3, 4)), rng.random((3, 4)) < 0.3
    start = {"e": rng.normal(size=(3, 4)), "row": rng.normal(size=3), "col": rng.normal(size=4)}
    turn = (lambda array: array.T) if layout == ("j", "i") else (lambda array: array)
    with svmp.Model(coords={"i": 3, "j": 4}) as model:
        row = svmp.Normal("row", mu=0, tau=1, dims="i")
        col = svmp.Normal("col", mu=0, tau=1, dims="j")
        scale = svmp.Gamma("scale", alpha=2, beta=1, dims="j")
        e = svmp.Normal("e", mu=row * col + row, tau=scale, dims=layout)
        svmp.Normal("x", mu=e, tau=2, dims=layout, observed=turn(x), missing=turn(mask))
    init = {
        **start,
        "e": turn(start["e"]),
        "scale": {"alpha": 2.0, "beta": [1.0, 2, 3, 4]},
    }
    return model, init


@settings(max_examples=6)
@given(SEEDS)
def test_the_order_of_dims_does_not_matter(seed: int) -> None:
    one = run(*table(np.random.default_rng(seed), ("i", "j")))
    other = run(*table(np.random.default_rng(seed), ("j", "i")))
    assert_same(one, other, e=np.transpose)


def regression(design: Any, y: np.ndarray, kind: str, start: np.ndarray) -> svmp.Fit:
    with svmp.Model(coords={"feature": start.size}) as model:
        if kind == "Normal":
            w = svmp.Normal("w", mu=0, tau=1, dims="feature")
        else:
            w = svmp.MvNormal("w", mu=0, tau=np.eye(start.size), dims="feature")
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Normal("y", mu=svmp.dot(design, w) + 0.5, tau=tau, observed=y)
    return run(model, {"w": start, "tau": {"alpha": 1.0, "beta": 1.0}})


@pytest.mark.parametrize("kind", ["Normal", "MvNormal"])
@settings(max_examples=8)
@given(SEEDS)
def test_sparse_and_dense_designs_agree(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, [7, 5])
    design = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    y, start = rng.normal(size=n), rng.normal(size=d)
    if kind == "Normal":
        # A sparse design shows which weights share no row; these are then updated together. In
        # a full one all share rows, whatever its format, so the updates are in the same order.
        design[design == 0] = 1e-300
    one = regression(design, y, kind, start)
    for form in (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix):
        assert_same(one, regression(form(design), y, kind, start))


@settings(max_examples=8)
@given(SEEDS)
def test_sparse_and_dense_designs_reach_the_same_optimum(seed: int) -> None:
    """With a known precision the bound has one optimum, whatever the order of updates."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, [7, 5])
    design = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    y = rng.normal(size=n)
    fits = []
    for form in (design, sparse.csr_array(design), sparse.coo_array(design)):
        with svmp.Model(coords={"feature": int(d)}) as model:
            w = svmp.Normal("w", mu=0, tau=1, dims="feature")
            svmp.Normal("y", mu=svmp.dot(form, w), tau=2, observed=y)
        fits.append(svmp.fit(model, svmp.FullVB(), tol=1e-14, max_sweeps=5000))
    for other in fits[1:]:
        assert other.bound == pytest.approx(fits[0].bound, rel=1e-10)
        np.testing.assert_allclose(other.mean("w"), fits[0].mean("w"), atol=1e-6)


def test_duplicate_entries_of_a_sparse_design_are_added() -> None:
    rows, columns, values = [0, 0, 1, 2], [1, 1, 0, 1], [0.5, 1.0, 2.0, -1.0]
    twice = sparse.coo_array((values, (rows, columns)), shape=(3, 2))
    y, start = np.array([1.0, 2.0, 3.0]), np.zeros(2)
    one = regression(twice.toarray(), y, "MvNormal", start)
    assert_same(one, regression(twice, y, "MvNormal", start))


def test_a_dense_design_of_one_row_is_broadcast() -> None:
    y, start = np.array([1.0, 2.0, 3.0]), np.zeros(2)
    line = np.array([[0.5, -1.0]])
    one = regression(np.repeat(line, 3, axis=0), y, "MvNormal", start)
    assert_same(one, regression(line, y, "MvNormal", start))


def test_a_sparse_design_of_one_row_is_broadcast() -> None:
    """As for dense designs."""
    y, start = np.array([1.0, 2.0, 3.0]), np.zeros(2)
    line = np.array([[0.5, -1.0]])
    one = regression(np.repeat(line, 3, axis=0), y, "MvNormal", start)
    assert_same(one, regression(sparse.csr_array(line), y, "MvNormal", start))


def test_equivalent_notations_of_a_design_agree() -> None:
    """dot, @ from either side, and a sum over named axes are equivalent."""
    design, y = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]]), [1.0, 2.0, 3.0]
    fits = []
    for mean in (
        lambda w: svmp.dot(design, w),
        lambda w: svmp.dot(w, design),
        lambda w: design @ w,
        lambda w: sparse.csr_array(design) @ w,
        lambda w: (svmp.data(design, dims=("row", "feature")) * w).sum("feature"),
        lambda w: svmp.data(design[:, 0], dims="row") * w[0] + design[:, 1] * w[1],
    ):
        with svmp.Model(coords={"feature": 2}) as model:
            w = svmp.MvNormal("w", mu=0, tau=np.eye(2), dims="feature")
            svmp.Normal("y", mu=mean(w), tau=1, dims="row", observed=y)
        fits.append(run(model, {"w": [0.0, 0.0]}))
    for other in fits[1:]:
        assert_same(fits[0], other)


@pytest.mark.parametrize("kind", ["one", "many"])
def test_an_observed_choice_is_an_index(kind: str) -> None:
    """A mixture whose Categorical is observed reads its parameters by a key."""
    z, x = np.array([0, 2, 2, 1, 0]), np.array([0.3, 1.2, -0.7, 2.0, 0.1])
    fits = []
    for mixed in (True, False):
        with svmp.Model(coords={"k": 3}) as model:
            w = svmp.Dirichlet("w", a=1, dims="k")
            choice = svmp.Categorical("z", p=w, dims="row", observed=z)
            m = svmp.Normal("m", mu=0, tau=1, dims="k")
            g = svmp.Gamma("g", alpha=2, beta=1, dims="k" if kind == "many" else None)
            if mixed:
                svmp.Mixture("x", choice, svmp.Normal.dist(m, g), dims="row", observed=x)
            else:
                tau = g[z] if kind == "many" else g
                svmp.Normal("x", mu=m[z], tau=tau, dims="row", observed=x)
        fits.append(run(model, {"m": [0.1, 0.2, 0.3], "g": {"alpha": 2.0, "beta": 1.0}}))
    assert_same(*fits)


def test_a_mixture_of_one() -> None:
    """A mixture of one component is the component."""
    x = np.array([0.3, 1.2, -0.7])
    fits = []
    for mixed in (True, False):
        with svmp.Model(coords={"k": 1, "row": 3}) as model:
            m = svmp.Normal("m", mu=0, tau=1, dims="k")
            if mixed:
                z = svmp.Categorical("z", p=svmp.data([1.0], dims="k"), dims="row")
                svmp.Mixture("x", z, svmp.Normal.dist(m, 1), dims="row", observed=x)
            else:
                svmp.Normal("x", mu=m[0], tau=1, dims="row", observed=x)
        fits.append(run(model, {"m": [0.1]}))
    assert fits[0].bound == pytest.approx(fits[1].bound, rel=1e-12)
    np.testing.assert_allclose(fits[0].mean("m"), fits[1].mean("m"), rtol=1e-12)


def test_binomials_are_sums_of_bernoullis() -> None:
    """They have the same posterior; the evidence differs by the binomial coefficients."""
    with svmp.Model() as coins:
        p = svmp.Beta("p", alpha=1.5, beta=2)
        svmp.Bernoulli("x", p=p, observed=[1, 0, 1, 1, 0])
    with svmp.Model() as heads:
        p = svmp.Beta("p", alpha=1.5, beta=2)
        svmp.Binomial("x", n=5, p=p, observed=3)
    one, other = (svmp.fit(m, svmp.FullVB()) for m in (coins, heads))
    assert one["p"].alpha == other["p"].alpha == 4.5
    assert one["p"].beta == other["p"].beta == 4
    assert other.bound - one.bound == pytest.approx(np.log(10))


def test_a_vector_with_a_diagonal_precision_is_its_entries() -> None:
    """q of an MvNormal, without correlations in the data, is that of independent Normals."""
    x, key = np.array([[0.3, 1.2], [-0.7, 2.0], [0.1, 0.4]]), np.array([0, 1, 0])
    fits = []
    for vector in (True, False):
        with svmp.Model(coords={"a": 2, "d": 2}) as model:
            if vector:
                m = svmp.MvNormal("m", mu=0, tau=np.diag([1.0, 2.0]), dims=("a", "d"))
                svmp.MvNormal("x", mu=m[key], tau=np.eye(2), dims=("row", "d"), observed=x)
            else:
                m = svmp.Normal("m", mu=0, tau=[1.0, 2.0], dims=("a", "d"))
                svmp.Normal(
                    "x", mu=m[svmp.data(key, dims="row"), :], tau=1, dims=("row", "d"), observed=x
                )
        fits.append(run(model, {"m": np.zeros((2, 2))}))
    assert_same(*fits)


def test_scales_can_be_moved_between_parents_and_children() -> None:
    """x ~ N(2 m + 1, tau) with m ~ N(0, 4) is x ~ N(n, tau) with n ~ N(1, 1)."""
    x = [0.3, 1.2, -0.7]
    with svmp.Model() as one:
        m = svmp.Normal("m", mu=0, tau=4)
        svmp.Normal("x", mu=2 * m + 1, tau=3, observed=x)
    with svmp.Model() as other:
        n = svmp.Normal("n", mu=1, tau=1)
        svmp.Normal("x", mu=n, tau=3, observed=x)
    a, b = (svmp.fit(m, svmp.FullVB()) for m in (one, other))
    assert a.bound == pytest.approx(b.bound, rel=1e-12)
    assert 2 * a.mean("m") + 1 == pytest.approx(b.mean("n"), rel=1e-12)
