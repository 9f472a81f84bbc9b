"""Mixed effects: y_n ~ Normal(w . x_n + u_g(n) . r_n, tau), u_g ~ MvNormal(0, Lambda).

w are the coefficients of all rows, u_g those of group g, with a Wishart over their precision.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.methods import FullVB
from svmp.models.estimators.design import Design, Effects
from svmp.models.estimators.estimator import (
    WEAK,
    NetworkEstimator,
    relative_precisions,
)
from svmp.network.data_arrays import data
from svmp.network.distributions import Gamma, MvNormal, Normal, Wishart
from svmp.network.expressions import dot
from svmp.network.model import Model

BLOCK = ("fixed", "effect")


class MixedEffects(RegressorMixin, NetworkEstimator):
    """Linear regression with coefficients that vary by group.

    Parameters
    ----------
    formula
        The columns with the same coefficients for all rows, as "x + z" or "y ~ x + z", read by
        formulaic from a data frame; None for all columns but that of the groups. A term
        "(1 | school)" or "(x | school)" says `groups` and `random`, as in lme4: "x" has an
        intercept too.
    groups
        The column of the groups: its name, or its number in an array; None for no groups.
    random
        Formula of the columns whose coefficients vary by group; "1" for intercepts.
    tol, max_iter
        As `tol` and `max_sweeps` of `svmp.fit`.
    random_state
        Seed of the start.

    Attributes
    ----------
    coef_
        Posterior means of the coefficients of all rows, in the order of `names_`.
    effects_
        Posterior means of what each group adds, a row for each of `groups_`.
    fit_
        The `svmp.Fit`, with `fixed`, `effect`, `precision`, `alpha` and `tau`.

    >>> import pandas as pd
    >>> from svmp.models import MixedEffects
    >>> frame = pd.DataFrame(
    ...     {"x": [0, 1, 2, 0, 1, 2], "school": list("aaabbb"), "y": [1.0, 2.1, 3.0, 3.9, 5.1, 6.0]}
    ... )
    >>> model = MixedEffects("y ~ x + (1 | school)").fit(frame)
    >>> model.names_, bool(abs(model.coef_[1] - 1) < 0.1)
    (['Intercept', 'x'], True)
    """

    def __init__(
        self,
        formula: str | None = None,
        *,
        groups: Any = None,
        random: str = "1",
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: Any = 0,
    ) -> None:
        self.formula, self.groups, self.random = formula, groups, random
        self.tol, self.max_iter, self.random_state = tol, max_iter, random_state

    def declare(self, design: Design, y: Array | None) -> Model:
        """Declare the network of some rows; y is hidden where it is None."""
        fixed, varying, group, labels = design
        coords: dict[str, Any] = {"coef": fixed.shape[1], "row": len(fixed)}
        if labels is not None:
            coords |= {"group": labels, "own": varying.shape[1]}
        with Model(coords=coords) as model:
            alpha = Gamma("alpha", alpha=WEAK, beta=WEAK)
            tau = Gamma("tau", alpha=WEAK, beta=WEAK)
            prior = alpha * relative_precisions(fixed.shape[1], True)
            w = MvNormal("fixed", mu=0, tau=prior, dims="coef")
            mean = dot(data(fixed, dims=("row", "coef")), w)
            if labels is not None:
                size = varying.shape[1]
                unit = np.eye(size) / (size * self._spread**2)
                precision = Wishart("precision", nu=size + 1, V=unit, dims=("own", "own"))
                u = MvNormal("effect", mu=0, tau=precision, dims=("group", "own"))
                rows = data(varying, dims=("row", "own"))
                mean = mean + dot(rows, u.iloc[data(group, dims="row")], dim="own")
            Normal("y", mu=mean, tau=tau, dims="row", observed=y)
        return model

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the network to rows; y may be left out if the formula has it."""
        self._check_parameters()
        design, y = self._read(X, y, reset=True)
        self._spread = float(np.std(y)) or 1.0
        model = self.declare(design, y)
        self.groups_ = design.labels
        if design.labels is not None:
            try:
                return self._after(self._learn(model, FullVB(), joint=[BLOCK]))
            except ModelError:  # too many groups for one block
                pass
        return self._after(self._learn(model))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the fit with further rows, also of groups that are new."""
        if not hasattr(self, "fit_"):
            return self.fit(X, y)
        design, y = self._read(X, y, reset=False)
        self._learn_more(self.declare(design, y))
        if design.labels is not None:
            known = list(self.groups_ or ())
            self.groups_ = known + [g for g in design.labels if g not in set(known)]
        return self._after(self)

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Design, Array]:
        """Return the design of rows and their y, checked."""
        if self.formula is None:
            X, y = self._checked(X, y, reset)
        elif y is None:
            y = Design.response(X, str(self._effects.formula))
        design = self._design(X, reset)
        y = np.asarray(y, dtype=np.float64)
        if y.shape != (len(design.fixed),) or not np.isfinite(y).all():
            raise ValueError("y must have one finite number for each row of X")
        return design, y

    @property
    def _effects(self) -> Effects:
        return Effects.of(self.formula, self.groups, self.random)

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        """Check an array, of which a column may have the groups; frames with one are kept."""
        if self.groups is None or not hasattr(X, "columns"):
            return validate_data(self, X, y, y_numeric=True, reset=reset)
        if y is None:
            raise ValueError("MixedEffects needs y, or a formula that has it")
        validate_data(self, X, skip_check_array=True, reset=reset)
        return X, y

    def _design(self, X: Any, reset: bool) -> Design:
        if reset:
            self._columns = Design.columns(X, *self._effects)
            self.names_, self.n_features_in_ = self._columns.names, X.shape[1]
        return self._columns.design(X)

    def _after(self, fitted: Self) -> Self:
        self.coef_ = self.fit_.mean("fixed")
        size = (0, 0)
        self.effects_ = self.fit_.mean("effect") if self.groups_ is not None else np.zeros(size)
        return fitted

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the predictive mean of each row, and its standard deviation if it is asked for.

        Groups that the fit does not know have the mean of all groups, and their spread.
        """
        check_is_fitted(self)
        if self.formula is None and (self.groups is None or not hasattr(X, "columns")):
            X = validate_data(self, X, reset=False)
        design = self._design(X, reset=False)
        if return_std:
            found = self.fit_.predict(self.declare(design, None), "y")
            return found.mean, np.sqrt(found.var)
        mean = design.fixed @ self.coef_
        if design.labels is None:
            return mean
        place = {label: i for i, label in enumerate(self.groups_ or ())}
        known = np.array([place.get(label, -1) for label in design.labels])[design.group]
        own = np.einsum("rk,rk->r", design.varying, self.effects_[known])
        return mean + np.where(known >= 0, own, 0.0)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R^2 of the predictions; y may be left out if the formula has it."""
        if y is None:
            y = Design.response(X, str(self._effects.formula))
        return float(super().score(X, y, sample_weight))
