"""Linear response by matrices and by a sparse factorisation, beside conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import svmp
from svmp.posterior.uncertainty import linear_response, sparse_response

from .test_linear_response import (
    GROUP,
    SIDE,
    Y,
    crossed,
    factors,
    logistic,
    mixture,
    tight,
    vectors,
)


@pytest.mark.parametrize("declare", [crossed, factors, logistic, mixture, vectors])
def test_matrices_factors_and_conjugate_gradients_agree(
    declare: Callable[[], svmp.Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = declare()
    fit = tight(model)
    names = [name for name in fit.posteriors if name != "z"]
    found = fit.covariance(names, model=model).matrix
    for module in (linear_response, sparse_response):
        monkeypatch.setattr(module, "LARGEST", 0)
        other = fit.covariance(names, model=model).matrix
        np.testing.assert_allclose(found, other, rtol=1e-5, atol=1e-6 * np.abs(other).max())


def test_rotations_of_factors_do_not_respond() -> None:
    """The bound is the same for all rotations of vectors with a round prior: a ridge."""
    with svmp.Model(coords={"group": 4, "side": 3, "k": 2}) as model:
        u = svmp.MvNormal("u", mu=np.zeros(2), tau=np.eye(2), dims=("group", "k"))
        v = svmp.MvNormal("v", mu=np.zeros(2), tau=np.eye(2), dims=("side", "k"))
        svmp.Normal("y", mu=svmp.dot(u[GROUP], v[SIDE]), tau=4.0, observed=2 * Y)
    for fit in (tight(model), svmp.fit(model, kernels=False)):
        found = fit.corrected(model)
        # They are wider than those of q, but not without limit as along the ridge.
        assert 1.05 < (found["u"].std / fit["u"].std).max() < 6
        assert fit.predict(model, "y").covariances == "linear response"
    with pytest.raises(svmp.ModelError, match="on a ridge"):
        fit.covariance("u", model=model)
