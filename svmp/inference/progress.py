"""The progress line of a run on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

from svmp.inference.program import Program
from svmp.inference.run import Run
from svmp.inference.stopping import Budget

Report = Callable[[Run], None]


@dataclass(frozen=True)
class Line:
    """A line of progress, whose last part is asked for each time that it is drawn."""

    text: str
    program: Program

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text("   ".join(filter(None, (self.text, self.program.note))))


@contextmanager
def line_of_progress(wanted: bool | None) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a line on the terminal, or that does nothing."""
    if wanted is None:
        wanted = sys.stderr.isatty()
    if not wanted:
        yield lambda text: None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), transient=True, refresh_per_second=8) as live:
        yield lambda text: live.update(Text(text))


@contextmanager
def report_to(wanted: bool | None, budget: Budget) -> Iterator[Report]:
    """Yield a function that shows the progress of a run, or that does nothing."""
    if wanted is None:
        wanted = sys.stderr.isatty()
    if not wanted:
        yield lambda run: None
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), transient=True, refresh_per_second=8) as live:

        def report(run: Run) -> None:
            seconds = budget.seconds
            used = budget.used(run.sweeps, run.state.accesses)
            left = seconds / used - seconds if used > 0 else float("inf")
            bound = step = "..."
            if len(run.state.trace):
                bound, se = (
                    f"{run.state.trace.last('bound'):,.2f}",
                    run.state.trace.last("bound_se"),
                )
                bound += f" ± {se:,.2g}" if se else ""
                step = f"{run.state.trace.last('step_median'):.3g}"
            done = f"iteration {run.state.iteration:,}   sweeps {run.sweeps:,.2f}"
            live.update(
                Line(
                    f"{done}   bound {bound}   "
                    f"step {step}   {run.state.accesses / seconds:,.3g} accesses/s   "
                    f"at most {timedelta(seconds=round(min(left, 8.64e6)))} left",
                    run.program,
                )
            )

        yield report
