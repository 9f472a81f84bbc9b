"""Logistic regression: y_nk ~ Bernoulli(logit = w_k . x_n), w_k ~ MvNormal(0, alpha).

Two classes have one logit. More classes have one each, against all others, and their probabilities
are normalised. Columns are standardised first, so that the prior suits any units.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from svmp.families.family import Array
from svmp.inference.methods import Growing
from svmp.models.estimators.coefficients import coefficient_rows, coefficient_table
from svmp.models.estimators.estimator import (
    NetworkEstimator,
    quadratic_forms,
    with_ones,
)
from svmp.models.estimators.scaling import Standard, coefficients_in_units
from svmp.network.data_arrays import data
from svmp.network.distributions import Bernoulli, MvNormal
from svmp.network.expressions import dot
from svmp.network.model import Model
from svmp.posterior.output.summary import Summary

BINARY = 2
INTERCEPT = 0.01
"""Prior precision of the intercept, relative to that of the other coefficients."""


class LogisticRegression(ClassifierMixin, NetworkEstimator):
    """Bayesian logistic regression, by the lower bound of Jaakkola and Jordan.

    Parameters
    ----------
    alpha
        Prior precision of the coefficients of standardised columns.
    fit_intercept
        Whether there is an intercept, with a weak prior.
    tol, max_iter
        As `tol` and `max_sweeps` of `svmp.fit`.
    random_state
        Seed of the start.

    Attributes
    ----------
    classes_
        The labels of the classes.
    coef_, intercept_
        Posterior means: a row for two classes, else one for each class.
    names_
        The coefficients of one logit, that of the intercept first.
    covariances_
        Their posterior covariance, for each logit.
    fit_
        The `svmp.Fit` of standardised columns, with `w`.

    >>> from svmp.models import LogisticRegression
    >>> model = LogisticRegression().fit([[-2.0], [-1.0], [1.0], [2.0]], ["a", "a", "b", "b"])
    >>> [str(label) for label in model.predict([[-3.0], [3.0]])]
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-5,
        max_iter: int = 500,
        random_state: Any = 0,
    ) -> None:
        self.alpha, self.fit_intercept = alpha, fit_intercept
        self.tol, self.max_iter, self.random_state = tol, max_iter, random_state

    def declare(self, X: Array, chosen: Array) -> Model:
        """Declare the network of some rows, in standard units.

        X has a column of ones where there is an intercept; `chosen` a column of zeros and ones for
        each logit.
        """
        labels = self.classes_.tolist()[-chosen.shape[1] :]
        with Model(coords={"coef": self.names_, "class": labels}) as model:
            prior = np.diag(np.full(X.shape[1], float(self.alpha)))
            prior[0, 0] *= INTERCEPT if self.fit_intercept else 1.0
            w = MvNormal("w", mu=0, tau=prior, dims=("class", "coef"))
            logit = dot(data(X, dims=("row", "coef")), w, dim="coef")
            Bernoulli("y", logit=logit, dims=("row", "class"), observed=chosen)
        return model

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the network to rows."""
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < BINARY:
            raise ValueError(
                f"LogisticRegression needs samples of at least 2 classes, but y contains one class "
                f"only: '{self.classes_[0]}'"
            )
        return self._first(X, y)

    def _first(self, X: Array, y: Any) -> Self:
        """Fit the network to the first rows, from a narrow start at 0."""
        self.names_ = self._coefficients(X.shape[1], self.fit_intercept)
        self._columns = Standard.of(X, self.fit_intercept)
        design, chosen = self._design(X), self._chosen(y)
        model, count = self.declare(design, chosen), chosen.shape[1]
        tau = np.diag(0.25 * (design**2).sum(axis=0) + self.alpha)
        start = {"mu": np.zeros((count, len(tau))), "tau": np.stack([tau] * count)}
        return self._after(self._learn(model, Growing(first=1), init={"w": start}))

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Update the fit with further rows.

        Parameters
        ----------
        X, y
            The rows and their classes.
        classes
            All classes, in the first call, if its rows do not have all of them.
        """
        first = not hasattr(self, "fit_")
        X, y = validate_data(self, X, y, dtype=np.float64, reset=first)
        check_classification_targets(y)
        if first:
            self.classes_ = np.unique(y) if classes is None else np.unique(classes)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            known = ", ".join(map(str, self.classes_))
            raise ValueError(f"y has the class '{unknown[0]}', which is not one of {known}")
        if first:
            return self._first(X, y)
        model = self.declare(self._design(X), self._chosen(y))
        return self._after(self._learn_more(model, Growing(first=1)))

    def _design(self, X: Array) -> Array:
        return with_ones(self._columns.apply(X), self.fit_intercept)

    def _chosen(self, y: Any) -> Array:
        one_hot = (np.asarray(y)[:, None] == self.classes_).astype(np.float64)
        return one_hot[:, 1:] if len(self.classes_) == BINARY else one_hot

    def _after(self, fitted: Self) -> Self:
        units = coefficients_in_units(self._columns, self.fit_intercept)
        q = self.fit_.posteriors["w"]
        mean = q.mean @ units.T
        self.coef_ = mean[:, 1:] if self.fit_intercept else mean
        self.intercept_ = mean[:, 0] if self.fit_intercept else np.zeros(len(mean))
        self.covariances_ = units @ q.cov @ units.T
        return fitted

    def decision_function(self, X: Any) -> Array:
        """Return the expected logit of each class; of two classes that of the second."""
        logits = self._logits(X)[0]
        return logits[:, 0] if len(self.classes_) == BINARY else logits

    def _logits(self, X: Any) -> tuple[Array, Array]:
        """Return mean and variance of each logit."""
        check_is_fitted(self)
        X = self._design(validate_data(self, X, dtype=np.float64, reset=False))
        variance = np.stack([quadratic_forms(X, S) for S in self.fit_.posteriors["w"].cov], axis=1)
        return X @ self.fit_.mean("w").T, variance

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, with the uncertainty of the coefficients.

        E[1 / (1 + exp(-z))] is approximated by 1 / (1 + exp(-m / sqrt(1 + pi v / 8))), with m and
        v the mean and variance of the logit z (MacKay 1992).
        """
        mean, variance = self._logits(X)
        share = expit(mean / np.sqrt(1 + np.pi * variance / 8))
        if len(self.classes_) == BINARY:
            return np.column_stack([1 - share, share])
        return share / share.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Return the most probable class of each row."""
        logits = self._logits(X)[0]
        best = logits[:, 0] > 0 if len(self.classes_) == BINARY else logits.argmax(axis=1)
        return self.classes_[best.astype(np.int64)]

    def summary(self, *, prob: float = 0.9) -> Summary:
        """Return mean, sd and interval of each coefficient, as a table to print.

        Parameters
        ----------
        prob
            Probability of the central intervals.
        """
        check_is_fitted(self)
        means = np.column_stack([self.intercept_, self.coef_]) if self.fit_intercept else self.coef_
        rows = []
        for label, mean, cov in zip(
            self.classes_[-len(means) :], means, self.covariances_, strict=True
        ):
            names = self.names_ if len(means) == 1 else [f"{label}: {n}" for n in self.names_]
            rows += coefficient_rows(names, mean, np.sqrt(cov.diagonal()), prob)
        title = f"LogisticRegression of {', '.join(map(str, self.classes_))}, {self.fit_.status}"
        return coefficient_table(title, rows, prob)
