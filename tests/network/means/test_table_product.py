"""Terms over all pairs of two plates against sums over the cells, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.network.beliefs import Beliefs
from svmp.network.means.linear import Linear
from svmp.network.network import Network
from tests.network.tools import anywhere

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
