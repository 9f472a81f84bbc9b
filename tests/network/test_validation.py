"""Arrays of any layout are read correctly; indices out of range are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import svmp

ROWS = 60
RNG = np.random.default_rng(0)
KEY, VALUES = RNG.integers(0, 5, ROWS), np.round(4 * RNG.normal(size=ROWS))
DESIGN = sparse.random_array((ROWS, 5), density=0.4, format="csr", rng=RNG)


def bound(key: Any, values: Any, kernels: bool = True) -> float:
    with svmp.Model(coords={"group": 5}) as model:
        a = svmp.Normal("a", mu=0, tau=1, dims="group")
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Normal("x", mu=a[key], tau=tau, observed=values)
    return svmp.fit(model, svmp.FullVB(), max_sweeps=3, kernels=kernels).bound


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("kind", [">f8", "<f8", ">f4", "f4", "f2", ">i4", "i2", "i1", "longdouble"])
def test_numbers_of_any_type_give_the_same_fit(kind: str, kernels: bool) -> None:
    expected = bound(KEY, VALUES, kernels)
    assert bound(KEY, VALUES.astype(kind), kernels) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", [">i8", ">u2", "u8", "i1"])
def test_keys_of_any_type_give_the_same_fit(kind: str) -> None:
    assert bound(KEY.astype(kind), VALUES) == bound(KEY, VALUES)


def test_masked_keys_are_refused() -> None:
    with pytest.raises(svmp.ModelError, match="masked"):
        bound(np.ma.masked_equal(KEY, 3), VALUES)
    assert bound(np.ma.masked_equal(KEY, 99), VALUES) == bound(KEY, VALUES)


def _entry(attribute: str, place: int, value: int) -> Callable[[Any], None]:
    return lambda matrix: getattr(matrix, attribute).__setitem__(place, value)


WRONG = {
    "an index too large": ("csr", _entry("indices", 5, 10**6)),
    "an index below zero": ("csr", _entry("indices", 5, -3)),
    "a row that ends too late": ("csr", _entry("indptr", 5, 10**6)),
    "a row that ends before it begins": ("csr", _entry("indptr", 5, 0)),
    "a column of rows that are not there": ("csc", _entry("indices", 5, 10**6)),
    "coordinates too large": ("coo", lambda m: m.coords[0].__setitem__(3, 10**6)),
    "coordinates below zero": ("coo", lambda m: m.coords[1].__setitem__(3, -1)),
    "too few numbers": ("coo", lambda m: setattr(m, "data", m.data[:3])),
}


@pytest.mark.parametrize(("form", "change"), WRONG.values(), ids=WRONG)
def test_sparse_designs_that_do_not_fit_their_shape_are_refused(
    form: str, change: Callable[[Any], None]
) -> None:
    matrix = DESIGN.asformat(form, copy=True)
    change(matrix)
    with svmp.Model(coords={"f": 5}):
        w = svmp.Normal("w", mu=0, tau=1, dims="f")
        with pytest.raises(svmp.ModelError, match="do not fit its shape"):
            svmp.dot(matrix, w)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_sparse_designs_of_any_format_give_the_same_fit(form: str) -> None:
    bounds = []
    for matrix in (DESIGN, DESIGN.asformat(form)):
        with svmp.Model(coords={"f": 5}) as model:
            w = svmp.Normal("w", mu=0, tau=1, dims="f")
            svmp.Normal("x", mu=svmp.dot(matrix, w), tau=1, observed=VALUES)
        bounds.append(svmp.fit(model, svmp.FullVB(), max_sweeps=3).bound)
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-12)
