"""Products of two variables that are the whole mean of a table, and where their factors start."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.inference.starts.products import products
from svmp.inference.starts.start import start
from svmp.network.network import Network

N = 30
"""Fewer rows than numbers in a product: it starts at the level, not at a fit."""


def model(kind: str, level: float = 4.0) -> svmp.Model:
    rng = np.random.default_rng(2)
    keys = rng.integers(6, size=(2, N))
    y = rng.normal(level, 1, N)
    with svmp.Model(coords={"a": 6, "b": 6, "k": 3}) as made:
        mean = 1.0 if kind == "prior mean" else 0.0
        u = svmp.Normal("u", mu=mean, tau=1, dims=("a", "k"))
        if kind == "vector":
            u = svmp.MvNormal("w", mu=0, tau=np.eye(3), dims=("a", "k"))
            v = svmp.MvNormal("x", mu=0, tau=np.eye(3), dims=("b", "k"))
            mu = svmp.dot(u[keys[0]], v[keys[1]])
        else:
            v = svmp.Normal("v", mu=0, tau=1, dims=("b", "k"))
            mu = svmp.dot(u[keys[0]], v[keys[1]])
        if kind == "offset":
            mu = mu + 1.5
        if kind == "bias":
            mu = mu + svmp.Normal("bias", mu=0, tau=1, dims="a")[keys[0]]
        svmp.Normal("y", mu=mu, tau=1, observed=y)
    return made


@pytest.mark.parametrize("kind", ["pair", "vector", "offset"])
@pytest.mark.parametrize("level", [4.0, -4.0])
def test_first_factors_multiply_to_the_mean_of_the_data(kind: str, level: float) -> None:
    network = Network(model(kind, level))
    (product,) = products(network)
    constant = 1.5 if kind == "offset" else 0.0
    q, other, seen = start(network, 1), start(Network(model(kind, constant)), 1), 1.0
    for name in product.operands:
        added = q.moments[name] - other.moments[name]
        first = added[:, 0] if kind == "vector" else added[::3, 0]
        np.testing.assert_allclose(first, first[0])
        seen *= first[0]
    y = network.observed["y"].values
    assert seen == pytest.approx(y.mean() - constant)


def test_other_factors_start_near_the_prior_as_before() -> None:
    network = Network(model("pair"))
    near, far = start(network, 1), start(Network(model("pair", 0.0)), 1)
    others = np.arange(18) % 3 > 0
    np.testing.assert_array_equal(near.natural["u"][others], far.natural["u"][others])


@pytest.mark.parametrize("kind", ["bias"])
def test_other_means_have_no_such_start(kind: str) -> None:
    assert products(Network(model(kind))) == []


def test_given_starts_prior_means_and_centred_data_are_kept() -> None:
    def first(kind: str, level: float, name: str = "u", **given: float) -> float:
        return float(start(Network(model(kind, level)), 1, given).moments[name][0, 0])

    assert first("pair", 4.0, u=0.5) == pytest.approx(0.5)
    assert first("pair", 4.0, "v", u=0.5) == first("pair", 0.0, "v", u=0.5)
    assert first("prior mean", 4.0) == first("prior mean", 0.0)
    assert first("pair", 0.1) == first("pair", 0.0)
