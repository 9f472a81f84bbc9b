"""Linear regression with one column, whose fixed point has a closed form."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from svmp.models import BayesianRegression


@pytest.mark.parametrize("t", [1.8, 2.3, 4.0])
def test_one_slope_is_shrunk_as_by_empirical_bayes(t: float) -> None:
    """With alpha = 1 / E[w^2] the slope is (1 - 1 / t^2) times that of least squares, |t| > 1.

    The intercept is not one of the coefficients that alpha shrinks, wherever the column's zero is.
    """
    n, rng = 4000, np.random.default_rng(2)
    x, noise = rng.normal(size=(2, n))
    x = (x - x.mean()) / x.std()
    noise = noise - noise.mean() - x * (noise @ x) / n
    noise /= noise.std()
    y = t / np.sqrt(n) * x + noise
    for shift in (0.0, 300.0):
        model = BayesianRegression(tol=1e-13, max_iter=5000).fit(x[:, None] + shift, y)
        assert model.coef_[0] == pytest.approx((1 - 1 / t**2) * t / np.sqrt(n), rel=5e-3)
        assert model.sigma_[1, 1] == pytest.approx((1 - 1 / t**2) / n, rel=5e-3)


def test_the_summary_and_the_fit_have_the_names_of_the_columns() -> None:
    X = np.random.default_rng(1).normal(size=(40, 2))
    frame = pd.DataFrame(X, columns=["age", "dose"])
    model = BayesianRegression().fit(frame, X[:, 0])
    assert [row[0] for row in model.summary().rows] == [
        "Intercept", "age", "dose", "sd of the noise",
    ]  # fmt: skip
    assert {"w[Intercept]", "w[age]", "w[dose]"} <= {row[0] for row in model.fit_.summary().rows}
