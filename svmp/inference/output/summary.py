"""`fit.summary()`: how the run ended, and mean, sd and interval of the hidden variables.

A single number has a row with its mean, sd and central interval. An array has a row with the range
of its means and sds, and an interval from the lowest lower end to the highest upper end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from svmp.families.family import Array
from svmp.inference.output.entries import checked_names, interval_of
from svmp.inference.posterior import Posterior, tails
from svmp.inference.run_record import RunRecord
from svmp.network.partly_known import base_of
from svmp.network.tables import Row, html_table, text_table

MOST = 100_000
"""Largest number of entries of an array whose intervals are computed for a row of the table."""


@dataclass(frozen=True)
class Summary:
    """A table of the posteriors of a fit; `print` shows it, and so does a notebook.

    Attributes
    ----------
    title
        How the run ended.
    heads, rows
        The table, as strings.
    notes
        What is printed below it.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: str = ""

    def __str__(self) -> str:
        below = f"\n\n{self.notes}" if self.notes else ""
        return f"{self.title}\n\n{text_table(self.heads, self.rows)}{below}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        below = html_table(("",), [(line,) for line in self.notes.splitlines()])
        return html_table(self.heads, self.rows, self.title) + (below if self.notes else "")


def summarise(
    fit: RunRecord, names: str | Collection[str] | None = None, prob: float = 0.9, notes: str = ""
) -> Summary:
    """Return a line on how the run ended, and a row for each hidden variable.

    Parameters
    ----------
    fit, names
        The fit, and the variables, by default all.
    prob
        Probability of the intervals.
    notes
        What is printed below the table.
    """
    end = (
        f"{fit.status}: bound {fit.bound:,.6g} after {fit.iterations:,} iterations, "
        f"{fit.accesses:,} accesses, {fit.seconds:,.3g} seconds"
    )
    tails(prob)  # which refuses what is no probability
    rows = [row_of(fit.posteriors[name], prob) for name in checked_names(fit, names)]
    heads = ("variable", "family", "dims", "mean", "sd", f"{prob:.0%} interval")
    return Summary(end, heads, tuple(rows), notes)


def row_of(q: Posterior, prob: float) -> Row:
    """Return the row of one variable."""
    mean = q.mean
    # The mean of a Categorical has one more axis than its dims: the categories.
    dims = ", ".join(f"{d}: {n:,}" for d, n in zip(q.dims, mean.shape, strict=False))
    family = type(base_of(q.family)).__name__
    if not mean.size:
        return q.name, family, dims, "none", "", ""
    ends = interval_of(q, prob) if mean.size <= MOST else None
    interval = "" if ends is None else f"{number(ends[0].min())} to {number(ends[1].max())}"
    return q.name, family, dims, _range(mean), _range(q.std), interval


def _range(values: Array) -> str:
    return " to ".join(dict.fromkeys(number(end) for end in (values.min(), values.max())))


def number(value: float) -> str:
    """Return a number with four digits.

    >>> number(-0.00123456), number(12345678.0), number(np.float64(0))
    ('-0.001235', '1.235e+07', '0')
    """
    return f"{value:.4g}"


def posterior_html(q: Posterior, prob: float = 0.9) -> str:
    """Return a posterior as a table in HTML: what `fit.summary()` says, and its parameters."""
    heads = ("variable", "family", "dims", "mean", "sd", f"{prob:.0%} interval")
    table = [*zip(heads, row_of(q, prob), strict=True)]
    for name, values in q.parameters.items():
        if np.size(values):
            table.append((name, _range(np.asarray(values))))
    return html_table(("", ""), [row for row in table if row[1]], f"q({q.name})")
