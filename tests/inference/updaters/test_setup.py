"""Rows that stay sorted while their values change, against networks that are declared anew."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.fitting.online import Online
from svmp.inference.updaters.setup import find_loops, replace_observed, share_sorted_rows
from svmp.models import NormalPrior, UserItemPairs, matrix_factorization
from svmp.network.network import Network

RNG = np.random.default_rng(0)
PAIRS = UserItemPairs(RNG.integers(0, 20, 400), RNG.integers(0, 15, 400), 20, 15)
OLD, NEW = (RNG.standard_normal(400).astype(np.float32) for _ in range(2))


def declared(values: np.ndarray, factors: int = 3, covariance: str = "diagonal") -> Network:
    precision = np.eye(factors) if covariance == "full" else 1
    priors = {name: NormalPrior(0, precision) for name in "uv"}
    kinds = {"priors": priors, "covariance": covariance}
    return Network(matrix_factorization(PAIRS, values, factors, **kinds))


def swept(network: Network) -> dict[str, np.ndarray]:
    run = Online(svmp.Constant(1.0), tell=False)
    for _ in range(3):
        run.advance(network)
    return {name: q.natural.copy() for name, q in run.posteriors.items()}


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_replaced_values_give_the_same_bits_as_a_new_network(covariance: str) -> None:
    network = declared(OLD, covariance=covariance)
    swept(network)
    replace_observed(network, "r", NEW)
    for name, natural in swept(declared(NEW, covariance=covariance)).items():
        assert np.array_equal(swept(network)[name], natural)


def test_shared_orders_give_the_same_bits() -> None:
    first = declared(OLD, factors=2)
    swept(first)
    second = declared(NEW)
    share_sorted_rows(second, first)
    known, found = (find_loops(n)["r"].all_rows(1) for n in (first, second))
    assert found.columns is known.columns
    for name, natural in swept(declared(NEW)).items():
        assert np.array_equal(swept(second)[name], natural)
    assert np.array_equal(find_loops(first)["r"].all_rows(1).target, OLD[known.rows])


def test_orders_of_other_keys_are_not_shared() -> None:
    first = declared(OLD)
    swept(first)
    pairs = PAIRS._replace(item=(np.asarray(PAIRS.item) + 1) % 15)
    second = Network(matrix_factorization(pairs, OLD, 3))
    share_sorted_rows(second, first)
    loops = find_loops(second)["r"]
    assert loops.all_rows(1).columns is not find_loops(first)["r"].all_rows(1).columns


def test_new_values_must_be_finite_and_as_many() -> None:
    network = declared(OLD)
    for values in (NEW[:-1], np.full(400, np.nan)):
        with pytest.raises(svmp.ModelError, match="not finite, or not as many"):
            replace_observed(network, "r", values)


def test_missing_values_are_not_replaced() -> None:
    values = OLD.copy()
    with svmp.Model(coords={"user": 20}) as model:
        x = svmp.Normal("x", mu=0, tau=1, dims="user")
        values[3] = np.nan
        svmp.Normal("r", mu=x[PAIRS.user], tau=1, observed=values, missing=True)
    with pytest.raises(svmp.ModelError, match="missing"):
        replace_observed(Network(model), "r", NEW)
