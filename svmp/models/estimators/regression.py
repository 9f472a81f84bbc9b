"""Linear regression: y_n ~ Normal(w . x_n, tau), w ~ MvNormal(0, alpha), alpha and tau ~ Gamma."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from svmp.families.family import Array
from svmp.inference.methods import FullVB
from svmp.models.estimators.estimator import (
    WEAK,
    NetworkEstimator,
    quadratic_forms,
    relative_precisions,
    with_ones,
)
from svmp.network.data_arrays import data
from svmp.network.distributions import Gamma, MvNormal, Normal
from svmp.network.expressions import dot
from svmp.network.model import Model


class BayesianRegression(RegressorMixin, NetworkEstimator):
    """Bayesian linear regression, with the precisions of weights and noise learned.

    Parameters
    ----------
    fit_intercept
        Whether the first coefficient is an intercept, with a weak prior.
    tol, max_iter
        As `tol` and `max_sweeps` of `svmp.fit`.
    random_state
        Seed of the start.

    Attributes
    ----------
    coef_, intercept_
        Posterior means.
    sigma_
        Posterior covariance of the coefficients, that of the intercept first.
    fit_
        The `svmp.Fit`, with `w`, `alpha` and `tau`.

    >>> from svmp.models import BayesianRegression
    >>> model = BayesianRegression().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.1, 4.9, 7.0])
    >>> model.coef_.round(1), round(model.intercept_, 1)
    (array([2.]), 1.0)
    """

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: Any = 0,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.tol, self.max_iter, self.random_state = tol, max_iter, random_state

    def declare(self, X: Array, y: Array) -> Model:
        """Declare the network of some rows; X has a column of ones where there is an intercept."""
        count = X.shape[1]
        with Model(coords={"coef": count}) as model:
            alpha = Gamma("alpha", alpha=WEAK, beta=WEAK)
            tau = Gamma("tau", alpha=WEAK, beta=WEAK)
            prior = alpha * relative_precisions(count, self.fit_intercept)
            w = MvNormal("w", mu=0, tau=prior, dims="coef")
            design = data(X, dims=("row", "coef"))
            Normal("y", mu=dot(design, w), tau=tau, dims="row", observed=y)
        return model

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the network to rows."""
        self._check_parameters()
        X, y = validate_data(self, X, y, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        return self._after(self._learn(self.declare(with_ones(X, self.fit_intercept), y), FullVB()))

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Update the fit with further rows; what was learned is their prior."""
        if not hasattr(self, "fit_"):
            return self.fit(X, y)
        X, y = validate_data(self, X, y, y_numeric=True, reset=False)
        model = self.declare(with_ones(X, self.fit_intercept), np.asarray(y, dtype=np.float64))
        return self._after(self._learn_more(model, FullVB()))

    def _after(self, fitted: Self) -> Self:
        mean = self.fit_.mean("w")
        self.coef_ = mean[1:] if self.fit_intercept else mean
        self.intercept_ = float(mean[0]) if self.fit_intercept else 0.0
        self.sigma_ = np.asarray(np.linalg.inv(self.fit_.posteriors["w"].tau), dtype=np.float64)
        return fitted

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the predictive mean of each row, and its standard deviation if it is asked for."""
        check_is_fitted(self)
        X = with_ones(validate_data(self, X, reset=False), self.fit_intercept)
        mean = X @ self.fit_.mean("w")
        if not return_std:
            return mean
        q = self.fit_.posteriors["tau"]
        noise = float(q.beta / (q.alpha - 1)) if q.alpha > 1 else float(q.beta / q.alpha)
        return mean, np.sqrt(quadratic_forms(X, self.sigma_) + noise)
