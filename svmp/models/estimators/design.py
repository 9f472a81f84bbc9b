"""Designs of mixed effects: from a formula and a data frame, or from the columns of an array."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.network.dims.labels import missing_rows
from svmp.network.grid import Ints

INTERCEPT = "Intercept"
VARYING = re.compile(r"\(([^()|]+)\|([^()|]+)\)")
"""A term with coefficients that vary by group, as (1 + x | school)."""


def formulas() -> Any:
    """Return formulaic, or say how to install it."""
    try:
        import formulaic
    except ImportError:
        raise ModelError('a formula needs formulaic: pip install "svmp[sklearn]"') from None
    return formulaic


class Effects(NamedTuple):
    """What a formula says.

    Attributes
    ----------
    formula
        Its part without the coefficients that vary by group; None if there is no formula.
    groups, random
        The column of the groups, and the formula of the coefficients that vary by group.
    """

    formula: str | None
    groups: Any
    random: str

    @classmethod
    def of(cls, formula: str | None, groups: Any, random: str) -> Effects:
        """Take a term as "(1 | school)" or "(hours | school)" out of a formula.

        >>> Effects.of("score ~ hours + (hours | school)", None, "1")
        Effects(formula='score ~ hours', groups='school', random='hours')
        """
        found = [] if formula is None else VARYING.findall(formula)
        if formula is None or not found:
            if formula is not None and "|" in formula:
                raise ValueError(
                    f"the formula {formula!r} has a '|' outside of a term as (1 | school)"
                )
            return cls(formula, groups, random)
        if len(found) > 1 or groups is not None or random != "1":
            raise ValueError(
                "MixedEffects has one column of groups: give one term as (1 + x | school), or "
                "groups= and random= instead"
            )
        left, tilde, right = formula.rpartition("~")
        terms = [VARYING.sub("", term).strip() for term in re.split(r"\+(?![^(]*\))", right)]
        rest = " + ".join(filter(None, terms)) or "1"
        whole = f"{left.strip()} ~ {rest}" if tilde else rest
        return cls(whole, found[0][1].strip(), found[0][0].strip())


class Design(NamedTuple):
    """The columns of some rows.

    Attributes
    ----------
    fixed, varying
        Columns with the same coefficients for all rows, and those with coefficients by group.
    group, labels
        The place of each row's group among the labels; None without groups.
    """

    fixed: Array
    varying: Array
    group: Ints
    labels: list[Any] | None

    @staticmethod
    def response(X: Any, formula: str) -> Array:
        """Return the left side of a formula."""
        if "~" not in formula:
            raise ValueError(f"MixedEffects needs y, as the formula {formula!r} has no left side")
        left = formula.split("~")[0].strip()
        found = np.asarray(matrix(X, f"0 + {left}"), dtype=np.float64)
        if found.shape[1] != 1:
            raise ValueError(
                f"the left side of a formula of MixedEffects must be one column of numbers, and "
                f"'{left}' has categories or several columns"
            )
        return found[:, 0]

    @staticmethod
    def columns(X: Any, formula: str | None, groups: Any, random: str) -> Columns:
        """Return how designs are read from the first rows and from later ones."""
        if formula is not None:
            right = formula.split("~")[-1].strip()
            fixed = matrix(X, right)
            spec = fixed.model_spec
            varying = matrix(X, random).model_spec
            if "Intercept" not in spec.column_names[:1]:
                raise ValueError("the formula of MixedEffects needs its intercept, without '0 +'")
            random_names = list(map(str, varying.column_names))
            return Columns(list(spec.column_names), random_names, groups, spec, varying)
        if random != "1":
            raise ValueError("random= is a formula, and so needs formula=")
        width = X.shape[1] - (groups is not None)
        names = [str(name) for name in getattr(X, "columns", ()) if name != groups]
        if len({INTERCEPT, *names}) != width + 1:
            names = [f"x{i}" for i in range(width)]
        return Columns([INTERCEPT, *names], [INTERCEPT], groups)


@dataclass(frozen=True)
class Columns:
    """How the columns of a table become a design.

    Attributes
    ----------
    names, random_names
        The coefficients of all rows, and those that vary by group.
    groups
        The column of the groups, if there is one.
    fixed, varying
        The formulas, with what they learned of the first rows; None where all columns are used.
    """

    names: list[str]
    random_names: list[str]
    groups: Any
    fixed: Any = None
    varying: Any = None

    def design(self, X: Any) -> Design:
        """Return the design of some rows."""
        group, labels, rest = self._grouped(X)
        ones = np.ones((len(X), 1))
        if self.fixed is None:
            fixed, varying = np.column_stack([ones, np.asarray(rest, dtype=np.float64)]), ones
        else:
            fixed, varying = (read(spec, X) for spec in (self.fixed, self.varying))
        if len(fixed) != len(X) or not (np.isfinite(fixed).all() and np.isfinite(varying).all()):
            raise ValueError("the columns of MixedEffects must have no missing values")
        return Design(fixed, varying, group, labels)

    def _grouped(self, X: Any) -> tuple[Ints, list[Any] | None, Any]:
        """Return the group of each row, the labels, and the other columns."""
        if self.groups is None:
            return np.zeros(len(X), dtype=np.int64), None, X
        if hasattr(X, "columns"):
            if self.groups not in list(X.columns):
                raise ValueError(f"groups={self.groups!r} is not a column of X")
            column = np.asarray(X[self.groups])
            rest = X[[name for name in X.columns if name != self.groups]]
        else:
            column, rest = X[:, self.groups], np.delete(X, self.groups, axis=1)
        if missing_rows(np.asarray(column, dtype=object)).any():
            raise ValueError(
                f"the column of the groups, {self.groups!r}, has missing values, which "
                "MixedEffects does not take; leave out their rows"
            )
        labels, group = np.unique(column, return_inverse=True)
        return group.astype(np.int64), labels.tolist(), rest


def read(spec: Any, X: Any) -> Array:
    """Return the model matrix of later rows, by a formula that has seen the first."""
    if not hasattr(X, "columns"):
        raise ValueError("a formula of MixedEffects needs a data frame with named columns")
    check_columns(spec.required_variables, X)
    unknown = formulas().errors.DataMismatchWarning
    with warnings.catch_warnings():
        warnings.simplefilter("error", unknown)
        try:
            return np.asarray(spec.get_model_matrix(X), dtype=np.float64)
        except unknown as error:
            values = str(error).rpartition("{")[2].partition("}")[0]
            raise ValueError(
                f"a column of MixedEffects has the categories {values}, which the rows of the fit "
                "do not have, so that their coefficients are not known"
            ) from None


def matrix(X: Any, formula: str) -> Any:
    """Return the model matrix of a formula, with all rows."""
    if not hasattr(X, "columns"):
        raise ValueError("a formula of MixedEffects needs a data frame with named columns")
    library = formulas()
    try:
        needed = library.Formula(formula).required_variables
    except Exception as error:  # of a parser that raises many kinds
        said = str(error).splitlines()[0]
        raise ValueError(f"MixedEffects cannot read the formula {formula!r}: {said}") from None
    check_columns(needed, X)
    return library.model_matrix(formula, X, na_action="raise")


def check_columns(needed: Iterable[Any], X: Any) -> None:
    """Refuse a data frame without a column that a formula needs, or with missing values in it."""
    columns = set(map(str, X.columns))
    for name in sorted(map(str, needed)):
        if name not in columns:
            raise ValueError(f"the formula of MixedEffects needs the column '{name}' of X")
        if missing_rows(np.asarray(X[name], dtype=object)).any():
            raise ValueError(
                f"the column '{name}' of X has missing values, which MixedEffects does not take; "
                "leave out their rows"
            )
