"""Mixed effects: y_n ~ Normal(w . x_n + u_g(n) . r_n, tau), u_g ~ MvNormal(0, Lambda).

w are the coefficients of all rows, u_g those of group g. y is standardised, and the columns x and r
are made orthogonal (scaling.py), so that the priors suit any units:

    w ~ MvNormal(0, FLAT), Lambda ~ Wishart(k, rate), rate ~ Wishart(k, 1), with k columns in r.

The prior of Lambda^-1 is a matrix F distribution (Mulder and Pericchi 2018): standard deviations
of effects have half-Cauchy priors of the scale of y, whatever the basis of the columns.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from svmp.families.family import Array
from svmp.inference.methods import FullVB
from svmp.models.estimators.coefficients import (
    coefficient_rows,
    coefficient_table,
    deviation_row,
    entry,
    noise_row,
)
from svmp.models.estimators.design import Design, Effects
from svmp.models.estimators.estimator import (
    EXACT,
    FLAT,
    WEAK,
    NetworkEstimator,
    noise_rate,
)
from svmp.models.estimators.scaling import Basis, Standard
from svmp.network.data_arrays import data
from svmp.network.distributions import Gamma, MvNormal, Normal, Wishart
from svmp.network.expressions import dot
from svmp.network.model import Model
from svmp.network.tables import Row
from svmp.posterior.marginals.posterior import tails
from svmp.posterior.output.summary import Summary

BLOCK = ("fixed", "effect")
TOO_SURE = (
    "sds of the spread of groups are those of q, and too small: most of all where groups hardly "
    "differ"
)
OF_RESIDUAL = 1e-5
"""Smallest standard error of a group's level, as a share of the sd of residuals. With less, too few
digits would be left of how effects and coefficients are told apart."""
DRAWS = 4000
"""Draws of the precision matrix, for the correlations of effects."""


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
    sigma_
        Posterior covariance of these coefficients.
    effects_
        Posterior means of what each group adds, a row for each of `groups_` and a column for each
        of `random_names_`.
    covariance_
        Covariance between groups of what they add: the inverse of its expected precision.
    noise_variance_
        The inverse of the expected precision of rows.
    fit_
        The `svmp.Fit` of y in standard units and orthogonal columns, with `fixed`, `effect`,
        `precision`, `rate` and `tau`. A column's coefficient is there that of the part which the
        columns before it do not explain, with a mean square of 1; `summary` has those of the
        columns themselves.

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
        """Declare the network of some rows, in standard units; y is hidden where it is None."""
        fixed, varying, group, labels = design
        own, names = self._own, self.random_names_
        coords: dict[str, Any] = {"coef": [self.names_[j] for j in self._basis.kept]}
        if labels is not None:
            coords |= {"group": labels, "own": [names[j] for j in own.kept]}
        with Model(coords={**coords, "row": len(fixed)}) as model:
            tau = Gamma("tau", alpha=WEAK, beta=self._noise)
            flat = FLAT * np.eye(len(self._basis.kept))
            w = MvNormal("fixed", mu=0, tau=flat, dims="coef")
            mean = dot(data(fixed @ self._basis.inverse, dims=("row", "coef")), w)
            if labels is not None:
                size = len(own.kept)
                rate = Wishart("rate", nu=size, V=np.eye(size), dims=("own", "own"))
                precision = Wishart("precision", nu=size, rate=rate, dims=("own", "own"))
                u = MvNormal("effect", mu=0, tau=precision, dims=("group", "own"))
                rows = data(varying @ own.inverse, dims=("row", "own"))
                mean = mean + dot(rows, u.iloc[data(group, dims="row")], dim="own")
            observed = None if y is None else self._target.apply(y)
            Normal("y", mu=mean, tau=tau, dims="row", observed=observed)
        return model

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the network to rows; y may be left out if the formula has it."""
        self._check_parameters()
        design, y = self._read(X, y, reset=True)
        self._target = Standard.of(y)
        self._basis, self._own = Basis.of(design.fixed), Basis.of(design.varying)
        self._note_explained()
        self._noise = noise_rate(len(y), self._least_noise(design, y))
        self.groups_ = design.labels
        joint = None if design.labels is None else [BLOCK]
        return self._after(self._learn(self.declare(design, y), FullVB(), joint=joint))

    def _least_noise(self, design: Design, y: Array) -> float:
        """Return the smallest sd of the noise, given the residuals of least squares."""
        Z, y = design.fixed @ self._basis.inverse, self._target.apply(y)
        left = y - Z @ (Z.T @ y / len(y))
        rows = np.sqrt(np.bincount(design.group).max())
        return max(EXACT, OF_RESIDUAL * float(rows * np.sqrt((left**2).mean())))

    def _note_explained(self) -> None:
        """Warn of columns that others explain; refuse a design of which nothing is left."""
        rest = np.delete(np.array(self.names_, dtype=object), self._basis.kept)
        if len(rest):
            warnings.warn(
                f"the columns {', '.join(rest)} of MixedEffects are sums of multiples of the "
                "columns before them, so that their coefficients are not determined and are left "
                "at 0",
                UserWarning,
                stacklevel=3,
            )
        if not len(self._own.kept):
            raise ValueError(
                f"the columns of random={self._effects.random!r} are 0 in all rows; MixedEffects "
                "needs a column that is not"
            )

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
            self.names_, self.random_names_ = self._columns.names, self._columns.random_names
            self.n_features_in_ = X.shape[1]
        return self._columns.design(X)

    def _after(self, fitted: Self) -> Self:
        q, size = self.fit_["fixed"], float(self._target.scale)
        units = size * self._basis.inverse
        self.coef_, self.sigma_ = units @ q.mean, units @ q.cov @ units.T
        self.coef_[0] += self._target.centre
        self.noise_variance_ = size**2 / float(self.fit_.mean("tau"))
        width = len(self.random_names_)
        self.effects_, self.covariance_ = np.zeros((0, width)), np.zeros((width, width))
        if self.groups_ is not None:
            own = size * self._own.inverse
            self.effects_ = self.fit_.mean("effect") @ own.T
            self.covariance_ = own @ np.linalg.inv(self.fit_.mean("precision")) @ own.T
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
            return self._in_units(found.mean), self._target.scale * np.sqrt(found.var)
        mean = design.fixed @ self._basis.inverse @ self.fit_.mean("fixed")
        if design.labels is None:
            return self._in_units(mean)
        place = {label: i for i, label in enumerate(self.groups_ or ())}
        known = np.array([place.get(label, -1) for label in design.labels])[design.group]
        effects = self.fit_.mean("effect")[known]
        own = np.einsum("rk,rk->r", design.varying @ self._own.inverse, effects)
        return self._in_units(mean + np.where(known >= 0, own, 0.0))

    def _in_units(self, mean: Array) -> Array:
        return np.asarray(self._target.centre + self._target.scale * mean)

    def summary(self, *, prob: float = 0.9) -> Summary:
        """Return coefficients, spread of the groups and noise, as a table to print.

        Parameters
        ----------
        prob
            Probability of the central intervals.
        """
        check_is_fitted(self)
        rows = coefficient_rows(self.names_, self.coef_, np.sqrt(self.sigma_.diagonal()), prob)
        if self.groups_ is not None:
            rows += self._spread_rows(prob)
        size = float(self._target.scale)
        rows.append(noise_row(self.fit_["tau"], size, prob))
        count = 0 if self.groups_ is None else len(self.groups_)
        title = f"MixedEffects of {count:,} group{'s' * (count != 1)}, {self.fit_.status}"
        return coefficient_table(title, rows, prob, TOO_SURE if count else "")

    def _spread_rows(self, prob: float) -> list[Row]:
        """Return rows of the sds of effects, and of their correlations.

        The inverse of a Wishart has inverse gammas on its diagonal.
        """
        q, kept = self.fit_["precision"], self._own.kept
        own, names = self._target.scale * self._own.inverse[kept], self.random_names_
        scale, shape = own @ np.linalg.inv(q.V) @ own.T, 0.5 * (float(q.nu) - len(kept) + 1)
        where = f"by {self._effects.groups}"
        rows = [
            deviation_row(f"sd of {names[j]} {where}", shape, 0.5 * scale[i, i], prob)
            for i, j in enumerate(kept)
        ]
        drawn = own @ np.linalg.inv(q.draw(DRAWS, seed=0)) @ own.T
        root = np.sqrt(np.einsum("sii->si", drawn))
        for i, j in zip(*np.triu_indices(len(kept), 1), strict=True):
            values = drawn[:, i, j] / root[:, i] / root[:, j]
            name = f"correlation of {names[kept[i]]} and {names[kept[j]]} {where}"
            rows.append(entry(name, values.mean(), values.std(), np.quantile(values, tails(prob))))
        return rows

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R^2 of the predictions; y may be left out if the formula has it."""
        if y is None:
            y = Design.response(X, str(self._effects.formula))
        return float(super().score(X, y, sample_weight))
