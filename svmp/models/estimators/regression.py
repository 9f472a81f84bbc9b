"""Linear regression: y_n ~ Normal(w . x_n, tau), w ~ MvNormal(0, alpha), alpha and tau ~ Gamma.

Columns and y are standardised first, so that the priors suit any units. The intercept has an alpha
of its own, with a mean of FLAT: it is not shrunk together with the other coefficients.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from svmp.families.family import Array
from svmp.inference.methods import FullVB
from svmp.models.estimators.coefficients import coefficient_rows, coefficient_table, noise_row
from svmp.models.estimators.estimator import (
    EXACT,
    FLAT,
    WEAK,
    NetworkEstimator,
    noise_rate,
    quadratic_forms,
    with_ones,
)
from svmp.models.estimators.scaling import Standard, coefficients_in_units
from svmp.network.data_arrays import data
from svmp.network.distributions import Gamma, MvNormal, Normal
from svmp.network.expressions import diag, dot
from svmp.network.model import Model
from svmp.posterior.output.summary import Summary


class BayesianRegression(RegressorMixin, NetworkEstimator):
    """Bayesian linear regression, with the precisions of weights and noise learned.

    The coefficients of standardised columns have one prior precision, so that the answer is the
    same in any units.

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
    names_
        The coefficients, in the same order.
    fit_
        The `svmp.Fit` of standardised columns and y, with `w`, `alpha` and `tau`; the intercept has
        a precision of its own in `alpha`.

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
        """Declare the network of some rows, in standard units.

        X has a column of ones where there is an intercept.
        """
        kinds = ["intercept", "slopes"] if self.fit_intercept else ["slopes"]
        shape, rate = np.array([[1.0, WEAK], [1 / FLAT, WEAK]])[:, -len(kinds) :]
        kind = np.minimum(np.arange(X.shape[1]), len(kinds) - 1)
        with Model(coords={"coef": self.names_, "kind": kinds}) as model:
            alpha = Gamma("alpha", alpha=shape, beta=rate, dims="kind")
            tau = Gamma("tau", alpha=WEAK, beta=self._noise)
            w = MvNormal("w", mu=0, tau=diag(alpha.iloc[data(kind, dims="coef")]), dims="coef")
            design = data(X, dims=("row", "coef"))
            Normal("y", mu=dot(design, w), tau=tau, dims="row", observed=y)
        return model

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the network to rows."""
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        self.names_ = self._coefficients(X.shape[1], self.fit_intercept)
        self._columns = Standard.of(X, self.fit_intercept)
        self._target = Standard.of(y, self.fit_intercept)
        self._noise = noise_rate(len(y), EXACT)
        return self._after(self._learn(self._declared(X, y), FullVB()))

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Update the fit with further rows; what was learned is their prior."""
        if not hasattr(self, "fit_"):
            return self.fit(X, y)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=False)
        return self._after(self._learn_more(self._declared(X, y), FullVB()))

    def _declared(self, X: Array, y: Any) -> Model:
        return self.declare(self._design(X), self._target.apply(np.asarray(y, dtype=np.float64)))

    def _design(self, X: Array) -> Array:
        return with_ones(self._columns.apply(X), self.fit_intercept)

    def _after(self, fitted: Self) -> Self:
        size, q = self._target.scale, self.fit_.posteriors["w"]
        units = size * coefficients_in_units(self._columns, self.fit_intercept)
        mean = units @ q.mean
        if self.fit_intercept:
            mean[0] += self._target.centre
        self.coef_ = mean[1:] if self.fit_intercept else mean
        self.intercept_ = float(mean[0]) if self.fit_intercept else 0.0
        self.sigma_ = units @ q.cov @ units.T
        return fitted

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the predictive mean of each row, and its standard deviation if it is asked for."""
        check_is_fitted(self)
        X = self._design(validate_data(self, X, dtype=np.float64, reset=False))
        q, size = self.fit_.posteriors["w"], self._target.scale
        mean = self._target.centre + size * (X @ q.mean)
        if not return_std:
            return mean
        tau = self.fit_.posteriors["tau"]
        noise = float(tau.beta / (tau.alpha - 1)) if tau.alpha > 1 else float(tau.beta / tau.alpha)
        return mean, size * np.sqrt(quadratic_forms(X, q.cov) + noise)

    def summary(self, *, prob: float = 0.9) -> Summary:
        """Return mean, sd and interval of each coefficient and of the noise, as a table to print.

        Parameters
        ----------
        prob
            Probability of the central intervals.
        """
        check_is_fitted(self)
        mean = np.append(self.intercept_, self.coef_) if self.fit_intercept else self.coef_
        rows = coefficient_rows(self.names_, mean, np.sqrt(self.sigma_.diagonal()), prob)
        size = float(self._target.scale)
        rows.append(noise_row(self.fit_.posteriors["tau"], size, prob))
        return coefficient_table(f"BayesianRegression, {self.fit_.status}", rows, prob)
