"""Linear response of small networks by matrices, beside conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import svmp
from svmp.inference.uncertainty import linear_response

from .test_linear_response import crossed, factors, logistic, mixture, tight, vectors


@pytest.mark.parametrize("declare", [crossed, factors, logistic, mixture, vectors])
def test_matrices_and_conjugate_gradients_agree(
    declare: Callable[[], svmp.Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = declare()
    fit = tight(model)
    names = [name for name in fit.posteriors if name != "z"]
    found = fit.covariance(names, model=model).matrix
    monkeypatch.setattr(linear_response, "LARGEST", 0)
    other = fit.covariance(names, model=model).matrix
    np.testing.assert_allclose(found, other, rtol=1e-5, atol=1e-6 * np.abs(other).max())
