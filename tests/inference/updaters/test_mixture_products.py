"""Which mixtures have sums by products of matrices; kernels/categorical/test_updater.py: values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.updaters.mixture_products import MixtureProducts
from svmp.network.network import Network

ROWS = 6


def mixture(component: Any, y: Any, z: Any = None, **options: Any) -> svmp.Model:
    with svmp.Model(coords={"row": ROWS, "k": 2, "item": 2, "category": 3}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row", **(z or {}))
        svmp.Mixture("y", z, component(), dims=("row", "item")[: np.ndim(y)], observed=y, **options)
    return model


def rates(exposure: Any = 1.0) -> Any:
    return svmp.Poisson.dist(mu=svmp.Gamma("rate", 1, 1, dims="k") * exposure)


def trials(n: Any) -> Any:
    return svmp.Binomial.dist(n=n, p=svmp.Beta("p", 1, 1, dims="k"))


def known(p: Any) -> Any:
    return svmp.Categorical.dist(p=svmp.data(p, dims=("k", "category")))


ONES, BOTH = np.ones(ROWS, int), np.ones((ROWS, 2), int)
FIRST = np.arange(ROWS) == 0


@pytest.mark.parametrize(
    ("model", "served"),
    [
        (mixture(rates, ONES), True),
        (mixture(rates, BOTH), True),
        (mixture(lambda: rates(3.0), ONES), True),
        (mixture(lambda: rates(np.arange(1.0, 1 + ROWS)), ONES), False),
        (mixture(lambda: trials(4), ONES), True),
        (mixture(lambda: trials(np.arange(1, 1 + ROWS)), ONES), False),
        (mixture(lambda: known(np.array([[0.5, 0.4, 0.1], [0.1, 0.1, 0.8]])), BOTH), True),
        (mixture(rates, BOTH, missing=np.stack([FIRST, ~FIRST], axis=1)), True),
        (mixture(rates, BOTH, missing=np.stack([FIRST, FIRST], axis=1)), False),
        (mixture(rates, ONES, {"observed": ONES, "missing": FIRST}), False),
        (mixture(lambda: svmp.Normal.dist(svmp.Normal("m", 0, 1, dims="k"), 1), ONES), False),
    ],
)
def test_rows_with_the_same_parameters_are_served(model: svmp.Model, served: bool) -> None:
    assert (MixtureProducts.of(Network(model), "z") is not None) == served
