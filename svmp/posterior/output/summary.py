"""`fit.summary()`: how the run ended, and mean, sd and interval of the hidden variables.

A single number has a row with its mean, sd and central interval. An array has a row with the range
of its means and sds, and an interval from the lowest lower end to the highest upper end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from svmp.network.tables import Row, html_table, text_table
from svmp.posterior.marginals.posterior import tails
from svmp.posterior.marginals.rows import heads
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.tables.entries import checked_names


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
    heads: Row
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
    of_q = "of this q " if fit.status == "diverged" else ""
    end = (
        f"{fit.ending}: bound {of_q}{fit.bound:,.6g} after {fit.iterations:,} iterations, "
        f"{fit.accesses:,} accesses, {fit.seconds:,.3g} seconds"
    )
    tails(prob)  # which refuses what is no probability
    rows = [fit.posteriors[name].summary_row(prob) for name in checked_names(fit, names)]
    return Summary(end, heads(prob), tuple(rows), notes)
