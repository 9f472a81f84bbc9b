"""Sizes that no machine has memory for are refused in a sentence, before anything is allocated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp

HUGE = 10**13


@pytest.mark.parametrize(
    "declare",
    [
        lambda: svmp.Normal("b", 0, 1, dims="g"),
        lambda: svmp.Gamma("b", 1, 1, dims=("r", "g")),
        lambda: svmp.Dirichlet("b", 1.0, dims=("g", "r")),
        lambda: svmp.MvNormal("b", 0, np.eye(4), dims=("g", "r")),
        lambda: svmp.GaussianRandomWalk("b", 1.0, dims="g"),
        lambda: svmp.DiscreteMarkovChain("b", [0.5, 0.5], np.full((2, 2), 0.5), dims="g"),
    ],
)
def test_variables_that_do_not_fit_into_memory_are_refused(declare: Any) -> None:
    with (
        svmp.Model(coords={"g": HUGE, "r": 4}),
        pytest.raises(svmp.ModelError, match=r"'b' has .*10,000,000,000,000.* GB"),
    ):
        declare()


def test_a_large_dimension_that_no_variable_has_is_no_trouble() -> None:
    with svmp.Model(coords={"g": HUGE, "r": 4}) as model:
        a = svmp.Normal("a", 0, 1)
        svmp.Normal("y", a, 1.0, dims="r", observed=np.ones(4))
    assert svmp.fit(model).mean("a") == pytest.approx(0.8)
