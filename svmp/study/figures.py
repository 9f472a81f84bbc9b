"""Figures 2 and 3: the bound against accesses, for Algorithm 1 and for Algorithm 2."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import polars as pl

from svmp.study.chart import INK, Chart, Line, PanelColumn, PanelRow, ordered, with_start
from svmp.study.runner import Runner
from svmp.study.runs import Result, Spec, fraction

Name = Literal["figure2", "figure3"]
SMALL_STEP = 1 / 64
"""First step of the additional runs of option (b) in figure 3, which diverges from 1."""


def specs(runner: Runner, name: Name) -> list[Spec]:
    """Return the runs of a figure, full VB first."""
    full = runner.spec("full", 0, policy="unit")
    settings = runner.settings
    if name == "figure2":
        sizes = settings.children
        return [full, *(runner.spec("children", 0, size=c, option=o) for o in "ab" for c in sizes)]
    sizes = settings.batches
    small = [s for s in settings.thresholds if s in sizes]
    return [
        full,
        *(runner.spec("batch", 1, size=s, option=o) for o in "ab" for s in sizes),
        *(runner.spec("batch", 1, size=s, option="b", rho1=SMALL_STEP) for s in small),
    ]


def run(runner: Runner, name: Name) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Make the runs; return a table of their traces, and how each ended."""
    results = runner.results(specs(runner, name))
    return table(results), {"runs": endings(results)}


def table(results: list[Result]) -> pl.DataFrame:
    """Concatenate traces, with columns that say which run a row belongs to."""
    parts = []
    for number, result in enumerate(results):
        spec = result.spec
        of = {"run": number, "method": spec.method, "option": spec.option, "size": spec.size,
              "policy": spec.policy, "rho1": spec.rho1}  # fmt: skip
        frame = pl.DataFrame(result.trace)
        parts.append(frame.select([pl.lit(v).alias(k) for k, v in of.items()] + [pl.all()]))
    return pl.concat(parts)


def endings(results: list[Result]) -> list[dict[str, Any]]:
    """Describe how each run ended, compared with full VB, which is the first."""
    full, others = results[0], results[1:]
    start = next((r.start for r in others), full.start)
    return [
        {
            "run": number,
            "label": r.spec.label,
            "method": r.spec.method,
            "option": r.spec.option,
            "size": r.spec.size,
            "policy": r.spec.policy,
            "rho1": r.spec.rho1,
            "status": r.status,
            "ending": r.ending(full, start),
            "bound": r.bound,
            "lowest": float(r.trace["bound"].min()),
            "start": start,
            "iterations": r.iterations,
            "accesses": r.accesses,
            "seconds": r.seconds,
            "where": r.where,
        }
        for number, r in enumerate(results)
    ]


# --- the chart ------------------------------------------------------------------------------


def chart(name: Name, traces: pl.DataFrame, about: dict[str, Any], kappa: float) -> Chart:
    """Return the chart of the table."""
    runs = about["runs"]
    size = "C" if name == "figure2" else "C_global"
    algorithm = "Algorithm 1" if name == "figure2" else "Algorithm 2"
    sizes = sorted({r["size"] for r in runs if r["method"] != "full"})
    columns = []
    for option, when in (("a", "seen at once"), ("b", "seen at the end of the iteration")):
        chosen = [r for r in runs if r["option"] == option and r["method"] != "full"]
        lines = [_line(traces, r, size, sizes) for r in chosen]
        lines.append(_line(traces, runs[0], size, sizes))
        lines = [line for line in lines if len(line.x)]
        columns.append(PanelColumn(f"Option ({option}): {when}", "ratings accessed", lines))
    unit = [r for r in runs if r["status"] == "diverged" and r["rho1"] == 1]
    lost = {o: [r["size"] for r in unit if r["option"] == o] for o in "ab"}
    said = "; ".join(f"({o}) {f'{size} = {listed(lost[o])}' if lost[o] else 'none'}" for o in "ab")
    dashed = ""
    if any(r["rho1"] < 1 for r in runs):
        dashed = f" Dashed: from a first step of {fraction(SMALL_STEP)}."
    return Chart(
        name=name,
        title=f"{algorithm} with steps t^-{kappa:g}",
        caption=(
            f"The bound against the number of times that ratings are accessed. {algorithm} with "
            f"{size} = {sizes[0]} to {sizes[-1]} and steps t^-{kappa:g}; full VB in black. The "
            "rows magnify the same lines. A cross marks a run that diverged and was stopped: "
            f"{said}.{dashed} Each line begins at the common start, at half of its first "
            "iteration's accesses, as a log axis has no zero."
        ),
        alt=f"{algorithm}: bound against accesses for options (a) and (b). Diverged: {said}.",
        y_label="evidence lower bound (nats)",
        columns=columns,
        rows=rows(runs),
        legend=size,
    )


def _line(traces: pl.DataFrame, run: dict[str, Any], size: str, sizes: list[int]) -> Line:
    trace = traces.filter(pl.col("run") == run["run"])
    x, y = with_start(trace["accesses"], trace["bound"], run["start"])
    if run["method"] == "full":
        return Line("full VB", x, y, INK, width=2.2)
    place = np.log(run["size"] / sizes[0]) / max(np.log(sizes[-1] / sizes[0]), 1e-9)
    return Line(
        f"{size} = {run['size']}", x, y, ordered(float(place)),
        dash="solid" if run["rho1"] == 1 else "dash", lost=run["status"] == "diverged",
        end=f"{size} = {run['size']}" if size == "C" else f"{run['size']:,}",
    )  # fmt: skip


def rows(runs: list[dict[str, Any]]) -> list[PanelRow]:
    """Choose three magnifications: the falls, the climb from the start, the differences at the end.

    The first reaches down to the lowest bound of the runs that recovered, the second to the start,
    the third to the lowest final bound of the runs that converged.
    """
    start = runs[0]["start"]
    ends = [r["bound"] for r in runs if r["ending"] == "converged"]
    best, worst = max(ends), min(ends)
    recovered = [r["lowest"] for r in runs if r["status"] != "diverged"]
    low = float(np.clip(1.1 * min(recovered), 20 * start, 5 * start))
    gap = max(best - worst, 0.02 * abs(best))
    return [
        PanelRow(low, -0.02 * low),
        PanelRow(1.05 * start, best - 0.05 * start),
        PanelRow(worst - 1.2 * gap, best + 0.15 * gap),
    ]


def listed(numbers: list[int]) -> str:
    """Format whole numbers, with ranges.

    >>> listed([1, 2, 3, 5]), listed([4])
    ('1 to 3, 5', '4')
    """
    numbers = sorted(set(numbers))
    parts, first = [], 0
    for i, n in enumerate(numbers):
        step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
        if i + 1 == len(numbers) or numbers[i + 1] != n + step:
            run = numbers[first : i + 1]
            parts.append(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)))
            first = i + 1
    return ", ".join(parts)
