"""The largest first step that converges, for each algorithm, option and size."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from svmp.study.chart import BLUE, ORANGE, Chart, Line, PanelColumn, PanelRow
from svmp.study.convergence import SHARE, Ending
from svmp.study.runner import Experiment, Runner
from svmp.study.runs import Result, fraction

SMALLEST = 10
"""First steps are 2^0, 2^-1, ..., 2^-SMALLEST."""
ALGORITHMS: dict[str, str] = {"children": "Algorithm 1", "batch": "Algorithm 2"}
SCHEMA = {
    "method": pl.String,
    "option": pl.String,
    "size": pl.Int64,
    "rho1": pl.Float64,
    "paper": pl.Float64,
}
SIZES = {"children": "C", "batch": "C_global"}


def papers(method: str, option: str, size: int) -> float | None:
    """Return the paper's first step, which it gives for C = 1 and for every C_global."""
    if method == "batch":
        return 1.0 if option == "a" else 1 / 32
    return {"a": 1 / 512, "b": 1 / 64}[option] if size == 1 else None


def cells(runner: Runner) -> list[tuple[str, str, int]]:
    """Return the algorithms, options and sizes to search: figure sizes listed as thresholds."""
    wanted, settings = runner.settings.thresholds, runner.settings
    sizes: dict[str, tuple[int, ...]] = {
        "children": settings.children,
        "batch": settings.batches,
    }
    return [
        (method, option, size)
        for method, known in sizes.items()
        for option in "ab"
        for size in known
        if size in wanted
    ]


def search(runner: Runner, full: Result, method: str, option: str, size: int) -> Experiment[Any]:
    """Find the largest first step that converges.

    Smaller steps diverge less and take longer. The largest that is not too large is found by
    bisection. If that run is too slow, smaller steps are tried as long as they reach a higher
    bound. If none converges, every first step is too large or too slow for the budget. The paper's
    first step is tried in any case.
    """
    tried: dict[int, str] = {}
    reached: dict[int, float] = {}

    def attempt(power: int) -> Experiment[Ending]:
        which = 0 if method == "children" else 1
        spec = runner.spec(method, which, size=size, option=option, rho1=2.0**-power)
        result = yield spec
        tried[power] = result.ending(full)
        reached[power] = result.bound
        return result.ending(full)

    low, high = -1, SMALLEST + 1
    middle = 0
    while high - low > 1:
        if (yield from attempt(middle)) in ("diverged", "far off"):
            low = middle
        else:
            high = middle
        middle = (low + high) // 2
    while tried.get(high) == "slow" and high < SMALLEST:
        if high + 1 not in tried:
            yield from attempt(high + 1)
        if reached[high + 1] <= reached[high]:
            break
        high += 1
    paper = papers(method, option, size)
    if paper is not None and round(-np.log2(paper)) not in tried:
        yield from attempt(round(-np.log2(paper)))
    return {
        "method": method,
        "option": option,
        "size": size,
        "rho1": 2.0**-high if tried.get(high) == "converged" else None,
        "paper": paper,
        "tried": {fraction(2.0**-power): end for power, end in sorted(tried.items())},
    }


def found(cell: dict[str, Any]) -> str:
    """Return the largest first step of one algorithm, option and size as text.

    >>> found({"rho1": None, "tried": {"1": "diverged", "1/2": "far off", "1/4": "slow"}})
    'none: 1/2 is too large, 1/4 too slow'
    """
    if cell["rho1"] is not None:
        return fraction(cell["rho1"])
    slow = [rho for rho, end in cell["tried"].items() if end == "slow"]
    large = [rho for rho, end in cell["tried"].items() if end in ("diverged", "far off")]
    if not slow:
        return f"none down to {large[-1]}"
    return f"none: {f'{large[-1]} is too large, ' if large else ''}{slow[0]} too slow"


def run(runner: Runner) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Search for all of them side by side."""
    (full,) = runner.results([runner.spec("full", 0, policy="unit")])
    made = runner.run_all([search(runner, full, *cell) for cell in cells(runner)])
    columns = {name: [cell[name] for cell in made] for name in SCHEMA}
    return pl.DataFrame(columns, schema=SCHEMA), {"cells": made}


def chart(table: pl.DataFrame, about: dict[str, Any]) -> Chart:
    """Return the chart of the table."""
    columns = []
    for method, title in ALGORITHMS.items():
        lines: list[Line] = []
        sizes = sorted(set(table.filter(pl.col("method") == method)["size"].to_list()))
        for option, colour in (("a", BLUE), ("b", ORANGE)):
            part = table.filter((pl.col("method") == method) & (pl.col("option") == option))
            found, papers = (part.filter(pl.col(c).is_not_null()) for c in ("rho1", "paper"))
            lines.append(
                Line(f"option ({option})", found["size"].to_list(), found["rho1"].to_list(),
                     colour, width=1.8, marker="dot", notes=_notes(found, "rho1"),
                     end=f"({option})")
            )  # fmt: skip
            lines.append(
                Line(f"the paper, ({option})", papers["size"].to_list(), papers["paper"].to_list(),
                     colour, width=1.2, dash="dot", marker="ring",
                     joined=len(papers) > 1, notes=_notes(papers, "paper"), end=f"paper ({option})")
            )  # fmt: skip
        lines = [line for line in lines if line.x]
        if lines:
            columns.append(PanelColumn(title, SIZES[method], lines, x_ticks=sizes))
    ticks = {2.0**-p: fraction(2.0**-p) for p in range(SMALLEST + 1)}
    return Chart(
        name="thresholds",
        title="How small the first step must be",
        caption=(
            "The largest first step among 1, 1/2, ..., 1/1024 from which a run converges: it "
            f"does not diverge, and gains at least {SHARE:.0%} of what full VB gains from the "
            "same start in as many accesses. Found by bisection, as smaller first steps diverge "
            "less. Where there is no point, no first step converges within the budget of a run. "
            "Rings: the paper's values."
        ),
        alt="Largest first step that converges, by C and by C_global, beside the paper's.",
        y_label="largest first step",
        columns=columns,
        rows=[PanelRow(2.0 ** -(SMALLEST + 0.7), 1.6, "log", ticks)],
    )


def _notes(part: pl.DataFrame, column: str) -> list[str]:
    """Return the hover text of each point."""
    return [f"{SIZES[r['method']]} = {r['size']}: {fraction(r[column])}" for r in part.to_dicts()]
