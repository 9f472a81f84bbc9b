"""Terms over all combinations of plates against sums over the cells, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.network.beliefs import Beliefs
from svmp.network.means.linear import Linear, LinearTerm
from svmp.network.network import Network
from tests.network.tools import anywhere, bound, optimum

A, B, K = 7, 5, 3
RNG = np.random.default_rng(0)
DESIGN = RNG.normal(size=(A, K))


def model(known: bool, flipped: bool, gaps: bool) -> svmp.Model:
    dims = ("b", "a") if flipped else ("a", "b")
    y = RNG.normal(size=(B, A) if flipped else (A, B))
    missing = RNG.random(y.shape) < 0.2 if gaps else False
    with svmp.Model(coords={"a": A, "b": B, "k": K}) as declared:
        w = svmp.MvNormal("w", mu=0, tau=np.eye(K), dims=("b", "k"))
        x: Any = svmp.data(DESIGN, dims=("a", "k"))
        if not known:
            x = svmp.MvNormal("x", mu=0, tau=np.eye(K), dims=("a", "k"))
        scale = 1.0 if known else 1.5
        mu = scale * svmp.dot(x, w, dim="k") + svmp.Normal("level", 0, 1, dims="b")
        svmp.Normal("y", mu=mu, tau=2.0, dims=dims, observed=y, missing=missing)
    return declared


def moments(q: Beliefs, name: str) -> tuple[np.ndarray, np.ndarray]:
    found = q.moments[name]
    return found[:, :K], found[:, K:].reshape(-1, K, K)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_sums_are_those_over_cells(known: bool, flipped: bool, gaps: bool) -> None:
    network = Network(model(known, flipped, gaps))
    q = anywhere(network, 1)
    table = network.observed["y"].conditional
    slot = table.slots["mu"]
    assert isinstance(slot, Linear)
    term = next(t for t in slot.terms if any(r.variable.name == "w" for r in t.readers))
    assert term.regular is not None
    assert term.regular.table_product is not None

    scale = 1.0 if known else 1.5
    w, ww = moments(q, "w")
    x, xx = (DESIGN, DESIGN[:, :, None] * DESIGN[:, None]) if known else moments(q, "x")
    rows = table.variable.rows
    b, a = np.divmod(rows, A) if flipped else np.divmod(rows, B)[::-1]
    mean = scale * np.einsum("rk,rk->r", x[a], w[b])
    square = scale**2 * np.einsum("rkl,rkl->r", xx[a], ww[b])
    np.testing.assert_allclose(term.regular.mean(q, rows), mean, rtol=1e-10)
    np.testing.assert_allclose(term.regular.variance(q, rows), square - mean**2, rtol=1e-8)
    for name, own, other, squares in (("w", b, x[a], xx[a]), ("x", a, w[b], ww[b])):
        if name not in network.hidden:
            continue
        edge = network.edges[name][0]
        elements = np.arange(edge.parent.size)
        found = edge.message(q, elements, *edge.rows_of(elements))
        y = table.variable.observed.reshape(-1)[rows]
        rest = y - q.moments["level"][b, 0]
        vector, matrix = np.zeros((len(elements), K)), np.zeros((len(elements), K, K))
        np.add.at(vector, own, 2.0 * scale * rest[:, None] * other)
        np.add.at(matrix, own, -0.5 * 2.0 * scale**2 * squares)
        np.testing.assert_allclose(found[:, :K], vector, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found[:, K:].reshape(-1, K, K), matrix, rtol=1e-9, atol=1e-9)


def test_weighted_products_keep_their_weights() -> None:
    with svmp.Model(coords={"a": A, "b": B, "k": K}) as declared:
        w = svmp.MvNormal("w", mu=0, tau=np.eye(K), dims=("b", "k"))
        x = svmp.MvNormal("x", mu=0, tau=np.eye(K), dims=("a", "k"))
        weight = svmp.data(np.arange(1.0, 1 + A), dims="a")
        y = np.zeros((A, B))
        svmp.Normal("y", mu=weight * svmp.dot(x, w), tau=1, dims=("a", "b"), observed=y)
    network = Network(declared)
    q = anywhere(network, 0)
    slot = network.observed["y"].conditional.slots["mu"]
    assert isinstance(slot, Linear)
    expected = np.arange(1.0, 1 + A)[:, None] * (moments(q, "x")[0] @ moments(q, "w")[0].T)
    np.testing.assert_allclose(slot.mean(q, np.arange(A * B)), expected.ravel(), rtol=1e-10)


SIZES = {"a": 4, "b": 5, "c": 3}


def tensor(case: str, dims: tuple[str, ...] = ("a", "b", "c")) -> svmp.Model:
    """Declare a product of vectors of three plates; one of two axes, or known numbers, perhaps."""
    rng = np.random.default_rng(4)
    sizes = {**SIZES, "d": 2} if case == "a plate of two axes" else SIZES
    groups: list[tuple[str, ...]] = [(dim,) for dim in dims]
    if case == "a plate of two axes":
        groups[1] = (*groups[1], "d")
    rows = tuple(dim for group in groups for dim in group)
    shape = tuple(sizes[dim] for dim in rows)
    with svmp.Model(coords={**sizes, "k": K}) as declared:
        factors: list[Any] = []
        for place, group in enumerate(groups):
            if case == "known numbers" and place == 0:
                numbers = rng.normal(size=(sizes[group[0]], K))
                factors.append(svmp.data(numbers, dims=(*group, "k")))
                continue
            name = "x_" + group[0]
            factors.append(svmp.MvNormal(name, mu=0, tau=np.eye(K), dims=(*group, "k")))
        mu = svmp.dot(*factors, dim="k")
        if case == "a scale and another term":
            mu = 1.5 * mu + svmp.Normal("level", 0, 1, dims=groups[2])
        missing = rng.random(shape) < 0.2 if case == "gaps" else False
        tau = svmp.data(rng.uniform(1, 2, shape), dims=rows)
        y = rng.normal(size=shape)
        svmp.Normal("y", mu=mu, tau=tau, dims=rows, observed=y, missing=missing)
    return declared


@pytest.mark.parametrize("dims", [("a", "b", "c"), ("c", "a", "b")])
@pytest.mark.parametrize(
    "case", ["plain", "gaps", "known numbers", "a plate of two axes", "a scale and another term"]
)
def test_three_plates_are_those_of_their_entries(
    case: str, dims: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products of matrices have the moments and messages of lists of entries."""
    network = Network(tensor(case, dims))
    q, names = anywhere(network, 3), list(network.hidden)
    assert network.observed["y"].conditional.linear.terms[0].regular.table_product is not None
    found = bound(network, q), [optimum(network, q, name) for name in names]
    monkeypatch.setattr(LinearTerm, "regular", None)
    entries = Network(tensor(case, dims))
    assert bound(entries, q) == pytest.approx(found[0], rel=1e-12)
    for name, expected in zip(names, found[1], strict=True):
        np.testing.assert_allclose(optimum(entries, q, name), expected, rtol=1e-9, atol=1e-10)


