"""Factor analysis: x_nj ~ Normal(m_j + w_j . z_n, tau_j), w_j and z_n ~ MvNormal(0, 1).

Columns are standardised first, so that the priors suit any units.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from svmp.families.family import Array
from svmp.inference.methods import Growing
from svmp.models.estimators.estimator import NetworkEstimator
from svmp.models.estimators.scaling import Standard
from svmp.network.distributions import Gamma, MvNormal, Normal
from svmp.network.expressions import dot
from svmp.network.model import Model

LOG_2PI = float(np.log(2 * np.pi))


class FactorAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NetworkEstimator):
    """Factors of a table, with a noise variance for each column.

    Parameters
    ----------
    n_components
        Number of factors.
    tol, max_iter
        As `tol` and `max_sweeps` of `svmp.fit`.
    random_state
        Seed of the start.

    Attributes
    ----------
    components_
        Expected loadings, (n_components, n_features), in the units of the data.
    noise_variance_, mean_
        Of each column.
    fit_
        The `svmp.Fit` of the standardised columns, with `loading`, `z`, `level` and `tau`.

    >>> import numpy as np
    >>> from svmp.models import FactorAnalysis
    >>> factor = np.linspace(-2, 2, 50)
    >>> rows = np.column_stack([factor, -factor, 2 * factor]) + 0.1 * np.sin(
    ...     np.arange(150.0)
    ... ).reshape(50, 3)
    >>> found = FactorAnalysis(n_components=1).fit_transform(rows)[:, 0]
    >>> bool(abs(np.corrcoef(found, factor)[0, 1]) > 0.99)
    True
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        tol: float = 1e-4,
        max_iter: int = 500,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.tol, self.max_iter, self.random_state = tol, max_iter, random_state

    def declare(self, X: Array) -> Model:
        """Declare the network of some standardised rows."""
        rows, columns = X.shape
        coords = {"row": rows, "column": self._features(columns), "factor": self.n_components}
        with Model(coords=coords) as model:
            tau = Gamma("tau", alpha=1e-3, beta=1e-3, dims="column")
            level = Normal("level", mu=0, tau=1e-3, dims="column")
            unit = np.eye(self.n_components)
            loading = MvNormal("loading", mu=0, tau=unit, dims=("column", "factor"))
            z = MvNormal("z", mu=0, tau=unit, dims=("row", "factor"))
            mu = dot(z, loading, dim="factor") + level
            Normal("x", mu=mu, tau=tau, dims=("row", "column"), observed=X)
        return model

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the network to rows; y is ignored."""
        self._check_parameters()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self._columns = Standard.of(X)
        X = self._columns.apply(X)
        start = {"loading": principal_loadings(X, self.n_components)}
        return self._after(self._learn(self.declare(X), Growing(first=1), init=start))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the loadings with further rows; y is ignored."""
        if not hasattr(self, "fit_"):
            return self.fit(X, y)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        model = self.declare(self._columns.apply(X))
        return self._after(self._learn_more(model, Growing(first=1), ("row",)))

    def _after(self, fitted: Self) -> Self:
        centre, scale = self._columns.centre, self._columns.scale
        self.components_ = (self.fit_.mean("loading") * scale[:, None]).T
        self.mean_ = centre + scale * self.fit_.mean("level")
        self.noise_variance_ = scale**2 / self.fit_.mean("tau", corrected=False)
        self._n_features_out = self.n_components
        return fitted

    def transform(self, X: Any) -> Array:
        """Return the expected factors of each row."""
        check_is_fitted(self)
        X = self._columns.apply(validate_data(self, X, dtype=np.float64, reset=False))
        q, tau = self.fit_.posteriors["loading"], self.fit_.mean("tau", corrected=False)
        size = self.n_components
        square = q.moments[:, size:].reshape(-1, size, size)
        precision = np.eye(size) + np.einsum("j,jkl->kl", tau, square)
        pull = ((X - self.fit_.mean("level")) * tau) @ q.mean
        return np.asarray(np.linalg.solve(precision, pull.T).T)

    def get_covariance(self) -> Array:
        """Return the covariance of a row at the expected loadings and noise."""
        check_is_fitted(self)
        return np.asarray(self.components_.T @ self.components_ + np.diag(self.noise_variance_))

    def score_samples(self, X: Any) -> Array:
        """Return the log density of each row at the expected loadings and noise."""
        check_is_fitted(self)
        X = self._columns.apply(validate_data(self, X, dtype=np.float64, reset=False))
        loading, scale = self.fit_.mean("loading"), self._columns.scale
        noise = 1 / self.fit_.mean("tau", corrected=False)
        root = np.linalg.cholesky(loading @ loading.T + np.diag(noise))
        white = np.linalg.solve(root, (X - self.fit_.mean("level")).T)
        log_det = 2 * (np.log(root.diagonal()).sum() + np.log(scale).sum())
        return np.asarray(-0.5 * ((white**2).sum(axis=0) + log_det + X.shape[1] * LOG_2PI))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log density of the rows; y is ignored."""
        return float(self.score_samples(X).mean())


def principal_loadings(X: Array, count: int) -> Array:
    """Return loadings of probabilistic PCA, a start from which few sweeps are needed.

    >>> np.abs(principal_loadings(np.array([[1.0, 1.0], [-1.0, -1.0]]), 1)).round(2)
    array([[1.],
           [1.]])
    """
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = min(count, len(values))
    noise = float(values[kept:].mean()) if kept < len(values) else 0.0
    found = np.zeros((len(values), count))
    found[:, :kept] = vectors[:, :kept] * np.sqrt(np.maximum(values[:kept] - noise, 1e-2))
    return found
