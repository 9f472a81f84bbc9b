"""What the estimators have in common: seeds, the fit of a network, and rows that come later.

An estimator declares a network for some rows. `fit` fits it, `partial_fit` gives the network of
further rows to `Fit.update`, for which what was learned is the prior.
"""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from svmp.families.family import Array
from svmp.fitting.fit import fit
from svmp.inference.methods import Method
from svmp.models.estimators.design import INTERCEPT
from svmp.network.model import Model
from svmp.network.validation import shown
from svmp.posterior.result.result import Fit, load

WEAK = 1e-6
"""Shape and rate of vague Gammas, in standard units."""
EXACT = 1e-5
"""Smallest sd of the noise, in standard units: that of rows without noise is about as large."""
FLAT = 1e-4
"""Prior precision of intercepts and of other coefficients that are not shrunk, in standard units:
their prior sd is 100 times that of the target."""

NUMBERS: dict[str, tuple[type, int | None]] = {
    "n_components": (Integral, 1),
    "max_iter": (Integral, 1),
    "tol": (Real, 0),
    "alpha": (Real, None),
    "mean_precision": (Real, None),
    "weight_concentration": (Real, None),
    "doc_topic_prior": (Real, None),
    "topic_word_prior": (Real, None),
}
"""By parameter its type and its least value; None for any above 0."""
DEFAULTED = ("weight_concentration", "doc_topic_prior", "topic_word_prior")
"""Parameters that may be None."""


class NetworkEstimator(BaseEstimator):
    """An estimator whose `fit_` is the fit of a network.

    Attributes
    ----------
    fit_
        The `svmp.Fit`: q of every variable, the bound and how the run ended.
    n_iter_
        Number of iterations of the last run.
    """

    fit_: Fit
    n_iter_: int
    tol: float
    max_iter: int
    random_state: Any

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies: the fit as the bytes of its file."""
        state: dict[str, Any] = super().__getstate__()
        if "fit_" in state:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "fit.svmp"
                state["fit_"].save(path)
                state = {**state, "fit_": path.read_bytes()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "fit_" in state:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "fit.svmp"
                path.write_bytes(state["fit_"])
                state = {**state, "fit_": load(path)}
        super().__setstate__(state)

    def _check_parameters(self) -> None:
        """Refuse parameters that are no numbers, or too small."""
        for name, value in self.get_params().items():
            kind, least = NUMBERS.get(name, (None, 0))
            if kind is None or (value is None and name in DEFAULTED):
                continue
            sound = isinstance(value, kind) and not isinstance(value, bool)
            if not sound or not (value > 0 if least is None else value >= least):
                what = "a whole number" if kind is Integral else "a number"
                size = "above 0" if least is None else f"of at least {least}"
                raise ValueError(
                    f"{type(self).__name__} needs {what} {size} as {name}, not {shown(value)}"
                )

    def _features(self, width: int) -> list[str]:
        """Return the names of the columns of X."""
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        return names if len(set(names)) == width else [f"x{i}" for i in range(width)]

    def _coefficients(self, width: int, intercept: bool) -> list[str]:
        """Return the names of the coefficients of the columns of X, each once."""
        names = self._features(width)
        first = f"({INTERCEPT})" if INTERCEPT in names else INTERCEPT
        return [first, *names] if intercept else names

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _learn(self, model: Model, method: Method | None = None, **options: Any) -> Self:
        """Fit a network."""
        seed = self._seed()
        found = fit(model, method, seed=seed, tol=self.tol, max_sweeps=self.max_iter, **options)
        return self._noted(found)

    def _learn_more(
        self, model: Model, method: Method | None = None, new: tuple[str, ...] = ()
    ) -> Self:
        """Update the fit with the network of new rows."""
        options = {"seed": self._seed(), "tol": self.tol, "max_sweeps": self.max_iter}
        earlier = replace(self.fit_, joint=())  # the blocks of a joint q one by one
        return self._noted(earlier.update(model, method, new=new, **options))

    def _noted(self, found: Fit) -> Self:
        self.fit_, self.n_iter_ = found, found.iterations
        if found.status != "converged":
            warnings.warn(
                f"{type(self).__name__} did not converge within max_iter={self.max_iter}; raise "
                "max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self


def with_ones(X: NDArray[Any], intercept: bool) -> Array:
    """Return a design with a first column of ones, if there is an intercept.

    >>> with_ones(np.array([[2.0], [3.0]]), True)
    array([[1., 2.],
           [1., 3.]])
    """
    X = np.asarray(X, dtype=np.float64)
    return np.column_stack([np.ones(len(X)), X]) if intercept else X


def noise_rate(rows: int, least: float) -> float:
    """Return the rate of a vague Gamma prior under which the noise of rows has at least some sd.

    >>> noise_rate(200, 0.1)
    1.0
    """
    return 0.5 * rows * least**2


def quadratic_forms(X: Array, covariance: Array) -> Array:
    """Return x' S x of each row.

    >>> quadratic_forms(np.array([[1.0, 2.0]]), np.eye(2))
    array([5.])
    """
    return np.asarray(np.einsum("ri,ri->r", X @ covariance, X))