def test_moments_of_a_tensor() -> None:
    network = Network(tensor("plain"))
    q = anywhere(network, 5)
    mean, square = np.ones((1, K)), np.ones((1, K, K))
    for name in ("x_a", "x_b", "x_c"):
        x, xx = moments(q, name)
        mean = (mean[:, None] * x).reshape(-1, K)
        square = (square[:, None] * xx).reshape(-1, K, K)
    slot, rows = network.observed["y"].conditional.slots["mu"], np.arange(60)
    first, second = slot.moments(q, rows).T
    np.testing.assert_allclose(first, mean.sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(second, square.sum(axis=(1, 2)), rtol=1e-10)


def test_sides_that_are_too_large_are_not_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of (4, 5, 3) cells a side has at most 20 lines, here of 9 numbers."""
    for most, served in ((180, True), (179, False)):
        monkeypatch.setattr("svmp.network.means.table_product.MOST", most)
        (term,) = Network(tensor("plain")).observed["y"].conditional.linear.terms
        assert (term.regular.table_product is not None) == served


@pytest.mark.parametrize(
    ("outcomes", "features", "served"), [(1, 3, False), (2, 5, True), (2, 6, False), (5, 6, True)]
)
def test_outcomes_that_share_a_design(outcomes: int, features: int, served: bool) -> None:
    """The posterior is that of one regression for each outcome, in closed form."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(30, features)), rng.normal(size=(30, outcomes))
    with svmp.Model(coords={"row": 30, "o": outcomes, "k": features}) as declared:
        w = svmp.MvNormal("w", mu=0, tau=np.eye(features), dims=("o", "k"))
        mu = svmp.dot(svmp.data(x, dims=("row", "k")), w, dim="k")
        svmp.Normal("y", mu=mu, tau=2.0, dims=("row", "o"), observed=y)
    (term,) = Network(declared).observed["y"].conditional.linear.terms
    assert (term.regular.table_product is not None) == served
    fit = svmp.fit(declared, svmp.FullVB())
    expected = np.linalg.solve(np.eye(features) + 2 * x.T @ x, 2 * x.T @ y).T
    np.testing.assert_allclose(fit["w"].mean, expected, rtol=1e-9)
