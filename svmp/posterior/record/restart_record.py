"""How the starts of a fit ended, as a table that is printed and saved."""

from __future__ import annotations

from dataclasses import dataclass

from svmp.network.tables import html_table


@dataclass(frozen=True)
class Restart:
    """How one start ended.

    Attributes
    ----------
    seed
        Its seed; `svmp.fit(model, seed=seed)` is the same run, if it was not stopped.
    bound, sweeps
        Its last bound, and the sweeps that it took.
    status
        As of a fit, or "stopped" if it was given up because it could not become the best.
    best
        Whether it is the one that is returned.
    """

    seed: int
    bound: float
    status: str
    sweeps: float
    best: bool = False


class Restarts(tuple[Restart, ...]):
    """The starts of a fit, in order; printed as a table."""

    def _lines(self) -> list[tuple[str, ...]]:
        """Return the table, its heads first."""
        heads = ("start", "seed", "bound", "status", "sweeps", "")
        lines = [
            (
                str(number),
                str(start.seed),
                f"{start.bound:,.6g}",
                start.status,
                f"{start.sweeps:,.3g}",
                "best" if start.best else "",
            )
            for number, start in enumerate(self)
        ]
        return [heads, *lines]

    def _repr_html_(self) -> str:
        heads, *rows = self._lines()
        return html_table(heads, rows)

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        text = (
            "  ".join(
                cell.ljust(width) if i in (3, 5) else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )
        return "\n".join(text)
