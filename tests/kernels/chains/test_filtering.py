"""States that explode between observations: means and evidence in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import log, pi

import numpy as np
import pytest

import svmp


def declare(rows: int, last: bool, A: float = 1.5) -> svmp.Model:
    y = np.full(rows, np.nan)
    y[0] = 1.0
    if last:
        y[-1] = 2.0
    with svmp.Model(coords={"row": rows, "latent": 1}) as model:
        x = svmp.LinearGaussianChain("x", svmp.Normal.dist(0, 1), A, 1.0, dims=("row", "latent"))
        svmp.Normal("y", x[:, 0], 1.0, dims="row", observed=y, missing=True)
    return model


def exact(rows: int, last: bool) -> tuple[float, float]:
    """Return the log evidence, and the mean of the state in the middle."""
    A, spread, middle = Fraction(3, 2), [Fraction(1)], rows // 2
    for _ in range(1, rows):
        spread.append(A * A * spread[-1] + 1)
    if not last:
        return -0.5 * (log(4 * pi) + 0.5), float(A**middle / 2)
    a, b, c = Fraction(2), A ** (rows - 1), spread[-1] + 1
    det = a * c - b * b
    weights = (c * 1 - b * 2) / det, (a * 2 - b * 1) / det
    mean = A**middle * weights[0] + A ** (rows - 1 - middle) * spread[middle] * weights[1]
    square = float(weights[0] * 1 + weights[1] * 2)
    size = log(det.numerator) - log(det.denominator)
    return -0.5 * (2 * log(2 * pi) + size + square), float(mean)


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("rows", [30, 300])
def test_exploding_states_have_an_exact_posterior(rows: int, last: bool, kernels: bool) -> None:
    fit = svmp.fit(declare(rows, last), kernels=kernels)
    bound, middle = exact(rows, last)
    assert fit.bound == pytest.approx(bound, rel=1e-10)
    assert fit.mean("x")[rows // 2, 0] == pytest.approx(middle, rel=1e-9)
    draws = fit["x"].draw(20, seed=0)[:, -1, 0]
    if last:
        assert np.abs(draws - 2).max() < 5
