"""The progress line of a run, on a terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

from svmp.inference.program.program import Program
from svmp.inference.running.notebook import DELAY, in_notebook, is_shown, line_in_cell
from svmp.inference.running.run import Run
from svmp.inference.running.stopping import Budget

Report = Callable[[Run], None]


@dataclass(frozen=True)
class Line:
    """A line of progress, whose last part is asked for each time that it is drawn."""

    text: str
    program: Program

    def __str__(self) -> str:
        return "   ".join(filter(None, (self.text, self.program.note)))

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text(str(self))


@contextmanager
def line_of_progress(wanted: bool | None) -> Iterator[Callable[[str | Line], None]]:
    """Yield a function that shows a line on a terminal or in a notebook, or that does nothing."""
    if not is_shown(wanted):
        yield lambda line: None
        return
    if in_notebook():
        with line_in_cell(DELAY if wanted is None else 0.0) as show:
            yield show
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), transient=True, refresh_per_second=8) as live:
        yield lambda line: live.update(Text(line) if isinstance(line, str) else line)


@contextmanager
def report_to(wanted: bool | None, budget: Budget) -> Iterator[Report]:
    """Yield a function that shows the progress of a run, or that does nothing."""
    if not is_shown(wanted):
        yield lambda run: None
        return
    with line_of_progress(wanted) as show:

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
            show(
                Line(
                    f"{done}   bound {bound}   "
                    f"step {step}   {run.state.accesses / seconds:,.3g} accesses/s   "
                    f"at most {timedelta(seconds=round(min(left, 8.64e6)))} left",
                    run.program,
                )
            )

        yield report
