"""Observed rows of one kind by their mean statistics, against the same rows one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import svmp
from svmp.network.network import Network

from ..tools import anywhere

RNG = np.random.default_rng(0)
ROWS = 60


def normals(missing: bool) -> svmp.Model:
    y = RNG.normal(3, 2, (ROWS, 2))
    y[::5, 0] = np.nan if missing else 1.0
    with svmp.Model(coords={"row": ROWS, "city": 2}) as model:
        level = svmp.Normal("level", mu=0, tau=1, dims="city")
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        svmp.Normal(
            "y", mu=1 + 2 * level, tau=tau, dims=("row", "city"), observed=y, missing=missing
        )
    return model


def vectors(missing: bool) -> svmp.Model:
    y = RNG.normal(size=(ROWS, 3))
    out = np.zeros(ROWS, dtype=bool)
    out[3:9] = missing
    with svmp.Model(coords={"axis": 3}) as model:
        mu = svmp.MvNormal("mu", mu=0, tau=np.eye(3), dims="axis")
        tau = svmp.Wishart("tau", nu=4, V=np.eye(3), dims=("axis", "axis"))
        svmp.MvNormal("y", mu=mu, tau=tau, dims=("row", "axis"), observed=y, missing=out)
    return model


def counts(missing: bool) -> svmp.Model:
    y = RNG.poisson(4, ROWS).astype(float)
    y[:4] = np.nan if missing else 2.0
    with svmp.Model() as model:
        rate = svmp.Gamma("rate", alpha=1, beta=1)
        svmp.Poisson("y", mu=3 * rate, observed=y, missing=missing)
    return model


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("declare", [normals, vectors, counts])
def test_pooled_rows_and_single_rows_agree(
    declare: Callable[[bool], svmp.Model], missing: bool
) -> None:
    network = Network(declare(missing))
    q, table = anywhere(network, 1), network.observed["y"]
    assert table.conditional.summarised
    rows = network.rows(table)
    expected = network.terms(q, "y", rows).sum()
    np.testing.assert_allclose(network.bound_term(q, "y"), expected, rtol=1e-11)
    for name, edges in network.edges.items():
        elements = np.arange(network.hidden[name].size)
        for edge in edges:
            expected = edge.message(q, elements, *edge.rows_of(elements))
            found = edge.pooled_message(q, elements)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


def test_numbers_far_from_zero_are_not_pooled() -> None:
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=1e-12)
        svmp.Normal("y", mu=mu, tau=1, observed=5e5 + RNG.normal(size=ROWS))
    assert not Network(model).observed["y"].conditional.summarised


def test_rows_with_keys_of_their_own_are_not_pooled() -> None:
    with svmp.Model(coords={"group": 3}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1, dims="group")
        key = RNG.integers(0, 3, ROWS)
        svmp.Normal("y", mu=mu[key], tau=1, observed=RNG.normal(size=ROWS))
    assert not Network(model).observed["y"].conditional.summarised


@pytest.mark.parametrize("declare", [normals, vectors, counts])
def test_other_observed_values_have_statistics_of_their_own(
    declare: Callable[[bool], svmp.Model],
) -> None:
    network = Network(declare(False))
    q, table = anywhere(network, 1), network.observed["y"]
    network.bound_term(q, "y")
    assert table.observed is not None
    other = table.observing((table.observed[::-1] + 1).reshape(table.shape))
    rows = np.arange(table.size)
    found = other.conditional.child(q, rows)
    assert other.observed is not None
    np.testing.assert_array_equal(found, table.family.statistics(other.observed))
    assert (other.conditional.summary.mean != table.conditional.summary.mean).any()
