"""`svmp.compare`: fits side by side, by bound, held-out scores and leave-one-out scores.

Scores are sums over rows, and rows are independent given the model, so that the standard error of a
sum over N rows is sqrt(N) times the standard deviation of its terms. Two fits score the same rows:
the standard error of their difference is that of the differences row by row, which is much smaller
than those of the two sums.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.running.seeds import Seed
from svmp.network.keywords import known_keywords
from svmp.network.model import Model
from svmp.network.tables import Columns, html_table
from svmp.network.validation import shown
from svmp.posterior.checks.held_out_scores import pointwise_scores
from svmp.posterior.checks.leave_one_out import LeaveOneOut, leave_one_out
from svmp.posterior.checks.psis import DRAWS, importance
from svmp.posterior.record.run_record import RunRecord
from svmp.saving.fingerprint import fingerprint


@dataclass(frozen=True)
class Score:
    """A score of one fit, and its difference from the best.

    Attributes
    ----------
    value, se
        The mean over rows, in nats, and its standard error.
    difference, difference_se
        The mean difference from the best fit, row by row, and its standard error.
    """

    value: float
    se: float
    difference: float
    difference_se: float


@dataclass(frozen=True)
class Compared:
    """One fit in a comparison.

    Attributes
    ----------
    status, bound
        Of the fit.
    held_out
        Score of held-out values, as in `Fit.held_out`; None without them.
    loo
        Leave-one-out score of the rows of training; None without models or arviz-stats.
    khat
        PSIS k-hat of q; None without leave-one-out scores.
    unreliable
        Number of rows whose leave-one-out score has a k-hat above 0.7.
    """

    status: str
    bound: float
    held_out: Score | None = None
    loo: Score | None = None
    khat: float | None = None
    unreliable: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Columns):
    """Fits by name, the best first: by leave-one-out, held-out score, or bound; print it.

    It is read like a dict, and by data frames as a table.

    Attributes
    ----------
    fits
        By name, each fit.
    """

    fits: dict[str, Compared]

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self.fits.keys()

    def values(self) -> ValuesView[Compared]:
        """Return the fits."""
        return self.fits.values()

    def items(self) -> ItemsView[str, Compared]:
        """Return names and fits."""
        return self.fits.items()

    def __getitem__(self, name: str) -> Compared:
        return self.fits[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fits)

    def __len__(self) -> int:
        return len(self.fits)

    def _lines(self) -> list[list[str]]:
        """Return the table, its heads first."""
        heads = ["fit", "status", "bound"]
        some = list(self.values())
        scores = [(f, t) for f, t in TITLES.items() if any(getattr(c, f) is not None for c in some)]
        for _, title in scores:
            heads += [title, "se", "difference", "se"]
        khat = any(c.khat is not None for c in some)
        lines = [heads + ["k-hat", "rows k > 0.7"] * khat]
        for name, c in self.items():
            line = [name, c.status, f"{c.bound:,.6g}"]
            for field, _ in scores:
                score: Score = getattr(c, field)
                line += [f"{score.value:.4f}", f"{score.se:.4f}"]
                line += [f"{score.difference:.4f}", f"{score.difference_se:.4f}"]
            if c.khat is not None:
                line += [f"{c.khat:.2f}", str(c.unreliable)]
            lines.append(line)
        return lines

    def columns_by_name(self) -> dict[str, NDArray[Any]]:
        some = list(self.values())
        found: dict[str, Any] = {
            "fit": list(self),
            "status": [c.status for c in some],
            "bound": [c.bound for c in some],
        }
        for field in TITLES:
            scores = [getattr(c, field) for c in some]
            if any(score is not None for score in scores):
                for part in ("value", "se", "difference", "difference_se"):
                    name = field if part == "value" else f"{field}_{part}"
                    found[name] = [getattr(score, part) for score in scores]
        if any(c.khat is not None for c in some):
            found |= {"khat": [c.khat for c in some], "unreliable": [c.unreliable for c in some]}
        return {name: np.array(values) for name, values in found.items()}

    def _repr_html_(self) -> str:
        heads, *rows = self._lines()
        return html_table(heads, rows)

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if i < 2 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


TITLES = {"held_out": "held-out", "loo": "leave-one-out"}


@known_keywords
def compare(
    fits: Mapping[str, RunRecord],
    *,
    models: Model | Mapping[str, Model] | None = None,
    held_out: Mapping[str, Any] | None = None,
    loo: bool = True,
    draws: int = DRAWS,
    seed: Seed = 0,
) -> Comparison:
    """Compare fits to the same data: bounds, held-out scores, leave-one-out scores.

    Parameters
    ----------
    fits
        Fits by name.
    models
        The model of each fit, by the same names, or one for all.
        Without them only bounds are compared.
    held_out
        By observed variable, values that were left out of training, as for `Fit.held_out`.
    loo
        Whether to compute leave-one-out scores of the rows of training by PSIS, which needs
        arviz-stats (`pip install "svmp[psis]"`).
    draws, seed
        Number of draws from q for leave-one-out scores, and their seed.

    Returns
    -------
    Comparison
        Fits by name, the best first: by leave-one-out score if there is one, then by held-out
        score, then by bound. Print it as a table.

    >>> import svmp
    >>> def declare(tau):
    ...     with svmp.Model() as model:
    ...         mu = svmp.Normal("mu", mu=0, tau=1)
    ...         svmp.Normal("y", mu=mu, tau=tau, observed=[0.9, 1.8, -0.2, 0.4])
    ...     return model
    >>> fits = {"narrow": svmp.fit(declare(100)), "wide": svmp.fit(declare(1))}
    >>> list(svmp.compare(fits))
    ['wide', 'narrow']
    """
    given = check_fits(fits)
    if models is None:
        if held_out is not None:
            raise ModelError("held_out needs models=, as not every fit keeps its model")
        found = {n: Compared(f.status, f.bound) for n, f in given.items()}
        return Comparison(dict(sorted(found.items(), key=lambda pair: -pair[1].bound)))
    known = check_models(given, models)
    held = {} if held_out is None else held_out_scores(given, known, held_out)
    left: dict[str, LeaveOneOut] = {}
    khat: dict[str, float] = {}
    if loo:
        check_same_rows(known)
        for name, fit in given.items():
            weighted = importance(fit, known[name], draws, seed)
            khat[name], left[name] = weighted.khat, leave_one_out(weighted, name)
    loo_by_row = {name: found.scores for name, found in left.items()}
    bounds = {name: np.array([fit.bound]) for name, fit in given.items()}
    by_row = loo_by_row or held or bounds
    order = sorted(given, key=lambda name: -float(by_row[name].mean()))
    held_scores, loo_scores = against_best(held), against_best(loo_by_row)
    return Comparison(
        {
            name: Compared(
                given[name].status,
                given[name].bound,
                held_scores.get(name),
                loo_scores.get(name),
                khat.get(name),
                left[name].unreliable if left else 0,
            )
            for name in order
        }
    )


def check_fits(fits: Any) -> dict[str, RunRecord]:
    """Refuse anything but fits by name."""
    example = "compare needs fits by name, as {'a': fit_a, 'b': fit_b}"
    if not isinstance(fits, Mapping) or not fits:
        raise ModelError(f"{example}, not {shown(fits)}")
    for name, fit in fits.items():
        if not isinstance(name, str) or not isinstance(fit, RunRecord):
            raise ModelError(f"{example}, and {shown(name)} is {shown(fit)}")
    return dict(fits)


def check_models(fits: Mapping[str, RunRecord], models: Any) -> dict[str, Model]:
    """Return the model of each fit."""
    known = dict.fromkeys(fits, models) if isinstance(models, Model) else models
    if not isinstance(known, Mapping) or set(known) != set(fits):
        raise ModelError(f"models must be one model, or one for each of {list(fits)}")
    for name, model in known.items():
        if not isinstance(model, Model):
            raise ModelError(f"the model of '{name}' must be a svmp.Model, not {shown(model)}")
    return dict(known)


def held_out_scores(
    fits: Mapping[str, RunRecord], models: Mapping[str, Model], values: Mapping[str, Any]
) -> dict[str, Array]:
    """Return the score of each held-out row, by fit."""
    found, hashes = {}, set()
    for name, fit in fits.items():
        try:
            found[name], fingerprint = pointwise_scores(
                fit.posteriors, models[name], values, fit.joint
            )
        except ModelError as error:
            raise ModelError(f"the fit '{name}': {error}") from None
        hashes.add(fingerprint)
    if len(hashes) > 1:
        raise ModelError("the models leave out different rows, so that scores cannot be compared")
    return found


def check_same_rows(models: Mapping[str, Model]) -> None:
    """Refuse models of different observed rows."""
    first = ""
    rows: dict[str, str] = {}
    for name, model in models.items():
        observed = (v for v in model.variables.values() if not v.hidden)
        seen = {v.name: fingerprint([v.observed, v.rows]) for v in observed}
        if not first:
            first, rows = name, seen
        elif seen != rows:
            raise ModelError(
                f"'{first}' and '{name}' observe different data, so that leave-one-out scores "
                "cannot be compared; give loo=False, and held_out= that both have"
            )


def against_best(by_row: Mapping[str, Array]) -> dict[str, Score]:
    """Return scores and their differences from the best."""
    best = max(by_row, key=lambda name: float(by_row[name].mean()), default="")
    return {
        name: Score(
            float(scores.mean()),
            standard_error(scores),
            float((scores - by_row[best]).mean()),
            standard_error(scores - by_row[best]),
        )
        for name, scores in by_row.items()
    }


def standard_error(scores: Array) -> float:
    """Return the standard error of a mean; 0 for a single row.

    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    count = len(scores)
    return float(scores.std(ddof=1) / np.sqrt(count)) if count > 1 else 0.0
