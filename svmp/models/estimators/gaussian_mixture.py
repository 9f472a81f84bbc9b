"""Mixture of multivariate Normals with a Dirichlet over the weights and Wishart precisions.

weight ~ Dirichlet, Lambda_k ~ Wishart, mu_k ~ MvNormal(mean, kappa Lambda_k), x_n ~ MvNormal(mu_z,
Lambda_z). Components that are not needed stay empty. Columns are standardised first.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from svmp.families.family import Array
from svmp.inference.methods import FullVB
from svmp.models.estimators.estimator import NetworkEstimator
from svmp.models.estimators.scaling import Standard
from svmp.network.distributions import Categorical, Dirichlet, Mixture, MvNormal, Wishart
from svmp.network.model import Model

LOG_2PI = float(np.log(2 * np.pi))
COLLINEAR = 1e-6
"""What is added to the variances of standardised columns, so that they may be collinear."""


class GaussianMixture(DensityMixin, NetworkEstimator):
    """A mixture of multivariate Normals with full covariances.

    Parameters
    ----------
    n_components
        Largest number of components.
    weight_concentration
        Parameter of the Dirichlet prior of the weights; by default 1 / n_components.
    mean_precision
        Precision of the prior of a component's mean, relative to that of its rows.
    tol, max_iter
        As `tol` and `max_sweeps` of `svmp.fit`.
    random_state
        Seed of the start, at clusters of rows.

    Attributes
    ----------
    weights_, means_, covariances_
        Posterior means of weights and centres, and inverses of the mean precisions.
    fit_
        The `svmp.Fit` of standardised columns, with `weight`, `mu`, `precision` and `z`.

    >>> import numpy as np
    >>> from svmp.models import GaussianMixture
    >>> rows = np.concatenate([np.linspace(-4, -3, 20), np.linspace(3, 5, 30)])[:, None]
    >>> model = GaussianMixture(n_components=2).fit(rows)
    >>> np.sort(model.means_[:, 0]).round(1)
    array([-3.3,  3.9])
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        weight_concentration: float | None = None,
        mean_precision: float = 1.0,
        tol: float = 1e-5,
        max_iter: int = 500,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.weight_concentration, self.mean_precision = weight_concentration, mean_precision
        self.tol, self.max_iter, self.random_state = tol, max_iter, random_state

    def declare(self, X: Array) -> Model:
        """Declare the network of some standardised rows; the prior is that of the first rows."""
        count, size = self.n_components, X.shape[1]
        concentration = (
            1 / count if self.weight_concentration is None else self.weight_concentration
        )
        scale = np.linalg.inv(self._prior_covariance) / size
        coords: dict[str, Any] = {"component": count, "axis": self._features(size), "row": len(X)}
        with Model(coords=coords) as model:
            weight = Dirichlet("weight", a=concentration, dims="component")
            dims = ("component", "axis", "axis")
            precision = Wishart("precision", nu=size, V=scale, dims=dims)
            around = self.mean_precision * precision
            mu = MvNormal("mu", mu=0, tau=around, dims=("component", "axis"))
            z = Categorical("z", p=weight, dims="row")
            component = MvNormal.dist(mu=mu, tau=precision)
            Mixture("x", z, component, dims=("row", "axis"), observed=X)
        return model

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the network to rows; y is ignored."""
        self._check_parameters()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if len(X) < self.n_components:
            raise ValueError(
                f"GaussianMixture has n_components={self.n_components}, but n_samples={len(X)}"
            )
        self._columns = Standard.of(X)
        X = self._columns.apply(X)
        spread = np.atleast_2d(X.T @ X / (len(X) - 1))
        self._prior_covariance = spread + COLLINEAR * np.eye(len(spread))
        return self._after(self._learn(self.declare(X), FullVB()))

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """Fit the network, and return the most probable component of each row."""
        return self.fit(X, y).predict(X)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the fit with further rows; y is ignored."""
        if not hasattr(self, "fit_"):
            return self.fit(X, y)
        X = self._columns.apply(validate_data(self, X, dtype=np.float64, reset=False))
        return self._after(self._learn_more(self.declare(X), FullVB()))

    def _after(self, fitted: Self) -> Self:
        centre, scale = self._columns.centre, self._columns.scale
        precisions = self.fit_.mean("precision")
        self._covariances = np.linalg.inv(precisions)
        self.weights_, self.means_ = self.fit_.mean("weight"), centre + scale * self.fit_.mean("mu")
        self.precisions_ = precisions / scale[:, None] / scale
        self.covariances_ = self._covariances * scale[:, None] * scale
        return fitted

    def _log_shares(self, X: Any) -> Array:
        """Log weight and density of each component at each row, with the centres' uncertainty."""
        check_is_fitted(self)
        X = self._columns.apply(validate_data(self, X, dtype=np.float64, reset=False))
        root = np.linalg.cholesky(self._covariances + self.fit_.posteriors["mu"].cov)
        found = np.empty((len(X), len(root)))
        for k, (mean, factor) in enumerate(zip(self.fit_.mean("mu"), root, strict=True)):
            white = np.linalg.solve(factor, (X - mean).T)
            log_det = 2 * np.log(factor.diagonal()).sum()
            found[:, k] = -0.5 * ((white**2).sum(axis=0) + log_det + X.shape[1] * LOG_2PI)
        return found + np.log(self.weights_) - np.log(self._columns.scale).sum()

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each component for each row."""
        log = self._log_shares(X)
        return np.exp(log - logsumexp(log, axis=1, keepdims=True))

    def predict(self, X: Any) -> Any:
        """Return the most probable component of each row."""
        return self._log_shares(X).argmax(axis=1)

    def score_samples(self, X: Any) -> Array:
        """Return the log density of each row."""
        return np.asarray(logsumexp(self._log_shares(X), axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log density of the rows; y is ignored."""
        return float(self.score_samples(X).mean())
