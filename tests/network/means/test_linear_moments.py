"""E[mu] and E[mu^2] of any linear mean, against exact expectations of plain polynomials."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import svmp
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network

from ..networks import with_random_mean
from ..polynomials import Gaussian, expectations
from ..random_means import Mean, rows
from ..tools import anywhere


def gaussians(network: Network, q: Beliefs) -> dict[str, Gaussian]:
    """Return mean and covariance of q for every Normal and MvNormal; known values have none."""
    found = {}
    for name, variable in network.model.variables.items():
        vector = bool(variable.event_dims)
        d = variable.shape[-1] if vector else 1
        if not variable.hidden:
            mean, cov = variable.observed, np.zeros((variable.size, d, d))
        elif type(variable.family).__name__ in ("Normal", "MvNormal"):
            mean = variable.family.mean(q.natural[name])
            second = q.moments[name][:, d:].reshape(-1, d, d)
            flat = mean.reshape(-1, d)
            cov = second - flat[:, :, None] * flat[:, None, :]
        else:
            continue
        found[name] = Gaussian(np.reshape(mean, variable.shape), cov, vector)
    return found


@settings(max_examples=150, suppress_health_check=[HealthCheck.filter_too_much])
@given(with_random_mean(), st.integers(0, 2**16))
def test_moments_of_a_random_mean(drawn: tuple[svmp.Model, Mean], seed: int) -> None:
    model, mean = drawn
    network = Network(model)
    q = anywhere(network, seed)
    known = gaussians(network, q)
    expected = [expectations(row, known) for row in rows(mean)]
    assume(None not in expected)
    table = model["r"]
    found = table.conditional.slots["mu"].moments(q, np.arange(table.size))
    scale = 1 + np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * scale)


def moments_of(model: svmp.Model, seed: int = 0) -> tuple[np.ndarray, dict[str, Gaussian]]:
    network = Network(model)
    q = anywhere(network, seed)
    table = model["r"]
    return table.conditional.slots["mu"].moments(q, np.arange(table.size)), gaussians(network, q)


def test_a_product_and_one_of_its_factors() -> None:
    """E[(x y + y)^2] = E[y^2] E[(x + 1)^2]."""
    with svmp.Model() as model:
        x = svmp.Normal("x", mu=0, tau=1)
        y = svmp.Normal("y", mu=0, tau=1)
        svmp.Normal("r", mu=x * y + y, tau=1, observed=[1.0])
    found, q = moments_of(model)
    (x1, x2), (y1, y2) = (
        (float(v.mean), float(v.mean**2 + v.cov[0, 0, 0])) for v in (q["x"], q["y"])
    )
    assert found[0] == pytest.approx([y1 * (x1 + 1), y2 * (x2 + 2 * x1 + 1)], rel=1e-13)


def test_an_element_minus_itself_is_zero() -> None:
    with svmp.Model(coords={"a": 2}) as model:
        s = svmp.Normal("s", mu=0, tau=1, dims="a")
        svmp.Normal("r", mu=s[[0, 0, 1]] - s[[0, 1, 1]], tau=1, observed=[1.0, 2.0, 3.0])
    found, q = moments_of(model)
    gap = float(q["s"].mean[0] - q["s"].mean[1])
    second = gap**2 + q["s"].cov.sum()
    np.testing.assert_allclose(found, [[0, 0], [gap, second], [0, 0]], atol=1e-14)


def test_entries_of_one_vector_keep_their_covariance() -> None:
    with svmp.Model(coords={"d": 2}) as model:
        w = svmp.MvNormal("w", mu=[0, 0], tau=np.eye(2), dims="d")
        svmp.Normal("r", mu=2 * w[0] - 3 * w[1], tau=1, observed=[1.0])
    found, q = moments_of(model)
    a = np.array([2.0, -3.0])
    mean = a @ q["w"].mean
    assert found[0] == pytest.approx([mean, mean**2 + a @ q["w"].cov[0] @ a], rel=1e-12)


def test_a_dot_of_two_vectors() -> None:
    """E[(u . v)^2] = sum of (E[u u'] * E[v v'])."""
    with svmp.Model(coords={"d": 3}) as model:
        u = svmp.MvNormal("u", mu=0, tau=np.eye(3), dims="d")
        v = svmp.MvNormal("v", mu=0, tau=np.eye(3), dims="d")
        svmp.Normal("r", mu=svmp.dot(u, v), tau=1, observed=[1.0])
    found, q = moments_of(model)
    uu, vv = (np.outer(g.mean, g.mean) + g.cov[0] for g in (q["u"], q["v"]))
    assert found[0] == pytest.approx([q["u"].mean @ q["v"].mean, (uu * vv).sum()], rel=1e-12)


def test_a_dot_of_a_vector_and_normals() -> None:
    """E[(u . w)^2] = sum of (E[u u'] * E[w w']), where entries of w are independent."""
    users, items = np.array([0, 1, 1, 0]), np.array([1, 0, 1, 1])
    with svmp.Model(coords={"user": 2, "item": 2, "d": 3}) as model:
        u = svmp.MvNormal("u", mu=0, tau=np.eye(3), dims=("user", "d"))
        w = svmp.Normal("w", mu=0, tau=1, dims=("item", "d"))
        svmp.Normal("r", mu=svmp.dot(u[users], w[items]), tau=1, observed=np.ones(4))
    found, q = moments_of(model)
    w1 = q["w"].mean
    uu = np.einsum("nk,nl->nkl", q["u"].mean, q["u"].mean) + q["u"].cov
    ww = np.einsum("nk,nl->nkl", w1, w1)
    ww[:, np.arange(3), np.arange(3)] += q["w"].cov.reshape(2, 3)
    mean = (q["u"].mean[users] * w1[items]).sum(axis=1)
    second = (uu[users] * ww[items]).sum(axis=(1, 2))
    np.testing.assert_allclose(found, np.stack([mean, second], axis=1), rtol=1e-12)


def test_the_square_of_a_sum_over_a_shared_factor() -> None:
    """sum_k x v_k with one x for all k: its square has E[x^2] in every cross term."""
    with svmp.Model(coords={"k": 3}) as model:
        x = svmp.Normal("x", mu=0, tau=1)
        v = svmp.Normal("v", mu=0, tau=1, dims="k")
        svmp.Normal("r", mu=(x * v).sum("k"), tau=1, observed=[1.0])
    found, q = moments_of(model)
    x1, x2 = float(q["x"].mean), float(q["x"].mean ** 2 + q["x"].cov[0, 0, 0])
    total = q["v"].mean.sum()
    expected = [x1 * total, x2 * (total**2 + q["v"].cov.sum())]
    assert found[0] == pytest.approx(expected, rel=1e-12)
