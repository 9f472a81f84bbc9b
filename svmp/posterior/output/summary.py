"""`fit.summary()`: how the run ended, and mean, sd and interval of the hidden variables.

A number, and each entry of a small array, has a row with its mean, sd and central interval. A large
array has a row with the range of its means and sds, and an interval from the lowest lower end to
the highest upper end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from svmp.network.partly_known import base_of
from svmp.network.tables import Row, html_table, text_table
from svmp.posterior.marginals.posterior import Posterior, tails
from svmp.posterior.marginals.rows import ENTRIES, heads, sizes
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.tables.entries import checked_names, labelled


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
    fit: RunRecord,
    names: str | Collection[str] | None = None,
    prob: float = 0.9,
    notes: str = "",
    entries: int = ENTRIES,
) -> Summary:
    """Return a line on how the run ended, and the rows of each hidden variable.

    Parameters
    ----------
    fit, names
        The fit, and the variables, by default all.
    prob
        Probability of the intervals.
    notes
        What is printed below the table.
    entries
        Most entries of an array that has a row for each of them.
    """
    of_q = "of this q " if fit.status == "diverged" else ""
    end = (
        f"{fit.ending}: bound {of_q}{fit.bound:,.6g} after {fit.iterations:,} iterations, "
        f"{fit.accesses:,} accesses, {fit.seconds:,.3g} seconds"
    )
    tails(prob)  # which refuses what is no probability
    chosen = [labelled(fit, fit.posteriors[name], entries) for name in checked_names(fit, names)]
    rows = [row for q in chosen for row in rows_of(q, prob, entries)]
    return Summary(end, heads(prob), tuple(rows), notes)


def rows_of(q: Posterior, prob: float, entries: int) -> list[Row]:
    """Return the rows of one variable; its family and dims are in the first of them."""
    if not q.is_small(entries) or not q.mean.size:
        return [q.summary_row(prob)]
    family, dims = type(base_of(q.family)).__name__, sizes(q.dims, q.mean.shape)
    first, *rest = q.entry_rows(prob)
    return [
        (first[0], family, dims, *first[1:]),
        *((name, "", "", *numbers) for name, *numbers in rest),
    ]
