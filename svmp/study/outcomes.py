"""The questions of a study, in order; each has a table, and most have a chart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from svmp.errors import StudyError
from svmp.ratings import parquet
from svmp.ratings.lines import MOST
from svmp.study import answer, claims, figures, thresholds
from svmp.study.chart import Chart
from svmp.study.runner import Runner
from svmp.study.store import Store

QUESTIONS = ("figure2", "figure3", "thresholds", "answer", "claims")


@dataclass(frozen=True)
class Outcome:
    """The answer to one question: a tidy table, a summary of JSON types, and a chart of them."""

    name: str
    table: pl.DataFrame
    about: dict[str, Any]
    chart: Chart | None


def work_out(runner: Runner, name: str) -> Outcome:
    """Answer one question, and write its numbers to the folder."""
    run: dict[str, Callable[[], tuple[pl.DataFrame, dict[str, Any]]]] = {
        "figure2": lambda: figures.run(runner, "figure2"),
        "figure3": lambda: figures.run(runner, "figure3"),
        "thresholds": lambda: thresholds.run(runner),
        "answer": lambda: answer.run(runner),
        "claims": lambda: claims.run(runner),
    }
    table, about = run[name]()
    about = {"settings": runner.settings.to_dict(), "digest": runner.data.digest, **about}
    runner.store.write_table(f"{name}.parquet", table)
    runner.store.write_text(f"{name}.json", json.dumps(about, indent=2) + "\n")
    return outcome(name, table, about)


def outcome(name: str, table: pl.DataFrame, about: dict[str, Any]) -> Outcome:
    """Add the chart to a table and its summary."""
    chart = None
    if name in ("figure2", "figure3"):
        chart = figures.chart(name, table, about, about["settings"]["kappa"])  # type: ignore[arg-type]
    elif name == "thresholds":
        chart = thresholds.chart(table, about)
    elif name == "answer":
        chart = answer.chart(table, about)
    return Outcome(name, table, about, chart)


def known(store: Store) -> dict[str, Outcome]:
    """Read the answers in a folder that were found with its present settings and data."""
    made = store.about() or {}
    found = {}
    for name in QUESTIONS:
        path = store.folder / f"{name}.json"
        if path.exists():
            outcome = _read(path, name)
            if all(outcome.about[what] == made.get(what) for what in ("settings", "digest")):
                found[name] = outcome
    return found


def _read(path: Path, name: str) -> Outcome:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        table = parquet.read(path.with_suffix(".parquet"), MOST)
        return outcome(name, table, about)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StudyError(
            f"{path}: damaged, or not written by svmp study ({type(error).__name__}); "
            f"make it anew with: svmp study {name}"
        ) from None
