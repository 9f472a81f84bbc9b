"""The paper's open question: every step policy against full VB, by accesses and by time."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from svmp.study import figures, thresholds
from svmp.study.chart import (
    BLUE,
    GOLD,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    Chart,
    Colour,
    Line,
    PanelColumn,
    PanelRow,
    with_start,
)
from svmp.study.runner import Runner
from svmp.study.runs import Result, Spec, fraction

SWEEPS = (1, 2, 3, 6, 12, 25)
"""Bounds are compared after the accesses, or the time, of so many sweeps of full VB."""
C = 5
"""Number of children that `Nodewise` reads, as in `svmp.fit` with a policy and no algorithm."""
USAGE = 2
"""With unit steps held, every USAGE-th child of an element is read, as at Xbox."""
COLOURS: dict[str, Colour] = {
    "full": INK, "default": GREEN, "grow": SKY, "nodewise-a": BLUE, "nodewise-b": PURPLE,
    "tuned-a": ORANGE, "tuned-b": GOLD, "hold": GREY, "untuned": Colour("#5b5b5b", "#c0c0c0"),
}  # fmt: skip
ENDS = {
    "full": "full VB", "default": "svmp.fit(model)", "grow": "growing C", "hold": "unit held",
    "nodewise-a": "node-wise (a)", "nodewise-b": "node-wise (b)", "tuned-a": "tuned (a)",
    "tuned-b": "tuned (b)",
}  # fmt: skip
"""Texts where lines end."""


def best_tuned(runner: Runner, option: str) -> tuple[str, Spec]:
    """Return the best of all runs of Algorithm 1 that were made, with a label that counts them."""
    tried: dict[tuple[int, float], Result] = {}
    for size in runner.settings.children:
        for power in range(thresholds.SMALLEST + 1):
            key = size, 2.0**-power
            spec = runner.spec("children", 0, option=option, size=size, rho1=key[1])
            result = runner.find(spec)
            if result is not None:
                tried[key] = result
    sound = {key: r for key, r in tried.items() if r.status != "diverged"} or tried
    size, rho1 = max(sound, key=lambda key: sound[key].bound)
    label = f"best of {len(tried)} tuned by hand, ({option}): C = {size}, from {fraction(rho1)}"
    return label, runner.spec("children", 2, option=option, size=size, rho1=rho1)


def defaults(runner: Runner) -> list[Spec]:
    """Return the runs without tuning: on a growing sample, and with growing C."""
    return [runner.spec("default", 2, policy=policy) for policy in ("unit", "grow")]


def run(runner: Runner) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Make the runs; the tuned ones are the best of those of figure 2 and of the thresholds."""
    figures.run(runner, "figure2")
    thresholds.run(runner)
    smallest, kappa = runner.settings.children[0], runner.settings.kappa
    sample, grow = defaults(runner)
    lines: dict[str, tuple[str, Spec]] = {
        "full": ("full VB", runner.spec("full", 2, policy="unit")),
        "default": ("svmp.fit(model): a growing sample", sample),
        "grow": ("growing C, node-wise steps", grow),
        **{
            f"nodewise-{o}": (
                f"node-wise steps, C = {C}, ({o})",
                runner.spec("children", 2, size=C, option=o, policy="nodewise"),
            )
            for o in "ab"
        },
        **{f"tuned-{o}": best_tuned(runner, o) for o in "ab"},
        "hold": (
            f"unit steps held, C = N/{USAGE}, (a)",
            runner.spec("share", 2, size=USAGE, policy="hold-then-decay"),
        ),
        "untuned": (
            f"t^-{kappa:g}, C = {smallest}, (a)",
            runner.spec("children", 2, size=smallest),
        ),
    }
    results = runner.results([spec for _, spec in lines.values()])
    ends = figures.endings(results)
    for name, end, (label, _) in zip(lines, ends, lines.values(), strict=True):
        end.update(name=name, label=label)
    sweep, full = runner.data.sweep(runner.settings.factors), results[0]
    marks = [n for n in SWEEPS if n * sweep <= full.accesses]
    seconds = full.seconds_at(np.array(marks) * sweep).tolist()
    for end, result in zip(ends, results, strict=True):
        end["at_accesses"] = [value(result, "accesses", n * sweep) for n in marks]
        end["at_seconds"] = [value(result, "seconds", s) for s in seconds]
    about = {"runs": ends, "sweeps": marks, "seconds": seconds, "sweep": sweep}
    return figures.table(results), {**about, "gain": gain(results, ends, sweep)}


def value(result: Result, column: str, at: float) -> float | None:
    """Return the bound at some accesses or seconds; None after the end, or if the run diverged."""
    places = result.trace[column]
    if result.status == "diverged" or at > places[-1] * 1.001:
        return None
    return float(np.interp(at, places, result.trace["bound"]))


def gain(results: list[Result], ends: list[dict[str, Any]], sweep: int) -> dict[str, Any]:
    """Return the accesses, in sweeps, and seconds at which each run passes full VB's last bound."""
    full = results[0]
    goal = float(full.trace["bound"][-1])
    passed: dict[str, dict[str, float] | None] = {}
    for end, result in zip(ends, results, strict=True):
        reached = np.flatnonzero(result.trace["bound"] >= goal)
        first = reached[0] if len(reached) and result.status != "diverged" else None
        passed[end["name"]] = None if first is None else {
            "sweeps": float(result.trace["accesses"][first] / sweep),
            "seconds": float(result.trace["seconds"][first]),
        }  # fmt: skip
    return {"goal": goal, "sweeps": full.accesses / sweep, "passed": passed}


def chart(traces: pl.DataFrame, about: dict[str, Any]) -> Chart:
    """Return the chart of the table."""
    runs = about["runs"]
    columns = []
    for place, label in (("accesses", "ratings accessed"), ("seconds", "seconds, on one thread")):
        lines = []
        for run in [*runs[1:], runs[0]]:
            trace = traces.filter(pl.col("run") == run["run"])
            x, y = with_start(trace[place], trace["bound"], run["start"])
            strong = run["name"] in ("full", "default")
            if x:
                lines.append(
                    Line(run["label"], x, y, COLOURS[run["name"]], width=2.4 if strong else 1.4,
                         dash="dash" if run["name"].startswith("tuned") else "solid",
                         lost=run["status"] == "diverged",
                         end=ENDS.get(run["name"], run["label"].split(",")[0]))
                )  # fmt: skip
        columns.append(PanelColumn(f"At equal {place}", label, lines))
    start, ends = runs[0]["start"], [r["bound"] for r in runs if r["ending"] == "converged"]
    best, gap = max(ends), max(max(ends) - min(ends), 0.02 * abs(max(ends)))
    return Chart(
        name="answer",
        title="Every step policy against full VB",
        caption=(
            "The bound from the same start, against accesses and against time, from the start and "
            "magnified. The time is that of one thread, without that of the bounds themselves."
        ),
        alt="Bound of each step policy against accesses and against seconds.",
        y_label="evidence lower bound (nats)",
        columns=columns,
        rows=[
            PanelRow(1.05 * start, best - 0.05 * start),
            PanelRow(min(ends) - 1.5 * gap, best + 0.1 * gap),
        ],
    )
