"""One line on the terminal while a run is going on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from svmp.inference.stopping import Budget

Report = Callable[[float, float], None]


@contextmanager
def report_to(wanted: bool | None, budget: Budget) -> Iterator[Report]:
    """Yield a function that shows the sweep and the bound, or that does nothing."""
    if wanted is None:
        wanted = sys.stderr.isatty()
    if not wanted:
        yield lambda sweep, bound: None
        return
    with Live(console=Console(stderr=True), transient=True, refresh_per_second=8) as live:

        def report(sweep: float, bound: float) -> None:
            limit = "" if budget.max_sweeps is None else f" of at most {budget.max_sweeps:,.0f}"
            pace = budget.seconds / sweep
            live.update(
                Text(f"sweep {sweep:,.0f}{limit}   bound {bound:,.3f}   {pace:.3g} s a sweep")
            )

        yield report
